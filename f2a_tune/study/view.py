"""A read-only view of a study: configurations with their pulls, the winner, and the accounting.

`f2a_tune.study.reader.read_study` makes the view. ``cv_results_`` aside, everything that shows a
study to people reads this view, so all of them agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from f2a_tune.outcome import ErrorReport, Kind, Outcome
from f2a_tune.racing import Pull, Race
from f2a_tune.study.accounting import BudgetSummary
from f2a_tune.study.status import RACING


@dataclass(frozen=True)
class CurvePoint:
    """What a growing fit had reached after some rounds."""

    rounds: int
    score: float | None
    """None if it was not a finite number."""
    seconds: float


@dataclass(frozen=True)
class PullView:
    """One fit of a fold, or one call of an objective."""

    configuration: int
    fold: int
    kind: str
    """A `Kind`, or "pruned" for a trial that a pruner stopped.

    A growing fit is "paused" if it has not reached the level at which its configuration counts.
    """
    seconds: float
    cutoff_seconds: float
    score: float | None
    at_seconds: float
    """Spent part of the budget when the pull ended; NaN if unknown."""
    reason: str = ""
    error: str = ""
    curve: tuple[CurvePoint, ...] = ()
    """The learning curve of a fit that grows."""


@dataclass(frozen=True)
class ConfigurationView:
    """One configuration with all its pulls."""

    number: int
    params: dict[str, Any]
    pulls: tuple[PullView, ...]
    status: str
    """See `configuration_status`."""
    trial_numbers: tuple[int, ...] = ()
    """Trials with a finished evaluation."""
    is_feasible: bool = True
    """Whether its trials satisfy their constraints."""

    @cached_property
    def scores(self) -> list[float]:
        """Scores of the finished folds."""
        return [pull.score for pull in self.pulls if pull.score is not None]

    @property
    def mean(self) -> float:
        """Mean score of the finished folds; NaN without any."""
        with np.errstate(invalid="ignore"):  # infinities of both signs have no mean
            return float(np.mean(self.scores)) if self.scores else math.nan

    @property
    def spread(self) -> float:
        """Standard deviation over folds; NaN with fewer than two."""
        with np.errstate(invalid="ignore"):
            return float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else math.nan

    @property
    def seconds(self) -> float:
        """Seconds of all pulls."""
        return sum(pull.seconds for pull in self.pulls)

    @property
    def seconds_per_pull(self) -> float:
        """Mean seconds of a pull; NaN without any."""
        return self.seconds / len(self.pulls) if self.pulls else math.nan


@dataclass(frozen=True)
class StudyView:
    """A study as people look at it."""

    name: str
    maximize: bool
    n_folds: int
    """Folds, or evaluations, that a fully validated configuration has."""
    configurations: tuple[ConfigurationView, ...]
    budget: BudgetSummary
    """Where the worker-seconds went."""
    wall_seconds: float
    """Wall-clock seconds of all sessions; NaN if they are not recorded."""
    is_paired: bool = True
    """Whether all configurations are evaluated on the same folds."""
    recorded_winner: int | None = None
    """The configuration that the last search recommended, if it has written that."""

    @cached_property
    def pulls(self) -> list[PullView]:
        """All pulls in the order in which they ended."""
        found = [pull for one in self.configurations for pull in one.pulls]
        return sorted(found, key=lambda pull: (math.isnan(pull.at_seconds), pull.at_seconds))

    @cached_property
    def winner(self) -> ConfigurationView | None:
        """The recommended configuration.

        This is the best mean among those with all folds. If there is none, it is what a race
        recommends, which takes into account how uncertain a mean over few folds is.
        """
        is_running = any(one.status == RACING for one in self.configurations)
        if self.recorded_winner is not None and not is_running:
            return self.configurations[self.recorded_winner]
        feasible = [one for one in self.configurations if one.is_feasible]
        full = [one for one in feasible if len(one.scores) >= self.n_folds]
        if full:
            return max(full, key=self._rank)
        race = Race(self.n_folds, math.inf, maximize=self.maximize, paired=self.is_paired)
        race.rebuild(_told(feasible, self.n_folds))
        found = race.recommend()
        if found is not None:
            return feasible[found.configuration]
        return next((one for one in feasible if one.scores), None)  # all scores are infinite

    def _rank(self, configuration: ConfigurationView) -> float:
        mean = configuration.mean if self.maximize else -configuration.mean
        return -math.inf if math.isnan(mean) else mean

    @property
    def fully_validated(self) -> bool:
        """Whether the winner has all folds."""
        return self.winner is not None and len(self.winner.scores) >= self.n_folds

    def best_so_far(self) -> tuple[list[float], list[float], list[str]]:
        """Times, values and labels of each improvement of the best fully validated mean."""
        sign = 1.0 if self.maximize else -1.0
        done: dict[int, list[float]] = {}
        times, values, labels = [], [], []
        best = -math.inf
        for pull in self.pulls:
            if pull.score is None or math.isnan(pull.at_seconds):
                continue
            scores = done.setdefault(pull.configuration, [])
            scores.append(pull.score)
            mean = sum(scores) / len(scores)
            if len(scores) == self.n_folds and sign * mean > best:
                best = sign * mean
                times.append(pull.at_seconds)
                values.append(mean)
                labels.append(f"configuration {pull.configuration}")
        return times, values, labels


def _told(configurations: list[ConfigurationView], n_folds: int) -> Iterable[tuple[Pull, Outcome]]:
    """The pulls as a race was told of them."""
    count = 0
    for row, one in enumerate(configurations):
        for pull in one.pulls:
            if pull.kind == Kind.PAUSED:
                continue
            told = Pull(row, min(pull.fold, n_folds - 1), pull.cutoff_seconds, number=count)
            count += 1
            if pull.kind == Kind.FINISHED:
                yield told, Outcome.finished(pull.score, pull.seconds)
            elif pull.kind == Kind.GAVE_UP:
                yield told, Outcome.gave_up(pull.cutoff_seconds, pull.seconds)
            else:
                yield told, Outcome.failed(ErrorReport("fit", pull.error), pull.seconds)
