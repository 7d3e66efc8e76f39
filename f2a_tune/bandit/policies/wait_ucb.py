"""Wait-UCB, the algorithm of the paper, and two variants that learn more from every pull."""

from __future__ import annotations

import math

import numpy as np

from f2a_tune.bandit.levels import Floats, Levels
from f2a_tune.bandit.policies.base import ArrayPolicy, Choice, Observation, State
from f2a_tune.bandit.statistics import (
    COSTS,
    GIVE_UP_COST,
    PULLS,
    REWARDS,
    add_pull,
    cost_ladder,
    count_pull,
    kaplan_meier,
)
from f2a_tune.checks import known_name, real_number

FEEDBACKS = ("bandit", "side", "full")
BANDIT, SIDE, FULL = range(3)
# Columns of pairs (K × D × 6) after the plain sums: the parts of the index that do not depend on
# the epoch s, which are the rate and the factors of ln s and √ln s.
RATE, LINEAR, ROOT = 3, 4, 5
# Columns of the ladder after the costs: the constants α_j and β_j of the confidence radius.
ALPHA, BETA = 2, 3
# Settings: the smallest cost, which is the paper's unit of cost, and the kind of feedback.
UNIT, FEEDBACK = 0, 1


class WaitUCB(ArrayPolicy):
    r"""Wait-UCB (Sharoff, Mehta & Ganti, Algorithm 1).

    It pulls the pair (k, j) with the highest index. After s epochs with N pulls of the pair, the
    index is

        Σr/Σc + α_j·ln s/N + β_j·√(ln s/N),  α_j = 8(j−1)/3,  β_j = √2(√(j−1)+1),

    where j is the level's cost in units of the smallest cost (the paper's lemma requires costs in
    [1, j]). Every pair is pulled once first. With a single level, Wait-UCB is UCB1.

    Parameters
    ----------
    feedback : {"bandit", "side", "full"}, default="bandit"
        Which estimates a pull updates.

        - ``"bandit"``: those of the pulled pair only, as in the paper.
        - ``"side"``: also those of all shorter waits. N counts the pulls that waited at least as
          long as the level.
        - ``"full"``: those of all waits. Rewards and costs are Kaplan–Meier estimates from all
          pulls of the arm, with the same N as ``"side"`` (a lower bound of the number of pulls
          that the estimate is based on).

        With ``"side"`` and ``"full"``, the first pull of every arm waits until the last level. The
        paper mentions both as future work and proves no bound for them. If pulls that are given up
        pay a partial reward, both also use the looks of a pull at shorter waits.
    exploration : float, default=1.0
        Factor of the confidence radius. 1 is the paper's algorithm, 0 is greedy.
    """

    name = "wait-ucb"

    def __init__(self, feedback: str = "bandit", exploration: float = 1.0) -> None:
        self.feedback = known_name("feedback", feedback, FEEDBACKS)
        self.exploration = real_number("exploration", exploration)
        if not (math.isfinite(self.exploration) and self.exploration >= 0):
            raise ValueError(f"exploration must be at least 0, got {exploration!r}.")
        if feedback != "bandit":
            self.name += f"-{feedback}"
        if self.exploration != 1:
            self.name += f" (exploration {self.exploration:g})"

    def new_state(self) -> State:
        """Return the state before the first pull, with costs in units of the smallest cost."""
        unit = self.levels.smallest_cost
        alpha, beta = radius_constants(self.levels)
        radius = np.column_stack([self.exploration * alpha, self.exploration * beta])
        state = self.blank_state(
            pair_columns=6,
            ladder=np.hstack([cost_ladder(self.levels) / unit, radius]),
            settings=[unit, FEEDBACKS.index(self.feedback)],
        )
        # Except with bandit feedback, a pull to the last level updates all levels of its arm.
        state.pairs[:, :, RATE] = np.inf if self.feedback == "bandit" else -np.inf
        state.pairs[:, -1, RATE] = np.inf
        return state

    @staticmethod
    def decide(state: State, epoch: int, rng: np.random.Generator) -> Choice:
        """Return the pair with the highest index; it is infinite for a pair not yet pulled."""
        n_arms, n_levels = state.pairs.shape[0], state.pairs.shape[1]
        log_epoch = math.log(max(epoch, 1))
        root_log = math.sqrt(log_epoch)
        best_arm, best_level, highest = 0, 0, -math.inf
        for arm in range(n_arms):
            for level in range(n_levels):
                index = (
                    state.pairs[arm, level, RATE]
                    + state.pairs[arm, level, LINEAR] * log_epoch
                    + state.pairs[arm, level, ROOT] * root_log
                )
                if index > highest:
                    best_arm, best_level, highest = arm, level, index
        return Choice(best_arm, best_level, 1)

    @staticmethod
    def learn(state: State, seen: Observation, rng: np.random.Generator) -> bool:
        """Update all estimates to which this pull contributes, and their parts of the index."""
        feedback, cost = state.settings[FEEDBACK], seen.cost / state.settings[UNIT]
        if feedback == BANDIT:
            add_pull(state.pairs, seen.arm, seen.level, seen.reward, cost)
            set_index(state.pairs, state.ladder, seen.arm, seen.level)
            return False
        for shorter in range(seen.level + 1):
            # Add the reward and cost that this pull would have had with the shorter wait.
            if seen.finish_level <= shorter:
                add_pull(state.pairs, seen.arm, shorter, seen.reward, cost)
            else:
                partial, waited = state.looks[seen.arm, shorter], state.ladder[shorter]
                add_pull(state.pairs, seen.arm, shorter, partial, waited[GIVE_UP_COST])
        last = seen.level
        if feedback == FULL:
            # The index uses only the ratio of reward to cost, so means can replace the sums.
            count_pull(state.counts, seen.arm, seen.level, seen.finish_level, seen.reward)
            kaplan_meier(state.counts, seen.arm, state.ladder, state.pairs, state.looks)
            last = state.pairs.shape[1] - 1
        for informed in range(last + 1):
            if state.pairs[seen.arm, informed, PULLS] > 0:
                set_index(state.pairs, state.ladder, seen.arm, informed)
        return False


def radius_constants(levels: Levels) -> tuple[Floats, Floats]:
    """Return the constants α_j and β_j of Algorithm 1 for every level."""
    beyond = levels.ratios - 1
    return 8 * beyond / 3, math.sqrt(2) * (np.sqrt(beyond) + 1)


def set_index(pairs: Floats, ladder: Floats, arm: int, level: int) -> None:
    """Compute the parts of the index that do not depend on s: Σr/Σc, α_j/N and β_j/√N."""
    share = 1.0 / pairs[arm, level, PULLS]
    pairs[arm, level, RATE] = pairs[arm, level, REWARDS] / pairs[arm, level, COSTS]
    pairs[arm, level, LINEAR] = ladder[level, ALPHA] * share
    pairs[arm, level, ROOT] = ladder[level, BETA] * math.sqrt(share)
