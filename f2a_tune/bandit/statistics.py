"""Estimates of the reward and cost of every level from the pulls of an arm.

One pull carries information on every level (the paper's conclusion calls this full feedback). A
pull that was given up was still running at that time. The wait is chosen before the delay is
observed, so this is independent censoring, and the Kaplan–Meier product estimates the delay
distribution consistently. The functions are plain Python on arrays because compiled simulations
compile the same source.
"""

from __future__ import annotations

import numpy as np

from f2a_tune.bandit.levels import Floats, Levels

# Columns of counts (K × D × 4): number of pulls that finished in a level, the sum of their rewards
# and of their squared rewards, and number of pulls given up at the end of the level.
FINISHED, REWARD, SQUARE, GIVEN_UP = 0, 1, 2, 3
# First columns of pairs (K × D × …), for estimates by plain averages.
PULLS, REWARDS, COSTS = 0, 1, 2
# First columns of the ladder (D × …): cost of a pull that finishes in a level or is given up.
FINISH_COST, GIVE_UP_COST = 0, 1


def new_counts(n_arms: int, n_levels: int) -> Floats:
    """Return the counts before the first pull."""
    return np.zeros((n_arms, n_levels, 4))


def cost_ladder(levels: Levels) -> Floats:
    """Return the two costs of every level as a table (D × 2)."""
    return np.column_stack([levels.finish_costs, levels.give_up_costs])


def count_pull(counts: Floats, arm: int, level: int, finish_level: int, reward: float) -> None:
    """Count a pull that waited until ``level``; it finished if ``finish_level <= level``."""
    if finish_level <= level:
        counts[arm, finish_level, FINISHED] += 1.0
        counts[arm, finish_level, REWARD] += reward
        counts[arm, finish_level, SQUARE] += reward * reward
    else:
        counts[arm, level, GIVEN_UP] += 1.0


def add_pull(pairs: Floats, arm: int, level: int, reward: float, cost: float) -> None:
    """Add the reward and cost of a pull to the sums of one pair."""
    pairs[arm, level, PULLS] += 1.0
    pairs[arm, level, REWARDS] += reward
    pairs[arm, level, COSTS] += cost


def kaplan_meier(counts: Floats, arm: int, ladder: Floats, pairs: Floats, looks: Floats) -> None:
    """Write the estimated E[reward] and E[cost] of every level of one arm into ``pairs``.

    Y_i is the number of pulls running at the start of level i, d_i the number of those that
    finished in it, and v_i the sum of their rewards:
    h_i = d_i/Y_i, S_i = Π(1−h_l), R_j = Σ_{i≤j} S_{i−1}·v_i/Y_i + S_j·(partial reward at j),
    C_j = Σ_{i≤j} S_{i−1}·h_i·(cost of finishing in i) + S_j·(cost of giving up after j).
    In a level that no pull has entered, no pull is assumed to finish (h_i = 0).
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
        pairs[arm, level, REWARDS] = reward + survival * looks[arm, level]
        pairs[arm, level, COSTS] = paid + survival * ladder[level, GIVE_UP_COST]
        running -= finished + counts[arm, level, GIVEN_UP]


def entered(counts: Floats, arm: int, level: int) -> float:
    """Return Y_i, the number of pulls of this arm that were running at the start of a level."""
    running = 0.0
    for later in range(level, counts.shape[1]):
        running += counts[arm, later, FINISHED] + counts[arm, later, GIVEN_UP]
    return running
