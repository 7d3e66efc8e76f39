"""Proposals for fits that grow: new configurations, and paused ones to continue.

All are compared by what growing them is worth per second (`curve_model`). A part of the draws
is random, because the model may be wrong. The constants were tuned with ``benchmarks/replay.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from f2a_tune.racing.curve_model import CurveModel, Flags, TimeLeft
from f2a_tune.racing.gaussian import Floats, Hyperparameters
from f2a_tune.racing.ledger import Estimates, Ledger
from f2a_tune.racing.offer import Growth, Offer
from f2a_tune.racing.proposals import (
    FEWEST_SCORED,
    PARENTS,
    DrawnRows,
    Proposals,
    RandomProposals,
    stream,
)
from f2a_tune.racing.space import Space

# Share of the decisions that are a random draw.
EXPLORE_SHARE = 0.1
# Candidates for a new configuration: random rows, and neighbours of the best configurations.
RANDOM_CANDIDATES = 90
NEAR_CANDIDATES = 60
# Largest number of paused configurations that are compared.
MOST_PAUSED = 60
# A new configuration is grown to the highest level that takes at most this share of a whole fit,
# but at least the second and at most the third of these shares of the budget.
WHOLE_SHARE = 0.06
FIRST_SHARE = 0.003
LONGEST_FIRST_SHARE = 0.02
# A step to the next level takes at least this share of the budget, which limits the decisions.
LEAST_STEP_SHARE = 0.0005
# The first configurations are grown for this share of the budget, so that a result comes soon that
# can be used.
OPENING_SHARE = 0.008
OPENING_COUNT = 2
# They are also grown while a step takes at most this share of the seconds so far: the start of a
# fit on many rows may take longer than its first rounds.
CHEAP_STEP = 0.4
# While the start of a fit is unknown, the first step is believed to take this share of it.
FIRST_STEP = 0.2
# One of them that has run for this multiple of the seconds until its last look is left alone.
LONGEST_STALL = 2.0
# The step and the other folds must take at most this share of the remaining time.
OPENING_MARGIN = 0.8
# A new configuration is grown until its rounds have taken this multiple of its start.
START_MULTIPLE = 1.0
CURVE_STREAM = 2


class CurveProposals:
    """Proposals by expected improvement per second.

    Parameters
    ----------
    space : Space
        The space to draw from.
    budget_seconds : float
        Seconds of the whole search.
    seed : int, default=0
        Seed of the random numbers.
    random : Proposals, default=None
        Source of the random draws. None means `RandomProposals` of the same space.
    grows : callable, default=None
        Takes rows of unit coordinates and returns which of these configurations can grow. None
        means that all can.
    """

    def __init__(
        self,
        space: Space,
        budget_seconds: float,
        seed: int = 0,
        random: Proposals | None = None,
        grows: Callable[[Floats], Flags] | None = None,
    ) -> None:
        self.space, self.budget_seconds, self.seed = space, budget_seconds, seed
        self.random = RandomProposals(space, seed) if random is None else random
        self._grows = _all_grow if grows is None else grows
        width = space.features(np.full((1, len(space.parameters)), np.nan)).shape[1]
        self._scales = Hyperparameters.unfitted(width), Hyperparameters.unfitted(width)
        self._drawn = DrawnRows(space)

    def offer(self, ledger: Ledger, units: Sequence[Floats], left: TimeLeft) -> Offer | None:
        """Return the configuration to try next, with paused ones that may be better.

        If no new configuration is left, the offer's ``unit`` is empty.
        """
        assert ledger.curves is not None
        estimates = ledger.estimates()
        drawn = self.random.offer(ledger, units, left.seconds)
        is_given = drawn is not None and drawn.least_share > 0
        if is_given or estimates.n_scored < FEWEST_SCORED:
            if drawn is not None:
                return self._opening(ledger, drawn, left)
            if not estimates.n_scored:
                return None
        rng = stream(self.seed, ledger.n_pulls, CURVE_STREAM)
        self._drawn.follow(units)
        model = CurveModel(ledger, self._drawn.features, self._scales)
        self._scales = model.scales
        if rng.random() < EXPLORE_SHARE and drawn is not None:
            return self._explored(model, drawn, left)
        return self._best(model, ledger, units, estimates, left, rng)

    def _opening(self, ledger: Ledger, drawn: Offer, left: TimeLeft) -> Offer:
        """Return a random or given configuration, or the next step of one of the first ones."""
        first = self._opening_growth(ledger, left)
        if first is not None:
            return replace(drawn, level=0, grown=(first,))
        level = 0 if self._grows(drawn.unit[None, :])[0] else None
        return replace(drawn, level=level, explores=True)

    def _opening_growth(self, ledger: Ledger, left: TimeLeft) -> Growth | None:
        """Return the next step of one of the first configurations, while it may be grown.

        It may be grown for a short time, and as long as a step costs little against the start of
        the fit, but never so far that it could not be validated.
        """
        curves, last = ledger.curves, ledger.n - 1
        assert curves is not None
        if not 0 <= last < OPENING_COUNT or ledger.pending[last, 0] or ledger.failed[last]:
            return None
        level, spent = int(curves.reached[last, 0]) + 1, float(curves.spent[last, 0])
        if curves.ended[last, 0] or not 0 < level < curves.n_levels or spent <= 0:
            return None
        if spent > LONGEST_STALL * curves.seconds[last, 0, level - 1]:
            return None  # it was paused at its cutoff since its last look, and may hang
        seconds = max(curves.expected_seconds(last, 0, level) - spent, 0.0)
        if level == 1:  # the start of the fit, which is not known yet, may be most of it
            seconds = min(seconds, FIRST_STEP * spent)
        is_cheap = seconds <= CHEAP_STEP * spent
        if spent > OPENING_SHARE * self.budget_seconds and not is_cheap:
            return None
        needed = seconds + left.validation_fits * (spent + seconds)
        if needed > OPENING_MARGIN * left.total_seconds:
            return None
        return Growth(last, math.inf, level, seconds)

    def _explored(self, model: CurveModel, drawn: Offer, left: TimeLeft) -> Offer:
        unit = drawn.unit[None, :]
        grows = self._grows(unit)
        forecast = model.forecast_new(self.space.features(unit), grows, left)
        level, seconds = self._first_step(forecast.seconds[0], bool(grows[0]), model)
        return Offer(drawn.unit, level=level, seconds=seconds, explores=True)

    def _best(
        self,
        model: CurveModel,
        ledger: Ledger,
        units: Sequence[Floats],
        estimates: Estimates,
        left: TimeLeft,
        rng: np.random.Generator,
    ) -> Offer | None:
        grown = self._grown(model, ledger, left)
        candidates = self._candidates(units, estimates, rng)
        if not len(candidates):
            drawn = self.random.offer(ledger, units, left.seconds)
            candidates = np.zeros((0, 0)) if drawn is None else drawn.unit[None, :]
        if not len(candidates):
            return Offer(np.zeros(0), grown=grown, score_unit=model.score_unit)
        grows = self._grows(candidates)
        forecast = model.forecast_new(self.space.features(candidates), grows, left)
        best = int(forecast.worth.argmax())
        level, seconds = self._first_step(forecast.seconds[best], bool(grows[best]), model)
        return Offer(
            unit=candidates[best],
            seconds=seconds,
            worth=float(forecast.worth[best]),
            level=level,
            grown=grown,
            score_unit=model.score_unit,
        )

    def _grown(self, model: CurveModel, ledger: Ledger, left: TimeLeft) -> tuple[Growth, ...]:
        """Return paused configurations, those with the largest worth first."""
        curves, estimates = model.curves, ledger.estimates()
        reached = curves.reached[:, 0]
        open_ = (reached >= 0) & (reached < curves.n_levels - 1) & ~curves.ended.any(axis=1)
        open_ &= ~ledger.failed & ~ledger.pending[:, 0]
        rows = estimates.scored[open_[estimates.scored]][:MOST_PAUSED]
        if not len(rows):
            return ()
        forecast = model.forecast_paused(rows, left)
        found = []
        for place in np.argsort(-forecast.worth, kind="stable"):
            row, seconds = int(rows[place]), forecast.seconds[place]
            spent = float(curves.spent[row, 0])
            # A fit that must start again should not start again after every step.
            level = int(forecast.level[place])
            if spent > 0:
                level = self._next_level(seconds, int(reached[row]))
            step = max(float(seconds[level]) - spent, 0.0)
            found.append(Growth(row, float(forecast.worth[place]), level, step))
        return tuple(found)

    def _candidates(
        self, units: Sequence[Floats], estimates: Estimates, rng: np.random.Generator
    ) -> Floats:
        """Return random rows and neighbours of the best rows, without those already drawn."""
        parents = np.array([units[row] for row in estimates.scored[:PARENTS]])
        near = self.space.neighbours(np.resize(parents, (NEAR_CANDIDATES, parents.shape[1])), rng)
        pool = np.concatenate([self.space.sample(rng, RANDOM_CANDIDATES), near])
        return self._drawn.without(pool)

    def _first_step(
        self, seconds: Floats, grows: bool, model: CurveModel
    ) -> tuple[int | None, float]:
        """Return the first level of a new configuration, and its expected seconds."""
        if not grows:
            return None, float(seconds[-1])
        least, most = FIRST_SHARE * self.budget_seconds, LONGEST_FIRST_SHARE * self.budget_seconds
        longest = min(max(WHOLE_SHARE * float(seconds[-1]), least), most)
        longest = max(longest, (1.0 + START_MULTIPLE) * model.start_seconds)
        affordable = np.flatnonzero(seconds <= longest)
        level = int(affordable[-1]) if len(affordable) else 0
        return level, float(seconds[level])

    def _next_level(self, seconds: Floats, reached: int) -> int:
        least = seconds[reached] + LEAST_STEP_SHARE * self.budget_seconds
        ahead = np.flatnonzero(seconds >= least)
        ahead = ahead[ahead > reached]
        return int(ahead[0]) if len(ahead) else len(seconds) - 1


def _all_grow(units: Floats) -> Flags:
    return np.ones(len(units), dtype=bool)
