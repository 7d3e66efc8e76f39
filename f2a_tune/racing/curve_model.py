"""A model of learning curves: what a configuration may reach at each level, and in how long.

One Gaussian process over (configuration, logarithm of the effort) predicts scores, as normal
scores of their ranks. Another one over configurations predicts the seconds. Growing a fit is worth
the expected improvement at the level where it is best to stop, per second until then. Looking only
at the next level would miss fits that improve late.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from f2a_tune.racing.curves import Curves
from f2a_tune.racing.gaussian import GaussianProcess, Hyperparameters
from f2a_tune.racing.ledger import Estimates, Ledger, mean_ranks
from f2a_tune.racing.proposals import LEADERS, REMAINING_NOISE
from f2a_tune.racing.seconds_model import SecondsModel

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

# Largest number of looks that the process of scores is conditioned on.
MOST_LOOKS = 140
# All looks of this many best configurations are among them: they show how curves go on.
FULL_CURVES = 10
# Largest number of levels that are considered as a place to stop.
MOST_HORIZONS = 6
# A step to the next level is believed to raise normal scores by this much, with the weight of one
# configuration. Without it, a model that has seen no growth would not expect any.
PRIOR_GAIN = 0.3
# Each doubling of the effort gains this share of the gain of the doubling before, while nothing is
# known, and always a share in this range.
PRIOR_DECAY = 0.5
DECAY_RANGE = (0.0, 0.9)
# The expected improvement is divided by this power of the seconds.
COST_POWER = 0.5
# Spread of the scores near the top is measured over this many best configurations.
TOP = 10


@dataclass(frozen=True)
class TimeLeft:
    """The time that a configuration may still take."""

    seconds: float
    """Wall-clock seconds that are left and not reserved."""
    total_seconds: float
    """Wall-clock seconds that are left."""
    first_look_seconds: float
    """Seconds after which a new configuration is paused, also before its first look."""
    whole_fit_seconds: float
    """Seconds after which a new configuration that cannot grow is given up."""
    validation_fits: float
    """Fits that must follow one after another, after the first fold, to use a configuration."""
    overhead_seconds: float


@dataclass(frozen=True)
class Forecast:
    """What is expected of some configurations; arrays have one entry per configuration."""

    worth: Floats
    """Expected improvement per second, at the best level to stop at; 0 if none can be reached."""
    level: Indices
    """The best level to stop at."""
    seconds: Floats
    """Configurations × levels: expected seconds of a fit until each level."""


class CurveModel:
    """The model, conditioned on all looks so far.

    Parameters
    ----------
    ledger : Ledger
        A ledger with curves and at least one score.
    known : ndarray of shape (n_configurations, n_features)
        Features of all configurations of the ledger.
    scales : tuple of Hyperparameters
        Length scales of the previous model of scores and of seconds.
    """

    def __init__(
        self, ledger: Ledger, known: Floats, scales: tuple[Hyperparameters, Hyperparameters]
    ) -> None:
        assert ledger.curves is not None
        self.curves: Curves = ledger.curves
        self._known = known
        self._estimates = ledger.estimates()
        self._times = _log_ratio(self.curves.efforts)
        rows, levels, values, folds = _looks(self.curves, ledger, self._estimates)
        self._process = self._score_process(ledger, rows, levels, values, folds, scales[0])
        self._clock = SecondsModel(ledger, self.curves, rows, levels, known, scales[1])
        self.scales = (self._process.hyperparameters, self._clock.scales)
        self.start_seconds = self._clock.start
        """Typical seconds of a fit before its first round."""

    def _score_process(
        self,
        ledger: Ledger,
        rows: Indices,
        levels: Indices,
        values: Floats,
        folds: Floats,
        scales: Hyperparameters,
    ) -> GaussianProcess:
        normal = _normal_scores(values)
        chosen = _informative(rows, normal)
        self.score_unit = _unit(values, normal)
        self._rise = _rise(rows, levels, normal, self.curves.n_levels)
        normal = normal - self._rise[levels]
        noise = 1.0 / folds - 1.0 / ledger.n_folds + REMAINING_NOISE
        points, times = self._known[rows[chosen]], self._times[levels[chosen]]
        normal, noise = normal[chosen], noise[chosen]
        process = GaussianProcess(points, normal, noise, scales, len(rows), times)
        running = np.flatnonzero((self.curves.level < 0) & ledger.pending.any(axis=1))
        if len(running):
            # Running configurations enter with their expected value, so that the model does not
            # propose almost the same ones again.
            believed = process.predict(self._known[running], self._times[:1])[0]
            process = GaussianProcess(
                np.concatenate([points, self._known[running]]),
                np.concatenate([normal, believed]),
                np.concatenate([noise, np.ones(len(running))]),
                process.hyperparameters,
                len(rows),
                np.concatenate([times, np.full(len(running), self._times[0])]),
            )
        self._decay = _decay(self.curves.scores[:, 0])
        self._best_score = float(np.nanmax(self.curves.scores[self._estimates.scored[:1], 0]))
        leaders = self._estimates.scored[:LEADERS]
        at = self.curves.level[leaders]
        everywhere = process.predict(self._known[leaders], self._times)[0].reshape(
            -1, len(self._times)
        )
        best = everywhere[np.arange(len(leaders)), at] + self._rise[at]
        self._best = self._goal = float(best.max())
        return process

    def forecast_paused(self, rows: Indices, left: TimeLeft) -> Forecast:
        """Return what is expected of growing the first fold of configurations further."""
        seconds = self._clock.of_paused(rows)
        start, spent = self.curves.reached[rows, 0], self.curves.spent[rows, 0]
        found = self._levels(self._known[rows], start, seconds, spent, left)
        # Others must be expected to beat what the leader becomes.
        leader = np.flatnonzero(rows == self._estimates.scored[0])
        if len(leader):
            found.mean[leader] = self._own_curve(
                int(rows[leader[0]]), found.levels, found.mean[leader]
            )
        # What a paused configuration may become, without luck, is what new ones must beat.
        reach = np.where(found.possible, found.mean, -np.inf).max()
        self._goal = float(max(self._best, reach))
        worth, level = found.best(np.full(len(rows), self._best))
        return Forecast(worth, level, seconds)

    def _own_curve(self, row: int, levels: Indices, otherwise: Floats) -> Floats:
        """Continue the curve of the leader, as normal scores; ``otherwise`` with a single look.

        Each further step gains a constant share of the step before. A Gaussian process alone
        returns to its mean, and does not believe that what rises will go on to rise.
        """
        scores = self.curves.scores[row, 0]
        seen = np.flatnonzero(~np.isnan(scores))
        if len(seen) < 2:
            return otherwise
        last = scores[seen[-1]]
        gain = (last - scores[seen[-2]]) / (seen[-1] - seen[-2])
        steps = np.maximum(levels - seen[-1], 0)
        total = gain * self._decay * (1.0 - self._decay**steps) / (1.0 - self._decay)
        return np.asarray(self._best + self.score_unit * (last + total - self._best_score))

    def forecast_new(self, features: Floats, grows: Flags, left: TimeLeft) -> Forecast:
        """Return what is expected of configurations that have not been tried.

        Call it after `forecast_paused`: they must beat what the paused ones may become. ``grows``
        tells which of them can grow; all levels of the others take as long as a whole fit.
        """
        seconds = self._clock.of_new(features, grows)
        last = self.curves.n_levels - 1
        start, spent = np.where(grows, -1, last - 1), np.zeros(len(features))
        found = self._levels(features, start, seconds, spent, left)
        worth, level = found.best(np.full(len(features), self._goal))
        limit = np.where(grows, left.first_look_seconds, left.whole_fit_seconds)
        return Forecast(worth * self._clock.in_time(features, grows, limit), level, seconds)

    def _levels(
        self, features: Floats, start: Indices, seconds: Floats, spent: Floats, left: TimeLeft
    ) -> _Levels:
        horizons = _horizons(self.curves.n_levels)
        mean, deviation = self._process.predict(features, self._times[horizons])
        until = seconds[:, horizons]
        growing = np.maximum(until - spent[:, None], 0.0) + left.overhead_seconds
        validating = left.validation_fits * until
        ahead = _ahead(horizons, start)
        return _Levels(
            horizons,
            mean.reshape(until.shape) + self._rise[horizons],
            deviation.reshape(until.shape),
            growing,
            validating,
            ahead & (growing + validating <= left.seconds),
        )


@dataclass(frozen=True)
class _Levels:
    """Predictions for configurations × levels to stop at."""

    levels: Indices
    mean: Floats
    deviation: Floats
    growing: Floats
    """Seconds until the level."""
    validating: Floats
    """Seconds of all other folds until the level."""
    possible: NDArray[np.bool_]
    """Whether the level is ahead and can be reached in time."""

    def best(self, goal: Floats) -> tuple[Floats, Indices]:
        """Return the largest expected improvement on each goal per second, and at which level."""
        away = (self.mean - goal[:, None]) / self.deviation
        chance = ndtr(away)
        density = np.exp(-0.5 * away * away) / math.sqrt(2.0 * math.pi)
        gain = self.deviation * (away * chance + density)
        # What becomes the leader must be validated.
        worth = gain / (self.growing + chance * self.validating) ** COST_POWER
        worth = np.where(self.possible, worth, 0.0)
        return np.asarray(worth.max(axis=1)), self.levels[worth.argmax(axis=1)]


def _log_ratio(efforts: Floats) -> Floats:
    """Logarithms of the efforts, scaled to [0, 1]."""
    logs = np.log(efforts / efforts[0])
    return np.asarray(logs / logs[-1]) if logs[-1] > 0 else logs


def _looks(
    curves: Curves, ledger: Ledger, estimates: Estimates
) -> tuple[Indices, Indices, Floats, Floats]:
    """Row, level, mean score without fold offsets, and number of folds of every look."""
    scores = curves.scores - estimates.offsets[None, :, None]
    known = ~np.isnan(scores)
    folds = known.sum(axis=1)
    rows, levels = np.nonzero((folds > 0) & ~ledger.failed[:, None])
    totals = np.where(known, scores, 0.0).sum(axis=1)
    count = folds[rows, levels].astype(np.float64)
    return rows, levels, totals[rows, levels] / count, count


def _normal_scores(values: Floats) -> Floats:
    order = np.argsort(-values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = mean_ranks(values[order])
    return np.asarray(-ndtri((ranks - 0.5) / len(values)))


def _unit(values: Floats, normal: Floats) -> float:
    """Normal scores per unit of the score, near the top."""
    order = np.argsort(-values, kind="stable")[: TOP + 1]
    spread = float(values[order[0]] - values[order[-1]])
    return float(normal[order[0]] - normal[order[-1]]) / spread if spread > 0 else 0.0


def _informative(rows: Indices, normal: Floats) -> Indices:
    """Indices of the looks that the scores are modelled with."""
    if len(rows) <= MOST_LOOKS:
        return np.arange(len(rows))
    last = np.flatnonzero(np.append(rows[1:] != rows[:-1], True))
    ordered = last[np.argsort(-normal[last], kind="stable")]
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[ordered[: MOST_LOOKS // 2]] = True
    chosen |= np.isin(rows, rows[ordered[:FULL_CURVES]])
    others = np.flatnonzero(~chosen)
    missing = max(MOST_LOOKS - int(chosen.sum()), 0)
    even = np.linspace(0, len(others) - 1, min(missing, len(others))).round().astype(np.intp)
    chosen[others[even]] = True
    return np.flatnonzero(chosen)


def _rise(rows: Indices, levels: Indices, normal: Floats, n_levels: int) -> Floats:
    """Typical rise of the normal scores from the first level to each level.

    It is a median, because a few configurations that diverge should not hide what the others gain.
    """
    steps = np.flatnonzero((rows[1:] == rows[:-1]) & (levels[1:] == levels[:-1] + 1))
    gains, at = normal[steps + 1] - normal[steps], levels[steps]
    typical = [
        float(np.median(np.append(gains[at == level], PRIOR_GAIN)))
        for level in range(n_levels - 1)
    ]
    return np.append(0.0, np.cumsum(typical))


def _decay(scores: Floats) -> float:
    """Typical gain of a step as a share of the gain of the step before."""
    gains = np.diff(scores, axis=1)
    before, after = gains[:, :-1], gains[:, 1:]
    known = np.isfinite(before) & np.isfinite(after) & (before > 0)
    ratios = np.append(after[known] / before[known], PRIOR_DECAY)
    return float(np.clip(np.median(ratios), *DECAY_RANGE))


def _horizons(n_levels: int) -> Indices:
    """Levels to stop at, the last one included."""
    return np.unique(np.linspace(0, n_levels - 1, min(n_levels, MOST_HORIZONS)).round()).astype(
        np.intp
    )


def _ahead(horizons: Indices, start: Indices) -> Flags:
    """Return which levels (configurations × horizons) have not been reached."""
    return np.asarray(horizons[None, :] > start[:, None])
