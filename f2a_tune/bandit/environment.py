"""Random outcomes of a simulated game, and the ledger that records the pulls of one run.

The functions are plain Python on arrays. The Python engine of the simulator runs them as they are
and the numba engine compiles the same source, so use only what numba can compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f2a_tune.bandit.game import Game
from f2a_tune.bandit.levels import Floats


class GameLedger(NamedTuple):
    """Record of one run: pulls of every pair, and pulls and reward at each passed checkpoint."""

    checkpoints: Floats
    pulls: NDArray[np.int64]
    passed: NDArray[np.int64]
    pulls_at: NDArray[np.int64]
    reward_at: Floats


def new_ledger(game: Game, checkpoints: Floats) -> GameLedger:
    """Return the ledger of a run before its first pull."""
    shape = (game.n_arms, game.n_levels)
    return GameLedger(
        checkpoints=checkpoints,
        pulls=np.zeros(shape, np.int64),
        passed=np.zeros(1, np.int64),
        pulls_at=np.zeros((len(checkpoints), *shape), np.int64),
        reward_at=np.zeros(len(checkpoints)),
    )


def draw_outcome(cumulative: Floats, arm: int, rng: np.random.Generator) -> int:
    """Draw the outcome of one pull of this arm and return its index."""
    draw = rng.random()
    outcome = 0
    while draw >= cumulative[arm, outcome]:
        outcome += 1
    return outcome


def pass_checkpoints(ledger: GameLedger, spent: float, earned: float) -> float:
    """Record every checkpoint below ``spent``; return the next one, or -1 after the last.

    Call this before counting the pull that exceeds a checkpoint: a checkpoint includes only pulls
    that fit completely into its budget.
    """
    while ledger.passed[0] < len(ledger.checkpoints):
        if spent <= ledger.checkpoints[ledger.passed[0]]:
            return float(ledger.checkpoints[ledger.passed[0]])
        ledger.pulls_at[ledger.passed[0]] = ledger.pulls
        ledger.reward_at[ledger.passed[0]] = earned
        ledger.passed[0] += 1
    return -1.0
