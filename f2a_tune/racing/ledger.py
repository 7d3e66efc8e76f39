"""The record of all outcomes, and the estimates of every configuration's quality.

Scores are oriented so that larger is better. An estimate is the mean over a configuration's folds
after removing the offset of each fold. Decisions compare estimates only with each other or with
their noise, so the scale, shift and sign of the user's scores do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from f2a_tune.outcome import Kind, Outcome
from f2a_tune.racing.curves import Curves
from f2a_tune.racing.pull import Look, Pull

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]

# Prior of the noise: its weight in degrees of freedom, and its value as a share of the variance of
# the configurations' scores.
PRIOR_WEIGHT = 1.0
PRIOR_SHARE = 0.2
# Fold offsets are shrunk as if this many additional configurations had shown an offset of 0.
OFFSET_PRIOR = 1.0
# Scores beyond this magnitude are rescaled, because their squares would overflow.
LARGEST = 1e100


@dataclass(frozen=True)
class Estimates:
    """Estimates of all configurations at one moment; arrays have one entry per configuration."""

    value: Floats
    """Mean score without fold offsets; -inf for a configuration without a score."""
    folds: Counts
    """Number of finished folds."""
    seconds: Floats
    """Mean seconds of the finished folds; NaN without any."""
    noise: float
    """Variance of one fold's score around the configuration's mean."""
    n_scored: int
    """Number of configurations with a score."""
    offsets: Floats
    """What a score of each fold is above one of the first fold."""

    @cached_property
    def scored(self) -> NDArray[np.intp]:
        """Configurations with a score, best first."""
        # The sort is stable: of equal configurations the first one drawn leads, so that ties do
        # not change the leader.
        return np.argsort(-self.value, kind="stable")[: self.n_scored]

    def best(self, count: int) -> NDArray[np.intp]:
        """Return the first ``count`` entries of `scored` without sorting all of them."""
        if self.n_scored <= 4 * count:
            return self.scored[:count]
        least = -np.partition(-self.value, count - 1)[count - 1]
        rows = np.flatnonzero(self.value >= least)
        return rows[np.argsort(-self.value[rows], kind="stable")[:count]]

    @property
    def quantile(self) -> Floats:
        """Rank among all scored configurations, scaled to (0, 1]; 0 without a score.

        The best has 1. Equal values share their mean rank.
        """
        result = np.zeros(len(self.value))
        n = self.n_scored
        if n:
            result[self.scored] = (n + 1 - mean_ranks(self.value[self.scored])) / n
        return result


class Ledger:
    """Record of all pulls and outcomes, with one row per configuration and one column per fold.

    Other modules of `racing` read its arrays but must not write to them.

    Parameters
    ----------
    n_folds : int
        Number of folds of a configuration.
    paired : bool, default=True
        Whether the same fold of two configurations uses the same data.
    efforts : sequence of float, default=None
        Efforts of the levels of growing fits; None if fits do not grow. With levels, the scores
        and seconds of a configuration are those at its best level.
    """

    def __init__(
        self, n_folds: int, *, paired: bool = True, efforts: Sequence[float] | None = None
    ) -> None:
        self.n_folds = n_folds
        self.curves = None if efforts is None else Curves(n_folds, efforts)
        self.paired = paired
        """Whether the same fold of two configurations uses the same data."""
        self.n = 0
        self.n_pulls = 0
        self.n_scored = 0
        self._scores = np.full((64, n_folds), np.nan)
        self._spent = np.zeros((64, n_folds))
        self._pending = np.zeros((64, n_folds), dtype=bool)
        self._failed = np.zeros(64, dtype=bool)
        self._waited = np.zeros((64, n_folds))
        self._longest = np.zeros(64)
        self._first = np.full(64, np.nan)
        # Sums per row, updated with every outcome so that estimates need not read all folds again.
        self._present = np.zeros((64, n_folds))
        self._folds = np.zeros(64, dtype=np.int64)
        self._total = np.zeros(64)
        self._total_seconds = np.zeros(64)
        self._largest = 0.0
        self._estimates: Estimates | None = None

    @property
    def scores(self) -> Floats:
        """Score of every finished fold; NaN elsewhere."""
        return self._scores[: self.n]

    @property
    def seconds(self) -> Floats:
        """Seconds of every finished fold; 0 elsewhere."""
        return self._spent[: self.n]

    @property
    def pending(self) -> Flags:
        """Whether each fold is running now."""
        return self._pending[: self.n]

    @property
    def failed(self) -> Flags:
        """Whether each configuration failed on some fold; it is then excluded for good."""
        return self._failed[: self.n]

    @property
    def fold_waited(self) -> Floats:
        """Longest wait after which each fold was given up; 0 if it was never given up."""
        return self._waited[: self.n]

    @property
    def waited(self) -> Floats:
        """Maximum of `fold_waited` over the folds of each configuration."""
        return self._longest[: self.n]

    @property
    def first_seconds(self) -> Floats:
        """Seconds of each configuration's first finished fold; NaN without one."""
        return self._first[: self.n]

    def start(self, pull: Pull) -> None:
        """Record that a pull has been started."""
        while pull.configuration >= len(self._scores):
            self._grow()
        self.n = max(self.n, pull.configuration + 1)
        if self.curves is not None:
            self.curves.cover(pull.configuration, whole=pull.fresh and pull.level is None)
        self._pending[pull.configuration, pull.fold] = True
        self.n_pulls += 1
        self._estimates = None

    def withdraw(self, pull: Pull) -> None:
        """Undo the start of a pull; also remove its configuration if nothing is known about it."""
        row = pull.configuration
        self._pending[row, pull.fold] = False
        self.n_pulls -= 1
        known = self._folds[row] or self._longest[row] > 0 or self._failed[row]
        if not known and not self._pending[row].any():
            if row == self.n - 1:
                self.n -= 1
            else:
                self._failed[row] = True
        self._estimates = None

    def release(self, pull: Pull) -> None:
        """Record that a pull stopped without an outcome; its configuration is kept."""
        self._pending[pull.configuration, pull.fold] = False
        self.lose(pull.configuration, pull.fold)
        self._estimates = None

    def lose(self, configuration: int, fold: int) -> None:
        """Record that a paused fit is gone; what it has shown is kept."""
        if self.curves is not None:
            self.curves.restart(configuration, fold)

    def finish(self, pull: Pull, outcome: Outcome, looks: Sequence[Look] = ()) -> None:
        """Record the outcome of a pull; a score that is not a finite number is a failure.

        ``looks`` are the scores that a growing fit has reached, also if it was given up later.
        """
        row, fold = pull.configuration, pull.fold
        self._pending[row, fold] = False
        self.n_scored -= self._is_scored(row)
        if self.curves is not None:
            self._finish_growth(self.curves, pull, outcome, looks)
        elif outcome.kind is Kind.FINISHED and is_score(outcome.value):
            if np.isnan(self._first[row]):
                self._first[row] = outcome.seconds
            self._scores[row, fold] = float(outcome.value)
            # Seconds may be unknown (NaN). They are stored as 0 and say nothing about cutoffs.
            self._spent[row, fold] = np.nan_to_num(outcome.seconds)
            self._sum_up(row)
        elif outcome.kind is Kind.GAVE_UP:
            self._give_up(pull, outcome)
        else:
            self._failed[row] = True
        self.n_scored += self._is_scored(row)
        self._estimates = None

    def _give_up(self, pull: Pull, outcome: Outcome) -> None:
        # Time beyond the cutoff, such as a worker hanging before the fit, is not part of the fit.
        row, fold = pull.configuration, pull.fold
        waited = min(outcome.seconds, outcome.cutoff_seconds or pull.cutoff_seconds)
        self._waited[row, fold] = max(self._waited[row, fold], waited)
        self._longest[row] = max(self._longest[row], waited)

    def _finish_growth(
        self, curves: Curves, pull: Pull, outcome: Outcome, looks: Sequence[Look]
    ) -> None:
        row, fold = pull.configuration, pull.fold
        curves.add(row, fold, looks, float(np.nan_to_num(outcome.seconds)))
        reached = curves.reached[row, fold]
        wanted = curves.n_levels - 1 if pull.level is None else pull.level
        if outcome.kind is Kind.GAVE_UP:
            if reached < 0:
                self._give_up(pull, outcome)
        elif outcome.kind is not Kind.FINISHED or reached < 0:
            curves.break_off(row, fold)
        elif reached < wanted and not curves.ended[row, fold]:
            curves.settle(row, fold)
        if pull.level is None:
            curves.restart(row, fold)  # a whole fit is killed at its cutoff, not paused
        view = curves.best(row)
        if view is None:
            self._failed[row] |= bool(curves.ended[row].any())
            return
        if np.isnan(self._first[row]):
            self._first[row] = outcome.seconds
        self._scores[row], self._spent[row] = view.scores, view.seconds
        self._sum_up(row)

    def estimates(self) -> Estimates:
        """Return the current estimates; they are cached until the ledger changes."""
        if self._estimates is None:
            self._estimates = self._estimate()
        return self._estimates

    def _is_scored(self, row: int) -> bool:
        return bool(self._folds[row] > 0 and not self._failed[row])

    def _sum_up(self, row: int) -> None:
        scores = self._scores[row]
        present = ~np.isnan(scores)
        self._present[row] = present
        self._folds[row] = present.sum()
        with np.errstate(over="ignore"):  # such scores are rescaled before the sum is used
            self._total[row] = scores[present].sum()
        self._total_seconds[row] = self._spent[row].sum()
        self._largest = max(self._largest, float(np.abs(scores[present]).max()))

    def _estimate(self) -> Estimates:
        scores, present = self.scores, self._present[: self.n]
        folds, total = self._folds[: self.n].copy(), self._total[: self.n]
        if self._largest > LARGEST:
            scores = _tamed(scores)
            total = np.nansum(scores, axis=1)
        usable = (folds > 0) & ~self.failed
        at_least_one = np.maximum(folds, 1)
        raw = np.where(usable, total / at_least_one, -np.inf)
        better = _better_half(raw, usable)
        several = better[folds[better] > 1]  # only these show how folds differ, and they are few
        offsets = _offsets(scores[several]) if self.paired else np.zeros(self.n_folds)
        value = np.where(usable, (total - present @ offsets) / at_least_one, -np.inf)
        residuals = scores[several] - offsets - value[several, None]
        noise = _noise(residuals, folds[several], value[better])
        mean_seconds = np.where(folds > 0, self._total_seconds[: self.n] / at_least_one, np.nan)
        return Estimates(value, folds, mean_seconds, noise, self.n_scored, offsets)

    def _grow(self) -> None:
        for name, filler in (
            ("_scores", np.nan),
            ("_spent", 0.0),
            ("_pending", False),
            ("_failed", False),
            ("_waited", 0.0),
            ("_longest", 0.0),
            ("_first", np.nan),
            ("_present", 0.0),
            ("_folds", 0),
            ("_total", 0.0),
            ("_total_seconds", 0.0),
        ):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.full_like(old, filler)]))


