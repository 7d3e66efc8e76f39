"""The configurations that may still win: a ledger goes in, the worth of another fold comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from f2a_tune.racing.ledger import Ledger

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

CONTENDERS = 64  # best configurations that may be continued; the others have no chance
OVERHEAD_SECONDS = 0.005  # of any pull: without it a rate of very fast fits means nothing
VALIDATION_MARGIN = 1.5  # of the predicted seconds, kept for a configuration's missing folds


@dataclass(frozen=True)
class Contenders:
    """The best configurations, the leader first."""

    rows: Indices
    chances: Floats
    """That it is better than the leader; for the leader, that its nearest rival is."""
    seconds: Floats
    """What another fold is expected to take."""
    free: Flags
    """Whether a fold is neither done nor running nor hopeless."""
    unstarted: Counts
    """Folds neither done nor running."""
    hopeless: Flags
    """Whether a fold has outlasted the longest timeout there is."""

    @classmethod
    def of(cls, ledger: Ledger, timeouts: tuple[float, ...] | None) -> Contenders | None:
        """Read them from a ledger; None while nothing has a score, or there is one fold only."""
        if not ledger.n_scored or ledger.n_folds == 1:
            return None
        estimates = ledger.estimates()
        rows = estimates.best(CONTENDERS)
        folds = estimates.folds[rows]
        unstarted = ledger.n_folds - folds - ledger.pending[rows].sum(axis=1)
        usable = open_folds(ledger, rows, timeouts)
        return cls(
            rows=rows,
            chances=_chances(estimates.value[rows], folds, estimates.noise, ledger.n_folds),
            # A fold that was given up once will take at least as long again.
            seconds=_expected_seconds(ledger, rows, usable) + OVERHEAD_SECONDS,
            free=np.asarray(usable.any(axis=1)),
            unstarted=unstarted,
            hopeless=usable.sum(axis=1) < unstarted,
        )

    def reserve(self, seconds_left: float, n_workers: int) -> tuple[int | None, float]:
        """The best contender that can still be validated, and the seconds to keep for that.

        Folds in flight have their worker already. None if even the best needs nothing more.
        """
        rounds = np.ceil(self.unstarted / np.minimum(n_workers, np.maximum(self.unstarted, 1)))
        needed = np.where(self.unstarted > 0, rounds * self.seconds, 0.0)
        possible = np.flatnonzero((needed <= seconds_left) & ~self.hopeless)
        if not len(possible) or needed[possible[0]] == 0:
            return None, 0.0
        best = int(possible[0])
        return best, min(VALIDATION_MARGIN * float(needed[best]), seconds_left)


def open_folds(ledger: Ledger, rows: Indices, timeouts: tuple[float, ...] | None) -> Flags:
    """Which folds of these configurations may be run: not done, not running, not hopeless."""
    usable = np.isnan(ledger.scores[rows]) & ~ledger.pending[rows]
    if timeouts is not None:
        usable &= ledger.fold_waited[rows] < timeouts[-1] * (1 - 1e-3)
    return usable


def _expected_seconds(ledger: Ledger, rows: Indices, usable: Flags) -> Floats:
    mean = ledger.estimates().seconds[rows]
    known = mean[mean > 0]
    if len(known) < len(mean):  # nobody knows what these took: as long as others
        mean = np.where(mean > 0, mean, float(np.mean(known)) if len(known) else 0.0)
    waits = np.where(usable, ledger.fold_waited[rows], np.inf).min(axis=1)
    return np.asarray(np.maximum(mean, np.where(np.isfinite(waits), waits, 0.0)))


def _chances(value: Floats, folds: Counts, noise: float, n_folds: int) -> Floats:
    """Chance to be better than the leader; folds are a sample without replacement of n_folds."""
    variance = noise * np.maximum(1 / folds + 1 / folds[0] - 2 / n_folds, 0.0)
    gaps = value - value[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        chances = np.where(variance > 0, ndtr(gaps / np.sqrt(variance)), 0.0)
    # Without noise only equals can still turn out better.
    chances = np.where((variance <= 0) & (gaps >= 0), 0.5, chances)
    chances[0] = chances[1:].max() if len(chances) > 1 else 0.0
    return np.asarray(chances)
