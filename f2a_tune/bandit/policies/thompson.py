"""Thompson sampling for rates: draw a plausible game, play its best pair."""

from __future__ import annotations

import numpy as np

from f2a_tune.bandit.levels import Floats
from f2a_tune.bandit.policies.base import ArrayPolicy, Choice, State
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

# Setting of hazard Thompson sampling: the arm pulled last, which is looked at first.
LAST_ARM = 0
# Setting of budgeted Thompson sampling.
LARGEST_COST = 0


class HazardThompson(ArrayPolicy):
    r"""Thompson sampling of each arm's delay law, level by level (ours; no bound is proved).

    For every arm draw the chance h_i ~ Beta(1+d_i, 1+Y_i−d_i) that a pull running on entering
    level i finishes inside it, and its mean reward m_i ~ Beta(1+v_i, 1+d_i−v_i); these give a
    reward and a cost for every wait, and the pair of the highest ratio is pulled. One pull informs
    every level it entered. No constants, no horizon, no initial phase.
    """

    name = "hazard-thompson"

    def new_state(self) -> State:
        """Nothing counted yet."""
        return self.blank_state(settings=[0.0])

    @staticmethod
    def decide(
        pairs: Floats,
        counts: Floats,
        arms: Floats,
        ladder: Floats,
        settings: Floats,
        epoch: int,
        rng: np.random.Generator,
    ) -> Choice:
        """Draw a game and return its best pair, looking at the arm pulled last first."""
        n_arms, n_levels = counts.shape[0], counts.shape[1]
        first = int(settings[LAST_ARM])
        best_arm, best_level, best_ratio = first, 0, -1.0
        for turn in range(n_arms):
            arm = (first + turn) % n_arms
            running = entered(counts, arm, 0)
            survival, reward, paid = 1.0, 0.0, 0.0
            for level in range(n_levels):
                finished = counts[arm, level, FINISHED]
                value = counts[arm, level, REWARD]
                hazard = rng.beta(1.0 + finished, 1.0 + running - finished)
                mean = rng.beta(1.0 + value, 1.0 + finished - value)
                reward += survival * hazard * mean
                paid += survival * hazard * ladder[level, FINISH_COST]
                survival *= 1.0 - hazard
                cost = paid + survival * ladder[level, GIVE_UP_COST]
                if reward > best_ratio * cost:
                    best_arm, best_level, best_ratio = arm, level, reward / cost
                # Even if all that still runs paid 1 for nothing more, no longer wait could win.
                if reward + survival <= best_ratio * cost:
                    break
                running -= finished + counts[arm, level, GIVEN_UP]
        return Choice(best_arm, best_level, 1)

    @staticmethod
    def learn(
        pairs: Floats,
        counts: Floats,
        arms: Floats,
        ladder: Floats,
        settings: Floats,
        arm: int,
        level: int,
        finish_level: int,
        reward: float,
        cost: float,
        rng: np.random.Generator,
    ) -> bool:
        """Count the pull."""
        count_pull(counts, arm, level, finish_level, reward)
        settings[LAST_ARM] = arm
        return False


class BudgetedThompson(ArrayPolicy):
    r"""Budgeted Thompson sampling (Xia et al. 2015): Beta draw of reward / Beta draw of cost.

    Rewards and costs (divided by the largest cost) are turned into Bernoulli trials, so every pair
    keeps two Beta posteriors; the pair of the highest ratio of draws is pulled.
    """

    name = "budgeted-thompson"

    def new_state(self) -> State:
        """No trials yet; pairs count trials, those that paid and those that cost."""
        return self.blank_state(pair_columns=3, settings=[self.levels.largest_cost])

    @staticmethod
    def decide(
        pairs: Floats,
        counts: Floats,
        arms: Floats,
        ladder: Floats,
        settings: Floats,
        epoch: int,
        rng: np.random.Generator,
    ) -> Choice:
        """Draw reward and cost of every pair; return the pair of the highest ratio."""
        n_arms, n_levels = pairs.shape[0], pairs.shape[1]
        best_arm, best_level, best_reward, best_cost = 0, 0, -1.0, 1.0
        for arm in range(n_arms):
            for level in range(n_levels):
                count = pairs[arm, level, PULLS]
                paid, spent = pairs[arm, level, REWARDS], pairs[arm, level, COSTS]
                reward = rng.beta(1.0 + paid, 1.0 + count - paid)
                cost = rng.beta(1.0 + spent, 1.0 + count - spent)
                if reward * best_cost > best_reward * cost:
                    best_arm, best_level, best_reward, best_cost = arm, level, reward, cost
        return Choice(best_arm, best_level, 1)

    @staticmethod
    def learn(
        pairs: Floats,
        counts: Floats,
        arms: Floats,
        ladder: Floats,
        settings: Floats,
        arm: int,
        level: int,
        finish_level: int,
        reward: float,
        cost: float,
        rng: np.random.Generator,
    ) -> bool:
        """Toss a coin for the reward and one for the cost."""
        pairs[arm, level, PULLS] += 1.0
        pairs[arm, level, REWARDS] += rng.random() < reward
        pairs[arm, level, COSTS] += rng.random() < cost / settings[LARGEST_COST]
        return False
