"""Thompson sampling for rates: draw a game from the posterior and pull its best pair."""

from __future__ import annotations

import numpy as np

from f2a_tune.bandit.policies.base import ArrayPolicy, Choice, Observation, State
from f2a_tune.bandit.statistics import (
    COSTS,
    FINISH_COST,
    FINISHED,
    GIVE_UP_COST,
    GIVEN_UP,
    PULLS,
    REWARD,
    REWARDS,
    count_pull,
    entered,
)

# Setting of hazard Thompson sampling: the arm pulled last, which is evaluated first.
LAST_ARM = 0
# Setting of budgeted Thompson sampling: the largest cost, by which all costs are divided.
LARGEST_COST = 0


class HazardThompson(ArrayPolicy):
    r"""Thompson sampling of each arm's delay distribution, level by level.

    This policy is our own, and no regret bound has been proved for it. For every arm and level, it
    draws the probability h_i ~ Beta(1+d_i, 1+Y_i−d_i) that a pull running at the start of level i
    finishes in it, and the mean reward m_i ~ Beta(1+v_i, 1+d_i−v_i) of such a pull (notation of
    `f2a_tune.bandit.statistics`). The draws determine the reward and the cost of every wait, and
    the pair with the highest ratio is pulled. One pull carries information on every level that it
    entered. The policy has no parameters and needs neither a horizon nor an initial phase.

    If pulls that are given up pay a partial reward, the latest one seen at a level is added.
    """

    name = "hazard-thompson"

    def new_state(self) -> State:
        """Return the state before the first pull."""
        return self.blank_state(settings=[0.0])

    @staticmethod
    def decide(state: State, epoch: int, rng: np.random.Generator) -> Choice:
        """Draw a game and return its best pair.

        The arm pulled last is evaluated first: it is probably the best one, and a good early
        candidate lets the loop skip more levels of the other arms.
        """
        n_arms, n_levels = state.counts.shape[0], state.counts.shape[1]
        first = int(state.settings[LAST_ARM])
        best_arm, best_level, best_ratio = first, 0, -1.0
        for turn in range(n_arms):
            arm = (first + turn) % n_arms
            running = entered(state.counts, arm, 0)
            survival, reward, paid = 1.0, 0.0, 0.0
            for level in range(n_levels):
                finished = state.counts[arm, level, FINISHED]
                value = state.counts[arm, level, REWARD]
                hazard = rng.beta(1.0 + finished, 1.0 + running - finished)
                mean = rng.beta(1.0 + value, 1.0 + finished - value)
                reward += survival * hazard * mean
                paid += survival * hazard * state.ladder[level, FINISH_COST]
                survival *= 1.0 - hazard
                cost = paid + survival * state.ladder[level, GIVE_UP_COST]
                earned = reward + survival * state.looks[arm, level]
                if earned > best_ratio * cost:
                    best_arm, best_level, best_ratio = arm, level, earned / cost
                # Even if every pull still running paid 1 at no further cost, no longer wait of
                # this arm could be better.
                if reward + survival <= best_ratio * cost:
                    break
                running -= finished + state.counts[arm, level, GIVEN_UP]
        return Choice(best_arm, best_level, 1)

    @staticmethod
    def learn(state: State, seen: Observation, rng: np.random.Generator) -> bool:
        """Count the pull and remember its arm."""
        count_pull(state.counts, seen.arm, seen.level, seen.finish_level, seen.reward)
        state.settings[LAST_ARM] = seen.arm
        return False


class BudgetedThompson(ArrayPolicy):
    r"""Budgeted Thompson sampling (Xia et al. 2015): Beta draw of reward / Beta draw of cost.

    Rewards and costs (divided by the largest cost) are converted to Bernoulli trials, so every
    pair has two Beta posteriors. The pair with the highest ratio of draws is pulled.
    """

    name = "budgeted-thompson"

    def new_state(self) -> State:
        """Return the state before the first pull; pairs count trials and their successes."""
        return self.blank_state(pair_columns=3, settings=[self.levels.largest_cost])

    @staticmethod
    def decide(state: State, epoch: int, rng: np.random.Generator) -> Choice:
        """Draw the reward and cost of every pair; return the pair with the highest ratio."""
        n_arms, n_levels = state.pairs.shape[0], state.pairs.shape[1]
        best_arm, best_level, best_reward, best_cost = 0, 0, -1.0, 1.0
        for arm in range(n_arms):
            for level in range(n_levels):
                count = state.pairs[arm, level, PULLS]
                paid, spent = state.pairs[arm, level, REWARDS], state.pairs[arm, level, COSTS]
                reward = rng.beta(1.0 + paid, 1.0 + count - paid)
                cost = rng.beta(1.0 + spent, 1.0 + count - spent)
                if reward * best_cost > best_reward * cost:
                    best_arm, best_level, best_reward, best_cost = arm, level, reward, cost
        return Choice(best_arm, best_level, 1)

    @staticmethod
    def learn(state: State, seen: Observation, rng: np.random.Generator) -> bool:
        """Draw one Bernoulli trial for the reward and one for the cost."""
        state.pairs[seen.arm, seen.level, PULLS] += 1.0
        state.pairs[seen.arm, seen.level, REWARDS] += rng.random() < seen.reward
        state.pairs[seen.arm, seen.level, COSTS] += (
            rng.random() < seen.cost / state.settings[LARGEST_COST]
        )
        return False
