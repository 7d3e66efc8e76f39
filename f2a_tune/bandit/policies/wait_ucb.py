"""Wait-UCB, the paper's algorithm, with its own feedback or with what a pull teaches beside."""

from __future__ import annotations

import math

import numpy as np

from f2a_tune.bandit.levels import Floats, Levels
from f2a_tune.bandit.policies.base import ArrayPolicy, Choice, State
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
# Columns of pairs (K × D × 6) behind those of plain sums: the parts of the index that the epoch
# does not change, namely the rate and the factors of ln s and √ln s.
RATE, LINEAR, ROOT = 3, 4, 5
# Columns of the ladder behind the costs: the constants of the radius.
ALPHA, BETA = 2, 3
# Settings: the smallest cost, which the paper counts as 1, and the kind of feedback.
UNIT, FEEDBACK = 0, 1


class WaitUCB(ArrayPolicy):
    r"""Wait-UCB (Sharoff, Mehta & Ganti, Algorithm 1).

    Index of (k, j) after s epochs, with N pulls of the pair:

        Σr/Σc + α_j·ln s/N + β_j·√(ln s/N),  α_j = 8(j−1)/3,  β_j = √2(√(j−1)+1),

    where j is the level's cost in units of the smallest cost (the paper's lemma needs costs in
    [1, j]). Every pair is pulled once first. With one level it is UCB1.

    Parameters
    ----------
    feedback
        ``"bandit"``: only the pulled pair learns, as in the paper. ``"side"``: a pull also teaches
        every shorter wait; N counts the pulls that waited at least so long. ``"full"``: rewards
        and costs are the Kaplan–Meier estimates from all pulls of the arm, with the same N (a
        lower bound of what the estimate rests on). The paper names both as future work and proves
        nothing for them. With either, the first pull of every arm waits to the last level.
    exploration
        Factor of the confidence radius; 1 is the paper's, 0 is greedy.
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
        """Nothing pulled yet; costs in units of the smallest."""
        unit = self.levels.smallest_cost
        alpha, beta = radius_constants(self.levels)
        radius = np.column_stack([self.exploration * alpha, self.exploration * beta])
        state = self.blank_state(
            pair_columns=6,
            ladder=np.hstack([cost_ladder(self.levels) / unit, radius]),
            settings=[unit, FEEDBACKS.index(self.feedback)],
        )
        # With more than bandit feedback a pull to the last level tells about all the others.
        state.pairs[:, :, RATE] = np.inf if self.feedback == "bandit" else -np.inf
        state.pairs[:, -1, RATE] = np.inf
        return state

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
        """The highest index; a pair that has not been pulled has an infinite one."""
        n_arms, n_levels = pairs.shape[0], pairs.shape[1]
        log_epoch = math.log(max(epoch, 1))
        root_log = math.sqrt(log_epoch)
        best_arm, best_level, highest = 0, 0, -math.inf
        for arm in range(n_arms):
            for level in range(n_levels):
                index = (
                    pairs[arm, level, RATE]
                    + pairs[arm, level, LINEAR] * log_epoch
                    + pairs[arm, level, ROOT] * root_log
                )
                if index > highest:
                    best_arm, best_level, highest = arm, level, index
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
        """Renew the estimates that this pull informs, and their parts of the index."""
        feedback, cost = settings[FEEDBACK], cost / settings[UNIT]
        if feedback == BANDIT:
            add_pull(pairs, arm, level, reward, cost)
            set_index(pairs, ladder, arm, level)
            return False
        for shorter in range(level + 1):
            # What this pull would have paid and cost, had it waited only so long.
            if finish_level <= shorter:
                add_pull(pairs, arm, shorter, reward, cost)
            else:
                add_pull(pairs, arm, shorter, 0.0, ladder[shorter, GIVE_UP_COST])
        last = level
        if feedback == FULL:
            # The index reads only the ratio of reward to cost, so means may stand for sums.
            count_pull(counts, arm, level, finish_level, reward)
            kaplan_meier(counts, arm, ladder, pairs)
            last = pairs.shape[1] - 1
        for informed in range(last + 1):
            if pairs[arm, informed, PULLS] > 0:
                set_index(pairs, ladder, arm, informed)
        return False


def radius_constants(levels: Levels) -> tuple[Floats, Floats]:
    """α_j and β_j of Algorithm 1."""
    beyond = levels.ratios - 1
    return 8 * beyond / 3, math.sqrt(2) * (np.sqrt(beyond) + 1)


def set_index(pairs: Floats, ladder: Floats, arm: int, level: int) -> None:
    """Σr/Σc, α_j/N and β_j/√N: all of the index but ln s."""
    share = 1.0 / pairs[arm, level, PULLS]
    pairs[arm, level, RATE] = pairs[arm, level, REWARDS] / pairs[arm, level, COSTS]
    pairs[arm, level, LINEAR] = ladder[level, ALPHA] * share
    pairs[arm, level, ROOT] = ladder[level, BETA] * math.sqrt(share)
