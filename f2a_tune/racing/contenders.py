"""The configurations that may still win, and the time reserved for validating them.

Everything here is computed from the ledger, and nothing is stored. A reservation keeps time for
the missing folds of one configuration: of the baseline, and of the best configuration that can
still be validated.
"""

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

# Number of best configurations that may get another fold; all others have no chance to win.
CONTENDERS = 64
# Default overhead of a pull. Without it, rates per second of very fast fits are meaningless.
OVERHEAD_SECONDS = 0.005
# The time reserved for missing folds is this multiple of their predicted time.
VALIDATION_MARGIN = 1.5
# The baseline is validated if all its folds and the refit take at most this share of the budget.
BASELINE_SHARE = 0.5


@dataclass(frozen=True)
class Reservation:
    """Time that only the missing folds of one contender may use."""

    index: int
    """Position of the contender in `Contenders.rows`."""
    seconds: float


@dataclass(frozen=True)
class Contenders:
    """The best configurations with the leader first; every array has one entry per contender."""

    rows: Indices
    """Row of the configuration in the ledger."""
    chances: Floats
    """Probability of being better than the leader; for the leader, that of its nearest rival."""
    seconds: Floats
    """Expected seconds of another fold, including the overhead."""
    free: Flags
    """Whether some fold can be run: one that is not done, not running and not hopeless."""
    unstarted: Counts
    """Number of folds that are neither done nor running."""
    hopeless: Flags
    """Whether some fold was given up at the longest timeout, so that no longer wait is left."""

    rounds: Counts
    """Number of consecutive fits that the missing folds take if all workers run them."""
    complete: Flags
    """Whether all folds are done."""
    baseline: int | None
    """Position of the baseline among the contenders; None if it is not among them."""

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        timeouts: tuple[float, ...] | None,
        *,
        n_workers: int = 1,
        overhead_seconds: float = OVERHEAD_SECONDS,
        baseline: int | None = None,
    ) -> Contenders | None:
        """Compute the contenders of a ledger; None if it has no scores yet or only one fold."""
        if not ledger.n_scored or ledger.n_folds == 1:
            return None
        estimates = ledger.estimates()
        rows = estimates.best(CONTENDERS)
        if baseline is not None and not np.isfinite(estimates.value[baseline]):
            baseline = None
        if baseline is not None and baseline not in rows:
            rows = np.append(rows, baseline)
        folds = estimates.folds[rows]
        unstarted = ledger.n_folds - folds - ledger.pending[rows].sum(axis=1)
        usable = open_folds(ledger, rows, timeouts)
        return cls(
            rows=rows,
            chances=_chances(estimates.value[rows], folds, estimates.noise, ledger.n_folds),
            # A fold that was given up will take at least as long as its last wait.
            seconds=_expected_seconds(ledger, rows, usable) + overhead_seconds,
            free=np.asarray(usable.any(axis=1)),
            unstarted=unstarted,
            hopeless=usable.sum(axis=1) < unstarted,
            rounds=-(-unstarted // n_workers),
            complete=folds == ledger.n_folds,
            baseline=None if baseline is None else int(np.flatnonzero(rows == baseline)[0]),
        )

    @property
    def needed(self) -> Floats:
        """Expected seconds of the missing folds of each contender, with all workers on them."""
        return np.asarray(self.rounds * self.seconds)

    def reservations(
        self, seconds_left: float, baseline_seconds: float = 0.0
    ) -> tuple[Reservation, ...]:
        """Return the reservations for the baseline and the best contender that can be validated.

        Folds in flight need no reservation, because they already have a worker. The baseline gets
        one, whether or not it may win, if a fold takes at most ``baseline_seconds``.
        """
        needed, left, found = self.needed, seconds_left, []
        base = self.baseline
        if base is not None and (self.hopeless[base] or self.seconds[base] > baseline_seconds):
            base = None
        if base is not None and 0 < needed[base] <= left:
            found.append(Reservation(base, self._kept(base, left)))
            left -= found[0].seconds
        possible = np.flatnonzero((needed <= left) & ~self.hopeless)
        if len(possible) and needed[possible[0]] > 0 and possible[0] != base:
            found.append(Reservation(int(possible[0]), self._kept(int(possible[0]), left)))
        return tuple(found)

    def _kept(self, index: int, seconds_left: float) -> float:
        return min(VALIDATION_MARGIN * float(self.needed[index]), seconds_left)


def open_folds(ledger: Ledger, rows: Indices, timeouts: tuple[float, ...] | None) -> Flags:
    """Return which folds of these configurations are not done, not running and not hopeless."""
    usable = np.isnan(ledger.scores[rows]) & ~ledger.pending[rows]
    if timeouts is not None:
        usable &= ledger.fold_waited[rows] < timeouts[-1] * (1 - 1e-3)
    return usable


def _expected_seconds(ledger: Ledger, rows: Indices, usable: Flags) -> Floats:
    mean = ledger.estimates().seconds[rows]
    known = mean[mean > 0]
    if len(known) < len(mean):  # where the seconds are unknown, assume the mean of the others
        mean = np.where(mean > 0, mean, float(np.mean(known)) if len(known) else 0.0)
    waits = np.where(usable, ledger.fold_waited[rows], np.inf).min(axis=1)
    return np.asarray(np.maximum(mean, np.where(np.isfinite(waits), waits, 0.0)))


def _chances(value: Floats, folds: Counts, noise: float, n_folds: int) -> Floats:
    """Return every configuration's probability of being better than the leader.

    The finished folds are treated as a sample without replacement from the ``n_folds`` folds.
    """
    variance = noise * np.maximum(1 / folds + 1 / folds[0] - 2 / n_folds, 0.0)
    gaps = value - value[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        chances = np.where(variance > 0, ndtr(gaps / np.sqrt(variance)), 0.0)
    # Without noise, only a configuration that is level with the leader can still be better.
    chances = np.where((variance <= 0) & (gaps >= 0), 0.5, chances)
    chances[0] = chances[1:].max() if len(chances) > 1 else 0.0
    return np.asarray(chances)
