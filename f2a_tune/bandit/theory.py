"""The theoretical guarantees of the paper: bounds on the pulls and the regret of Wait-UCB.

Costs are converted to units of the smallest cost, as in the paper, so games may use any levels.
"""

from __future__ import annotations

import math

import numpy as np

from f2a_tune.bandit.game import Game
from f2a_tune.bandit.levels import Floats
from f2a_tune.bandit.policies.wait_ucb import radius_constants
from f2a_tune.checks import positive_integer, positive_number, real_number


def pull_bound(game: Game, budget: float) -> Floats:
    """Return an upper bound on Wait-UCB's expected pulls of every pair (K×D), by Lemma 3.

    The bound is ln(T)·((β_j + √(β_j² + 2α_j·Δ))/Δ)² + 4π²/3; it is infinite for the best pairs.

    Parameters
    ----------
    game : Game
        The game that is played.
    budget : float
        Total cost T of the run, in the unit of the game's levels.
    """
    unit = game.levels.smallest_cost
    horizon = max(positive_number("budget", budget) / unit, 1.0)
    alpha, beta = radius_constants(game.levels)
    gaps = game.gaps() * unit
    with np.errstate(divide="ignore"):
        root = (beta + np.sqrt(beta**2 + 2 * alpha * gaps)) / gaps
    return np.asarray(math.log(horizon) * root**2 + 4 * math.pi**2 / 3)


def regret_bound(game: Game, budget: float) -> float:
    """Return an upper bound on Wait-UCB's pseudo-regret, by Theorem 2.

    The bound is Σ E[cost]·Δ·(bound on the pulls) over all pairs. It bounds the pseudo-regret,
    Σ over pulls of (g*·E[cost] − E[reward]); the regret t·g* − Σr of the paper adds O(1).

    Parameters
    ----------
    game : Game
        The game that is played.
    budget : float
        Total cost of the run, in the unit of the game's levels.
    """
    gaps = game.gaps()
    pulls = np.where(gaps > 0, pull_bound(game, budget), 0.0)
    return float((game.mean_costs * gaps * pulls).sum())


def ratio_confidence(
    pulls: int, largest_cost: float, delta: float, mean_cost: float = 1.0
) -> float:
    """Return the confidence radius of a ratio of means, by Lemma 2.

    |Σr/Σc − E[r]/E[c]| is below this radius with probability at least 1 − ``delta``, if rewards
    lie in [0, 1] and costs in [1, ``largest_cost``].

    Parameters
    ----------
    pulls : int
        Number of pulls in the sums.
    largest_cost : float
        Largest possible cost of a pull, in units of the smallest.
    delta : float
        Probability that the radius is exceeded, in (0, 1].
    mean_cost : float, default=1.0
        E[c] if it is known. The default is the smallest possible value, which is always valid.

    Examples
    --------
    >>> round(ratio_confidence(pulls=1000, largest_cost=5, delta=0.05), 3)
    0.152
    """
    count = positive_integer("pulls", pulls)
    largest = real_number("largest_cost", largest_cost)
    if not (math.isfinite(largest) and largest >= 1):
        raise ValueError(
            f"largest_cost must be at least 1, got {largest_cost!r}. Divide all costs by the "
            "smallest one first."
        )
    if not 0 < real_number("delta", delta) <= 1:
        raise ValueError(f"delta must lie in (0, 1], got {delta!r}.")
    mean = real_number("mean_cost", mean_cost)
    if not 1 - 1e-9 <= mean <= largest * (1 + 1e-9):  # a computed mean has rounding errors
        raise ValueError(f"mean_cost must lie in [1, {largest}], got {mean_cost!r}.")
    beyond, logarithm = largest - 1, math.log(4 / delta)
    return (
        math.sqrt(beyond * logarithm / (2 * count))
        + 2 * beyond * logarithm / (3 * mean * count)
        + math.sqrt(logarithm / (2 * count))
    )
