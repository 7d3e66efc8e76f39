"""Variants of the race of growing fits without one of its parts, to measure its benefit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from f2a_tune.outcome import Outcome
from f2a_tune.racing import curve_model, curve_proposals, seconds_model
from replaying.curve_problem import CurveProblem
from replaying.curve_racers import CurveRaceMethod
from replaying.engine import Job, Method


class Patched(CurveRaceMethod):
    """Replaces names of the race's modules while it decides."""

    def __init__(self, problem: CurveProblem, *patches: tuple[Any, str, Any]) -> None:
        super().__init__(problem)
        self.patches = patches

    def ask(self, now: float, worker: int) -> Job | None:
        with ExitStack() as stack:
            for target, name, value in self.patches:
                stack.enter_context(mock.patch.object(target, name, value))
            return super().ask(now, worker)


class LittleMemory(CurveRaceMethod):
    """Keeps only so many paused fits; what is dropped must start again."""

    def __init__(self, problem: CurveProblem, most_paused: int) -> None:
        super().__init__(problem)
        self.most_paused = most_paused

    def tell(self, job: Job, outcome: Outcome, worker: int) -> None:
        super().tell(job, outcome, worker)
        for configuration, fold in self.race.surplus(self.most_paused):
            self.race.lose(configuration, fold)
            self.problem.drop(self.rows[configuration], fold)


def _restarting(problem: CurveProblem) -> CurveRaceMethod:
    problem.resumes = False
    return CurveRaceMethod(problem, resumable=False)


def _every_level(n_levels: int) -> np.ndarray:
    return np.arange(n_levels)


def _last_level(n_levels: int) -> np.ndarray:
    return np.array([n_levels - 1])


def _next_only(horizons: np.ndarray, start: np.ndarray) -> np.ndarray:
    return np.asarray(horizons[None, :] == start[:, None] + 1)


def _typical_seconds(
    self: seconds_model.SecondsModel, features: np.ndarray, grows: np.ndarray
) -> np.ndarray:
    """Expect the same seconds of every new configuration."""
    rate = float(np.exp(self._process.predict(features)[0].mean()))
    growing = self.start + rate * self._curves.efforts[None, :]
    return np.asarray(np.where(grows[:, None], growing, rate))


def _always_in_time(self: Any, features: np.ndarray, *others: Any) -> np.ndarray:
    return np.ones(len(features))


def _patched(*patches: tuple[Any, str, Any]) -> Callable[[CurveProblem], Method]:
    return lambda problem: Patched(problem, *patches)


CURVE_ABLATIONS: dict[str, Callable[[CurveProblem], Method]] = {
    "race-restarting": _restarting,
    "race-8-paused": partial(LittleMemory, most_paused=8),
    "race-next-level": _patched(
        (curve_model, "_horizons", _every_level), (curve_model, "_ahead", _next_only)
    ),
    "race-last-level": _patched((curve_model, "_horizons", _last_level)),
    "race-whole-cost": _patched((curve_model, "COST_POWER", 1.0)),
    "race-no-cost": _patched((curve_model, "COST_POWER", 0.0)),
    "race-typical-seconds": _patched(
        (seconds_model.SecondsModel, "of_new", _typical_seconds),
        (seconds_model.SecondsModel, "in_time", _always_in_time),
    ),
    "race-random-proposals": _patched(
        (curve_proposals, "RANDOM_CANDIDATES", 1), (curve_proposals, "NEAR_CANDIDATES", 0)
    ),
    "race-one-fold": partial(CurveRaceMethod, n_folds=1),
}
