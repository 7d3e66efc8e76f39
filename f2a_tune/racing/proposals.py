"""Which configuration to draw next: the ledger's estimates go in, a row of the space comes out.

`ModelProposals` models the score and the logarithm of the seconds with two Gaussian processes and
draws where expected improvement × chance to finish by the cutoff / seconds^½ is largest. Scores
enter as normal scores of their ranks, so their scale does not matter. A configuration that was
given up tells the model of the seconds that it took twice its cutoff, and nothing of its score.
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

FEWEST_SCORED = 5  # before that every draw is random
FEWEST_GIVEN_UP = 2  # before that nothing is known of what is slow
OPENING_CANDIDATES = 10  # random rows of which the one that most likely finishes is drawn
RANDOM_SHARE = 0.25  # of the draws stay random: the model may be wrong
MOST_MODELLED = 120  # points that the processes are conditioned on
CANDIDATES = 300
PARENTS = 5  # best configurations whose neighbours are candidates
COST_POWER = 0.5  # 1 is too greedy for fast mediocre fits, 0 too slow
LEADERS = 20  # among whose expected values the best is the one to improve on
REMAINING_NOISE = 0.02  # of a mean over all folds, in units of one fold's noise
RANDOM_TRIES = 200  # random rows looked at for one that is new
MODEL_STREAM, RANDOM_STREAM = 0, 1  # of random numbers
GIVEN_SHARE = 0.1  # of the budget: what rows that the user gave are waited for, together
LEAST_SECONDS = 0.005  # differences below a pull's own overhead are none


class Proposals(Protocol):
    """Draws configurations."""

    def offer(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> Offer | None:
        """What to draw next, given the rows of all drawn so far; None if nothing new is found."""


class RandomProposals:
    """Draws at random, nothing twice; the same seed and rows give the same draw."""

    def __init__(self, space: Space, seed: int = 0) -> None:
        self.space, self.seed = space, seed
        self._drawn = _Drawn(space)

    def offer(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> Offer | None:
        """A random row, without a forecast."""
        del ledger, cutoff_seconds
        self._drawn.follow(units)
        rng = _rng(self.seed, len(units), RANDOM_STREAM)
        for count in (1, RANDOM_TRIES):
            rows = self._drawn.without(self.space.sample(rng, count))
            if len(rows):
                return Offer(rows[0])
        return None


class StartProposals:
    """Draws given rows first, in their order, then what somebody else proposes."""

    def __init__(self, rows: Sequence[Floats], later: Proposals) -> None:
        self.rows, self.later = tuple(rows), later
        self._left = list(rows)
        self._n_seen = 0

    def offer(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> Offer | None:
        """The first row that has not been drawn, without a forecast."""
        if self._left:
            drawn = {unit.tobytes() for unit in units[self._n_seen :]}
            self._n_seen = len(units)
            self._left = [row for row in self._left if row.tobytes() not in drawn]
        if self._left:
            return Offer(self._left[0], least_share=GIVEN_SHARE / len(self.rows))
        return self.later.offer(ledger, units, cutoff_seconds)


class ModelProposals:
    """Draws where the model expects the most for the time.

    All that it knows is in the ledger and the rows. Its own state is the last length scales,
    fitted whenever a fifth more is known: a rebuilt search draws as well, not always the same.

    Parameters
    ----------
    random
        Where random draws come from; by default the space itself. They are a quarter of all.
    """

    def __init__(self, space: Space, seed: int = 0, random: Proposals | None = None) -> None:
        self.space, self.seed = space, seed
        self.random = RandomProposals(space, seed) if random is None else random
        width = space.features(np.full((1, len(space.parameters)), np.nan)).shape[1]
        self._score_scales = self._time_scales = Hyperparameters.unfitted(width)
        self._drawn = _Drawn(space)

    def offer(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> Offer | None:
        """The best candidate with the model's forecast, or a random row."""
        rng = _rng(self.seed, len(units), MODEL_STREAM)
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
        """A random row far from all that was given up, near what has finished; None: any will do.

        With less than this many scores there is nothing to model, but a search that gives up and
        gives up should not go on drawing what is slow.
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
        """Random rows and neighbours of the best, without what was drawn already."""
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
            # Draws in flight count as if they came out as expected, so they are not drawn twice.
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


class _Drawn:
    """Features and keys of all rows drawn so far; follows a list that only grows."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._keys: set[bytes] = set()
        self.features = np.zeros((0, 0))
        self._n = 0

    def follow(self, units: Sequence[Floats]) -> None:
        """Take in the rows that are new."""
        if len(units) == self._n:
            return
        rows = np.array(units[self._n :])
        features = self.space.features(rows)
        self.features = np.concatenate([self.features, features]) if self._n else features
        self._keys.update(_keys(rows))
        self._n = len(units)

    def without(self, rows: Floats) -> Floats:
        """Those of the rows that have not been drawn."""
        return rows[[key not in self._keys for key in _keys(rows)]]


@dataclass(frozen=True)
class _Gain:
    """Of every candidate: how much better than the leader it may be, and how likely."""

    log_improvement: Floats
    chance: Floats


@dataclass(frozen=True)
class _Time:
    """Of every candidate: whether it finishes by the cutoff, and what it costs."""

    log_finish: Floats
    log_cost: Floats


def _rng(seed: int, count: int, stream: int) -> np.random.Generator:
    """A stream of its own for every draw, so that a rebuilt search goes on as it would have."""
    return np.random.default_rng([seed, count, stream])


def _nearest(features: Floats, known: Floats) -> Floats:
    """Of every row the distance to the nearest known one."""
    apart = ((features[:, None, :] - known[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(np.sqrt(apart.min(axis=1)))


def _keys(rows: Floats) -> list[bytes]:
    return [row.tobytes() for row in np.round(np.nan_to_num(rows, nan=-1.0), 9)]


def _normal_scores(descending: Floats) -> Floats:
    """Normal quantiles of the ranks of values that fall; equals share their mean rank."""
    return np.asarray(-ndtri((mean_ranks(descending) - 0.5) / len(descending)))
