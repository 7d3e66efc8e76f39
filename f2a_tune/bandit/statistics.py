"""What pulls teach: counts go in, estimates of every level's reward and cost come out.

One pull informs every level (the paper's conclusion calls this full feedback). A pull that was
given up says only that it was still running then; the wait was fixed before the delay was seen, so
this is independent censoring, and the Kaplan–Meier product estimates the delay law consistently.
The functions are plain Python on arrays, so that compiled simulations run the very same source.
"""

from __future__ import annotations

import numpy as np

from f2a_tune.bandit.levels import Floats, Levels

# Columns of counts (K × D × 4): pulls finished inside a level, the sum of their rewards and of the
# rewards' squares, and pulls given up after it.
FINISHED, REWARD, SQUARE, GIVEN_UP = 0, 1, 2, 3
# First columns of pairs (K × D × …), for estimates by plain averages.
PULLS, REWARDS, COSTS = 0, 1, 2
# First columns of the ladder (D × …): what a pull costs that finishes in a level, or is given up.
FINISH_COST, GIVE_UP_COST = 0, 1


def new_counts(n_arms: int, n_levels: int) -> Floats:
    """Counts of a game in which nothing has been pulled."""
    return np.zeros((n_arms, n_levels, 4))


def cost_ladder(levels: Levels) -> Floats:
    """The two costs of every level as a table."""
    return np.column_stack([levels.finish_costs, levels.give_up_costs])


def count_pull(counts: Floats, arm: int, level: int, finish_level: int, reward: float) -> None:
    """Record a pull that waited to ``level``; it finished if ``finish_level`` is not beyond."""
    if finish_level <= level:
        counts[arm, finish_level, FINISHED] += 1.0
        counts[arm, finish_level, REWARD] += reward
        counts[arm, finish_level, SQUARE] += reward * reward
    else:
        counts[arm, level, GIVEN_UP] += 1.0


def add_pull(pairs: Floats, arm: int, level: int, reward: float, cost: float) -> None:
    """Record a pull for one pair."""
    pairs[arm, level, PULLS] += 1.0
    pairs[arm, level, REWARDS] += reward
    pairs[arm, level, COSTS] += cost


def kaplan_meier(counts: Floats, arm: int, ladder: Floats, pairs: Floats) -> None:
    """Write the estimated E[reward] and E[cost] of every level of one arm into ``pairs``.

    With Y_i pulls running on entering level i, d_i of them finishing inside it with rewards v_i:
    h_i = d_i/Y_i, S_i = Π(1−h_l), R_j = Σ_{i≤j} S_{i−1}·v_i/Y_i,
    C_j = Σ_{i≤j} S_{i−1}·h_i·(cost of finishing in i) + S_j·(cost of giving up after j).
    A level that no pull has entered is taken to finish nothing.
    """
    running = entered(counts, arm, 0)
    survival, reward, paid = 1.0, 0.0, 0.0
    for level in range(len(ladder)):
        finished = counts[arm, level, FINISHED]
        if running > 0:
            hazard = finished / running
            reward += survival * counts[arm, level, REWARD] / running
            paid += survival * hazard * ladder[level, FINISH_COST]
            survival *= 1.0 - hazard
        pairs[arm, level, REWARDS] = reward
        pairs[arm, level, COSTS] = paid + survival * ladder[level, GIVE_UP_COST]
        running -= finished + counts[arm, level, GIVEN_UP]


def entered(counts: Floats, arm: int, level: int) -> float:
    """Y_i: how many pulls of this arm were still running on entering this level."""
    running = 0.0
    for later in range(level, counts.shape[1]):
        running += counts[arm, later, FINISHED] + counts[arm, later, GIVEN_UP]
    return running