def median(values: Floats) -> float:
    """Return the median; for a few hundred values this is ten times as fast as NumPy's."""
    ordered, middle = np.sort(values), len(values) // 2
    if len(values) % 2:
        return float(ordered[middle])
    return float((ordered[middle - 1] + ordered[middle]) / 2)


def mean_ranks(descending: Floats) -> Floats:
    """Return the ranks, from 1, of values in descending order; equal values share a mean rank."""
    begins = np.concatenate([[True], descending[1:] != descending[:-1]])
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(descending))
    return np.asarray(((starts + 1 + ends) / 2)[np.cumsum(begins) - 1])


def is_score(value: object) -> bool:
    """Return whether a value is a finite number."""
    if not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that is too large for a float
        return False


def _tamed(scores: Floats) -> Floats:
    """Return rescaled scores whose squares do not overflow; only ratios of differences matter."""
    typical = median(np.abs(scores[~np.isnan(scores)]))
    scale = typical if typical > LARGEST else 1.0
    return np.asarray(np.clip(scores / scale, -LARGEST, LARGEST))


def _better_half(raw: Floats, usable: Flags) -> NDArray[np.intp]:
    rows = np.flatnonzero(usable)
    return rows[raw[rows] >= median(raw[rows])] if len(rows) else rows


def _offsets(scores: Floats) -> Floats:
    """Return the offset of each fold relative to the first one.

    Offsets are medians, so that a single diverged fit does not shift them.
    """
    offsets = np.zeros(scores.shape[1])
    for fold in range(1, scores.shape[1]):
        gaps = scores[:, fold] - scores[:, 0]
        gaps = gaps[~np.isnan(gaps)]
        if len(gaps):
            offsets[fold] = median(gaps) * len(gaps) / (len(gaps) + OFFSET_PRIOR)
    return offsets


def _noise(residuals: Floats, folds: Counts, values: Floats) -> float:
    """Return the pooled variance of one fold's score.

    The variance between the configurations of the better half is a weak prior.
    """
    spread = float(np.var(values)) if len(values) > 1 else 0.0
    total = float(np.nansum(residuals**2)) + PRIOR_WEIGHT * PRIOR_SHARE * spread
    return total / (float((folds - 1).sum()) + PRIOR_WEIGHT)
