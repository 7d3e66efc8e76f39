"""What is known of every configuration: outcomes go in, estimates and their noise come out.

Scores are oriented so that larger is better. An estimate is the mean over a configuration's folds
after every fold's own offset is removed; all estimates are differences in units of the score, and
decisions only compare them with each other or with their noise, so scale and sign do not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from f2a_tune.outcome import Kind, Outcome
from f2a_tune.racing.pull import Pull

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]

# The noise's prior: worth this many degrees of freedom, at this share of the spread of scores.
PRIOR_WEIGHT = 1.0
PRIOR_SHARE = 0.2
# An offset is believed as if this many configurations had shown none.
OFFSET_PRIOR = 1.0
LARGEST = 1e100


@dataclass(frozen=True)
class Estimates:
    """What the ledger believes of all configurations at one moment."""

    value: Floats
    """Mean score without fold offsets; -inf for a configuration without a score."""
    folds: Counts
    seconds: Floats
    """Mean seconds of its finished folds, NaN without one."""
    noise: float
    """Variance of one fold's score around the configuration's mean."""
    n_scored: int

    @cached_property
    def scored(self) -> NDArray[np.intp]:
        """Configurations with a score, best first."""
        # Stable: among equals the one drawn first leads, so ties never make the leader jump.
        return np.argsort(-self.value, kind="stable")[: self.n_scored]

    def best(self, count: int) -> NDArray[np.intp]:
        """The first so many of `scored`, without sorting all."""
        if self.n_scored <= 4 * count:
            return self.scored[:count]
        least = -np.partition(-self.value, count - 1)[count - 1]
        rows = np.flatnonzero(self.value >= least)
        return rows[np.argsort(-self.value[rows], kind="stable")[:count]]

    @property
    def quantile(self) -> Floats:
        """Rank among all scored in (0, 1], equals sharing their mean rank; 0 without a score."""
        result = np.zeros(len(self.value))
        n = self.n_scored
        if n:
            result[self.scored] = (n + 1 - mean_ranks(self.value[self.scored])) / n
        return result


class Ledger:
    """Grows by pulls and outcomes; forgets nothing.

    Columns are public to the rest of `racing`, which reads them and never writes.
    """

    def __init__(self, n_folds: int, *, paired: bool = True) -> None:
        self.n_folds = n_folds
        self.paired = paired
        """Whether the same fold of two configurations is the same data."""
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
        # What estimates need of a row, kept so that none of them has to read all folds again.
        self._present = np.zeros((64, n_folds))
        self._folds = np.zeros(64, dtype=np.int64)
        self._total = np.zeros(64)
        self._total_seconds = np.zeros(64)
        self._largest = 0.0
        self._estimates: Estimates | None = None

    @property
    def scores(self) -> Floats:
        """Score of every finished fold, NaN elsewhere."""
        return self._scores[: self.n]

    @property
    def seconds(self) -> Floats:
        """Seconds of every finished fold, 0 elsewhere."""
        return self._spent[: self.n]

    @property
    def pending(self) -> Flags:
        """Folds that are running now."""
        return self._pending[: self.n]

    @property
    def failed(self) -> Flags:
        """Configurations that failed on some fold: out for good."""
        return self._failed[: self.n]

    @property
    def fold_waited(self) -> Floats:
        """Longest wait that a fold was given up at; 0 if it never was."""
        return self._waited[: self.n]

    @property
    def waited(self) -> Floats:
        """The same for a configuration, over its folds."""
        return self._longest[: self.n]

    @property
    def first_seconds(self) -> Floats:
        """Seconds of the first finished fold, NaN while there is none."""
        return self._first[: self.n]

    def start(self, pull: Pull) -> None:
        """A pull has been handed out."""
        while pull.configuration >= len(self._scores):
            self._grow()
        self.n = max(self.n, pull.configuration + 1)
        self._pending[pull.configuration, pull.fold] = True
        self.n_pulls += 1
        self._estimates = None

    def withdraw(self, pull: Pull) -> None:
        """A pull came to nothing; a configuration of which nothing is known is forgotten."""
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
        """A pull does not run any more; its configuration stays, whatever is known of it."""
        self._pending[pull.configuration, pull.fold] = False
        self._estimates = None

    def finish(self, pull: Pull, outcome: Outcome) -> None:
        """A pull has ended; a score that is not a finite number counts as a failure."""
        row, fold = pull.configuration, pull.fold
        self._pending[row, fold] = False
        self.n_scored -= self._is_scored(row)
        if outcome.kind is Kind.FINISHED and is_score(outcome.value):
            if np.isnan(self._first[row]):
                self._first[row] = outcome.seconds
            self._scores[row, fold] = float(outcome.value)
            # Seconds may be unknown (NaN): then it says nothing about how long to wait.
            self._spent[row, fold] = np.nan_to_num(outcome.seconds)
            self._sum_up(row, fold)
        elif outcome.kind is Kind.GAVE_UP:
            # What it took beyond its cutoff, a worker that hung before the fit, is not the fit's.
            cutoff = outcome.cutoff_seconds or pull.cutoff_seconds
            waited = min(outcome.seconds, cutoff)
            self._waited[row, fold] = max(self._waited[row, fold], waited)
            self._longest[row] = max(self._longest[row], waited)
        else:
            self._failed[row] = True
        self.n_scored += self._is_scored(row)
        self._estimates = None

    def estimates(self) -> Estimates:
        """What is believed now."""
        if self._estimates is None:
            self._estimates = self._estimate()
        return self._estimates

    def _is_scored(self, row: int) -> bool:
        return bool(self._folds[row] > 0 and not self._failed[row])

    def _sum_up(self, row: int, fold: int) -> None:
        scores = self._scores[row]
        present = ~np.isnan(scores)
        self._present[row] = present
        self._folds[row] = present.sum()
        with np.errstate(over="ignore"):  # of scores that are tamed before they are used
            self._total[row] = scores[present].sum()
        self._total_seconds[row] = self._spent[row].sum()
        self._largest = max(self._largest, abs(float(scores[fold])))

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
        several = better[folds[better] > 1]  # only these say how folds differ; they are few
        offsets = _offsets(scores[several]) if self.paired else np.zeros(self.n_folds)
        value = np.where(usable, (total - present @ offsets) / at_least_one, -np.inf)
        residuals = scores[several] - offsets - value[several, None]
        noise = _noise(residuals, folds[several], value[better])
        mean_seconds = np.where(folds > 0, self._total_seconds[: self.n] / at_least_one, np.nan)
        return Estimates(value, folds, mean_seconds, noise, self.n_scored)

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
    """Of at least one value; NumPy's takes ten times as long for a few hundred."""
    ordered, middle = np.sort(values), len(values) // 2
    if len(values) % 2:
        return float(ordered[middle])
    return float((ordered[middle - 1] + ordered[middle]) / 2)


