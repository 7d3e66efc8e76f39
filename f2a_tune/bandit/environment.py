"""A simulated game's outcomes and the ledger of a run: random numbers in, recorded pulls out.

Plain Python on arrays: the reference path runs it as it is, the compiled one compiles these lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f2a_tune.bandit.game import Game
from f2a_tune.bandit.levels import Floats


class Ledger(NamedTuple):
    """One run: pulls of every pair so far, and pulls and reward at every checkpoint passed."""

    checkpoints: Floats
    pulls: NDArray[np.int64]
    passed: NDArray[np.int64]
    pulls_at: NDArray[np.int64]
    reward_at: Floats


def new_ledger(game: Game, checkpoints: Floats) -> Ledger:
    """The ledger of a run before its first pull."""
    shape = (game.n_arms, game.n_levels)
    return Ledger(
        checkpoints=checkpoints,
        pulls=np.zeros(shape, np.int64),
        passed=np.zeros(1, np.int64),
        pulls_at=np.zeros((len(checkpoints), *shape), np.int64),
        reward_at=np.zeros(len(checkpoints)),
    )


def draw_outcome(cumulative: Floats, arm: int, rng: np.random.Generator) -> int:
    """The number of the outcome of one pull of this arm."""
    draw = rng.random()
    outcome = 0
    while draw >= cumulative[arm, outcome]:
        outcome += 1
    return outcome


def pass_checkpoints(ledger: Ledger, spent: float, earned: float) -> float:
    """Record every checkpoint below ``spent``; return the next one, or -1 if the budget is over.

    To be called before the pull that goes beyond is counted: a checkpoint knows only what fits.
    """
    while ledger.passed[0] < len(ledger.checkpoints):
        if spent <= ledger.checkpoints[ledger.passed[0]]:
            return float(ledger.checkpoints[ledger.passed[0]])
        ledger.pulls_at[ledger.passed[0]] = ledger.pulls
        ledger.reward_at[ledger.passed[0]] = earned
        ledger.passed[0] += 1
    return -1.0
