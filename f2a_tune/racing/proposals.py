"""Proposals of new configurations: random, model-based, and given by the user.

`ModelProposals` fits one Gaussian process to the scores and one to the logarithm of the seconds.
It draws the candidate with the largest expected improvement × P(finish by the cutoff) / seconds^½.
Scores enter as normal scores of their ranks, so their scale does not matter. A configuration that
was given up enters the model of the seconds with twice its cutoff; it does not enter the model of
the scores. The constants were tuned with ``benchmarks/replay.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from f2a_tune.racing.gaussian import (
    Floats,
    GaussianProcess,
    Hyperparameters,
    best_and_spread,
)
from f2a_tune.racing.ledger import Estimates, Ledger, mean_ranks
from f2a_tune.racing.offer import Offer
from f2a_tune.racing.space import Space

# With fewer configurations with a score, draws do not use the model.
FEWEST_SCORED = 5
# In that opening phase, once this many configurations were given up, the one of this many random
# rows that most likely finishes is drawn. With fewer, too little is known about what is slow.
FEWEST_GIVEN_UP = 2
OPENING_CANDIDATES = 10
# Share of the draws that are always random, because the model may be wrong.
RANDOM_SHARE = 0.25
# Largest number of points that each Gaussian process is conditioned on.
MOST_MODELLED = 120
# Number of candidates: one half random rows, the other half neighbours of the best configurations.
CANDIDATES = 300
PARENTS = 5
# Exponent of the expected seconds. 1 prefers fast mediocre fits too much, 0 is too slow, and 1/4
# did not help consistently on three tables whose best configurations are slow.
COST_POWER = 0.5
# The value to improve on is the best predicted value among this many leading configurations.
LEADERS = 20
# Noise of a mean over all folds, in units of one fold's noise.
REMAINING_NOISE = 0.02
# Number of random rows that are tried in order to find one that has not been drawn.
RANDOM_TRIES = 200
# Identifiers of the random streams.
MODEL_STREAM, RANDOM_STREAM = 0, 1
# Smallest cutoff of all user-given configurations together, as a share of all workers' seconds.
# With 0.1, a search over eight kinds of models gave up gradient boosting on 48,842 rows after one
# of 20 seconds, and returned a logistic regression.
GIVEN_SHARE = 0.5
# Added to all seconds in the model: differences below the overhead of a pull are irrelevant.
LEAST_SECONDS = 0.005


class Proposals(Protocol):
    """Interface of objects that propose new configurations."""

    def offer(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> Offer | None:
        """Return the configuration to try next, or None if no new one is found.

        Parameters
        ----------
        ledger : Ledger
            Outcomes of all configurations drawn so far.
        units : sequence of ndarray
            Rows of all configurations drawn so far, in the order of the ledger.
        cutoff_seconds : float
            The cutoff that a fresh pull would get now.
        """


class RandomProposals:
    """Random draws without repetition.

    A draw depends only on the seed and the rows drawn before it.

    Parameters
    ----------
    space : Space
        The space to draw from.
    seed : int, default=0
        Seed of the random numbers.
    """

    def __init__(self, space: Space, seed: int = 0) -> None:
        self.space, self.seed = space, seed
        self._drawn = DrawnRows(space)

    def offer(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> Offer | None:
        """Return a random row without a forecast."""
        del ledger, cutoff_seconds
        self._drawn.follow(units)
        rng = stream(self.seed, len(units), RANDOM_STREAM)
        for count in (1, RANDOM_TRIES):
            rows = self._drawn.without(self.space.sample(rng, count))
            if len(rows):
                return Offer(rows[0])
        return None


class StartProposals:
    """Draw the given rows first, then those of other proposals.

    Parameters
    ----------
    rows : sequence of ndarray
        Rows to draw first, in this order.
    later : Proposals
        Proposals to use after all rows have been drawn.
    """

    def __init__(self, rows: Sequence[Floats], later: Proposals) -> None:
        self.rows, self.later = tuple(rows), later
        self._left = list(rows)
        self._n_seen = 0

    def offer(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> Offer | None:
        """Return the first given row that has not been drawn, without a forecast."""
        if self._left:
            drawn = {unit.tobytes() for unit in units[self._n_seen :]}
            self._n_seen = len(units)
            self._left = [row for row in self._left if row.tobytes() not in drawn]
        if self._left:
            return Offer(self._left[0], least_share=GIVEN_SHARE / len(self.rows))
        return self.later.offer(ledger, units, cutoff_seconds)


class ModelProposals:
    """Draws with the highest expected improvement per time according to a model.

    The model is computed from the ledger and the rows. The only state kept between draws are the
    length scales, which are refitted whenever there is a fifth more data. A search that is rebuilt
    from its history therefore draws equally good, but not always identical, configurations.

    Parameters
    ----------
    space : Space
        The space to draw from.
    seed : int, default=0
        Seed of the random numbers.
    random : Proposals, default=None
        Source of the random draws, which are a quarter of all draws. None means
        `RandomProposals` of the same space.
    """

    def __init__(self, space: Space, seed: int = 0, random: Proposals | None = None) -> None:
        self.space, self.seed = space, seed
        self.random = RandomProposals(space, seed) if random is None else random
        width = space.features(np.full((1, len(space.parameters)), np.nan)).shape[1]
        self._score_scales = self._time_scales = Hyperparameters.unfitted(width)
        self._drawn = DrawnRows(space)

    def offer(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> Offer | None:
        """Return the best candidate with the model's forecast, or a random row."""
        rng = stream(self.seed, len(units), MODEL_STREAM)
        estimates = ledger.estimates()
        if rng.random() < RANDOM_SHARE:
            return self.random.offer(ledger, units, cutoff_seconds)
        if len(estimates.scored) < FEWEST_SCORED:
            opening = self._opening(ledger, units, rng)
            return opening or self.random.offer(ledger, units, cutoff_seconds)
        self._drawn.follow(units)
        candidates = self._candidates(units, estimates, rng)
        if not len(candidates):
            return self.random.offer(ledger, units, cutoff_seconds)
        features, known = self.space.features(candidates), self._drawn.features
        gain = self._gain(ledger, estimates, known, features)
        time = self._time(ledger, estimates, known, features, cutoff_seconds)
        best = int((gain.log_improvement + time.log_finish - COST_POWER * time.log_cost).argmax())
        return Offer(
            unit=candidates[best],
            chance=float(gain.chance[best]),
            finish=float(np.exp(time.log_finish[best])),
            seconds=max(float(np.exp(time.log_cost[best])) - LEAST_SECONDS, 0.0),
        )

    def _opening(
        self, ledger: Ledger, units: Sequence[Floats], rng: np.random.Generator
    ) -> Offer | None:
        """Return a random row far from given-up configurations and near finished ones.

        With fewer than `FEWEST_SCORED` scores there is too little data for the model, but a search
        that keeps giving up should not continue to draw slow configurations. None means that any
        row will do.
        """
        slow = np.flatnonzero(np.isnan(ledger.first_seconds) & (ledger.waited > 0))
        if len(slow) < FEWEST_GIVEN_UP:
            return None
        self._drawn.follow(units)
        pool = self._drawn.without(self.space.sample(rng, OPENING_CANDIDATES))
        if not len(pool):
            return None
        features, known = self.space.features(pool), self._drawn.features
        score = _nearest(features, known[slow])
        finished = ledger.estimates().scored
        if len(finished):
            score = score / (_nearest(features, known[finished]) + 1e-9)
        return Offer(pool[int(score.argmax())])

    def _candidates(
        self, units: Sequence[Floats], estimates: Estimates, rng: np.random.Generator
    ) -> Floats:
        """Return random rows and neighbours of the best rows, without those already drawn."""
        parents = np.array([units[row] for row in estimates.scored[:PARENTS]])
        near = self.space.neighbours(np.resize(parents, (CANDIDATES // 2, parents.shape[1])), rng)
        pool = np.concatenate([self.space.sample(rng, CANDIDATES - len(near)), near])
        return self._drawn.without(pool)

    def _gain(
        self, ledger: Ledger, estimates: Estimates, known: Floats, features: Floats
    ) -> _Gain:
        rows = best_and_spread(estimates.scored, MOST_MODELLED)
        values = _normal_scores(estimates.value[rows])
        noise = 1.0 / estimates.folds[rows] - 1.0 / ledger.n_folds + REMAINING_NOISE
        n_seen = len(estimates.scored)
        process = GaussianProcess(known[rows], values, noise, self._score_scales, n_seen)
        self._score_scales = process.hyperparameters
        running = np.flatnonzero(np.isneginf(estimates.value) & ledger.pending.any(axis=1))
        if len(running):
            # Running configurations enter with their expected value, so that the model does not
            # propose almost the same ones again.
            believed = np.concatenate([values, process.predict(known[running])[0]])
            points = np.concatenate([known[rows], known[running]])
            noise = np.concatenate([noise, np.ones(len(running))])
            process = GaussianProcess(points, believed, noise, self._score_scales, n_seen)
        best = process.predict(known[estimates.scored[:LEADERS]])[0].max()
        mean, deviation = process.predict(features)
        away = (mean - best) / deviation
        density = np.exp(-0.5 * away * away) / math.sqrt(2.0 * math.pi)
        improvement = deviation * (away * ndtr(away) + density)
        return _Gain(np.log(np.maximum(improvement, 1e-30)), ndtr(away))

    def _time(
        self,
        ledger: Ledger,
        estimates: Estimates,
        known: Floats,
        features: Floats,
        cutoff_seconds: float,
    ) -> _Time:
        given_up = np.flatnonzero(np.isneginf(estimates.value) & (ledger.waited > 0))
        finished = best_and_spread(estimates.scored, MOST_MODELLED)
        rows = np.concatenate([finished, given_up[-MOST_MODELLED // 2 :]])
        seconds = np.where(
            np.isneginf(estimates.value[rows]), 2.0 * ledger.waited[rows], estimates.seconds[rows]
        )
        values = np.log(np.maximum(seconds, 0.0) + LEAST_SECONDS)
        n_seen = len(estimates.scored) + len(given_up)
        noise = np.ones(len(rows))
        process = GaussianProcess(known[rows], values, noise, self._time_scales, n_seen)
        self._time_scales = process.hyperparameters
        mean, deviation = process.predict(features)
        deviation = np.sqrt(deviation**2 + process.noise_variance)
        limit = math.log(cutoff_seconds + LEAST_SECONDS)
        return _Time(log_ndtr((limit - mean) / deviation), np.minimum(mean, limit))


class DrawnRows:
    """Features and keys of all rows drawn so far, updated from a list that only grows."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._keys: set[bytes] = set()
        self.features = np.zeros((0, 0))
        self._n = 0

    def follow(self, units: Sequence[Floats]) -> None:
        """Add the rows that were appended to the list since the last call."""
        if len(units) == self._n:
            return
        rows = np.array(units[self._n :])
        features = self.space.features(rows)
        self.features = np.concatenate([self.features, features]) if self._n else features
        self._keys.update(_keys(rows))
        self._n = len(units)

    def without(self, rows: Floats) -> Floats:
        """Return those of the rows that have not been drawn."""
        return rows[[key not in self._keys for key in _keys(rows)]]


@dataclass(frozen=True)
class _Gain:
    """Expected improvement of every candidate, and its probability of becoming the leader."""

    log_improvement: Floats
    chance: Floats


@dataclass(frozen=True)
class _Time:
    """Probability of every candidate of finishing by the cutoff, and its expected cost."""

    log_finish: Floats
    log_cost: Floats


def stream(seed: int, count: int, stream: int) -> np.random.Generator:
    """Return the random stream of one draw, so that a rebuilt search continues unchanged."""
    return np.random.default_rng([seed, count, stream])


def _nearest(features: Floats, known: Floats) -> Floats:
    """Return the distance of every row to the nearest known row."""
    apart = ((features[:, None, :] - known[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(np.sqrt(apart.min(axis=1)))


def _keys(rows: Floats) -> list[bytes]:
    return [row.tobytes() for row in np.round(np.nan_to_num(rows, nan=-1.0), 9)]


def _normal_scores(descending: Floats) -> Floats:
    """Return the normal scores of values in descending order; ties share their mean rank."""
    return np.asarray(-ndtri((mean_ranks(descending) - 0.5) / len(descending)))
