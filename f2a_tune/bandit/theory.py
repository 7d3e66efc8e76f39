"""The paper's guarantees as numbers: bounds on Wait-UCB's pulls and regret, the ratio's radius.

Costs are counted in units of the smallest cost, as the paper does, so any levels may be used.
"""

from __future__ import annotations

import math

import numpy as np

from f2a_tune.bandit.game import Game
from f2a_tune.bandit.levels import Floats
from f2a_tune.bandit.policies.wait_ucb import radius_constants
from f2a_tune.checks import positive_integer, positive_number, real_number


def pull_bound(game: Game, budget: float) -> Floats:
    """Lemma 3: a bound on Wait-UCB's expected pulls of every suboptimal pair (K×D).

    ln(T)·((β_j + √(β_j² + 2α_j·Δ))/Δ)² + 4π²/3, infinite for the best pairs.
    """
    unit = game.levels.smallest_cost
    horizon = max(positive_number("budget", budget) / unit, 1.0)
    alpha, beta = radius_constants(game.levels)
    gaps = game.gaps() * unit
    with np.errstate(divide="ignore"):
        root = (beta + np.sqrt(beta**2 + 2 * alpha * gaps)) / gaps
    return np.asarray(math.log(horizon) * root**2 + 4 * math.pi**2 / 3)


def regret_bound(game: Game, budget: float) -> float:
    """Theorem 2: a bound on Wait-UCB's pseudo-regret, Σ E[cost]·Δ·(bound on the pulls).

    It bounds Σ over pulls of (g*·E[cost] − E[reward]); the paper's t·g* − Σr adds O(1) to it.
    """
    gaps = game.gaps()
    pulls = np.where(gaps > 0, pull_bound(game, budget), 0.0)
    return float((game.mean_costs * gaps * pulls).sum())


def ratio_confidence(
    pulls: int, largest_cost: float, delta: float, mean_cost: float = 1.0
) -> float:
    """Lemma 2: |Σr/Σc − E[r]/E[c]| is below this with probability at least 1 − ``delta``.

    Rewards lie in [0, 1], costs in [1, ``largest_cost``]; ``mean_cost`` is E[c] if it is known.

    Examples
    --------
    >>> round(ratio_confidence(pulls=1000, largest_cost=5, delta=0.05), 3)
    0.152
    """
    count = positive_integer("pulls", pulls)
    largest = real_number("largest_cost", largest_cost)
    if not (math.isfinite(largest) and largest >= 1):
        raise ValueError(f"largest_cost must be at least 1 (the unit), got {largest_cost!r}.")
    if not 0 < real_number("delta", delta) <= 1:
        raise ValueError(f"delta must lie in (0, 1], got {delta!r}.")
    mean = real_number("mean_cost", mean_cost)
    if not 1 - 1e-9 <= mean <= largest * (1 + 1e-9):  # means are sums, and sums are rounded
        raise ValueError(f"mean_cost must lie in [1, {largest}], got {mean_cost!r}.")
    beyond, logarithm = largest - 1, math.log(4 / delta)
    return (
        math.sqrt(beyond * logarithm / (2 * count))
        + 2 * beyond * logarithm / (3 * mean * count)
        + math.sqrt(logarithm / (2 * count))
    )