def mean_ranks(descending: Floats) -> Floats:
    """Ranks from 1 of values that fall; equals share their mean rank."""
    begins = np.concatenate([[True], descending[1:] != descending[:-1]])
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(descending))
    return np.asarray(((starts + 1 + ends) / 2)[np.cumsum(begins) - 1])


def is_score(value: object) -> bool:
    """Whether a value is a finite number."""
    if not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _tamed(scores: Floats) -> Floats:
    """Scores whose squares are floats; only ratios of differences matter."""
    typical = median(np.abs(scores[~np.isnan(scores)]))
    scale = typical if typical > LARGEST else 1.0
    return np.asarray(np.clip(scores / scale, -LARGEST, LARGEST))


def _better_half(raw: Floats, usable: Flags) -> NDArray[np.intp]:
    rows = np.flatnonzero(usable)
    return rows[raw[rows] >= median(raw[rows])] if len(rows) else rows


def _offsets(scores: Floats) -> Floats:
    """How much each fold lies above the first one: medians, so a diverged fit moves nothing."""
    offsets = np.zeros(scores.shape[1])
    for fold in range(1, scores.shape[1]):
        gaps = scores[:, fold] - scores[:, 0]
        gaps = gaps[~np.isnan(gaps)]
        if len(gaps):
            offsets[fold] = median(gaps) * len(gaps) / (len(gaps) + OFFSET_PRIOR)
    return offsets


def _noise(residuals: Floats, folds: Counts, values: Floats) -> float:
    """Pooled variance of one fold, with the spread of the better half as a weak prior."""
    spread = float(np.var(values)) if len(values) > 1 else 0.0
    total = float(np.nansum(residuals**2)) + PRIOR_WEIGHT * PRIOR_SHARE * spread
    return total / (float((folds - 1).sum()) + PRIOR_WEIGHT)
