"""A study as people look at it: an Optuna study in, running or dead, its pulls and results out.

Studies of `F2ASearchCV` have one trial per configuration and a fold in every attribute; any other
study is read as one pull per trial. Nothing is written, and foreign attributes are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.trial import TrialState

from f2a_tune import _compat
from f2a_tune.optuna_plugin.history import is_given_up, seconds_of
from f2a_tune.optuna_plugin.plan import ERROR, Plan, configuration_key, number_or
from f2a_tune.optuna_plugin.runs import recorded_runs, run_notes, session_seconds
from f2a_tune.outcome import FAILED, ErrorReport, Kind, Outcome
from f2a_tune.racing import Pull, Race
from f2a_tune.sklearn_plugin.account import USE, Account, BudgetUse
from f2a_tune.sklearn_plugin.candidates import WHICH
from f2a_tune.sklearn_plugin.pulls import PullRecord, metric_of
from f2a_tune.sklearn_plugin.record import FOLD, FOLDS, METRIC, UNIT

if TYPE_CHECKING:
    from datetime import datetime

    from optuna import Study
    from optuna.trial import FrozenTrial


# A study that says it has more is not believed.
MOST_FOLDS = 10_000


@dataclass(frozen=True)
class PullLine:
    """One fit, or one call of an objective."""

    configuration: int
    fold: int
    kind: Kind
    seconds: float
    cutoff_seconds: float
    score: float | None
    at_seconds: float
    """How much of the budget was spent when it ended; NaN if nobody knows."""
    reason: str
    error: str


@dataclass(frozen=True)
class ConfigurationLine:
    """One configuration with all that is known of it."""

    number: int
    params: dict[str, Any]
    pulls: tuple[PullLine, ...]
    status: str
    """complete, racing, dropped, given_up or failed."""

    @cached_property
    def scores(self) -> list[float]:
        """Of the folds that have finished."""
        return [pull.score for pull in self.pulls if pull.score is not None]

    @property
    def mean(self) -> float:
        """Of the folds that have finished; NaN if none has."""
        return float(np.mean(self.scores)) if self.scores else math.nan

    @property
    def spread(self) -> float:
        """Standard deviation over folds; NaN with fewer than two."""
        return float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else math.nan

    @property
    def seconds(self) -> float:
        """Of all its pulls."""
        return sum(pull.seconds for pull in self.pulls)

    @property
    def seconds_per_pull(self) -> float:
        """NaN if it has none."""
        return self.seconds / len(self.pulls) if self.pulls else math.nan


@dataclass(frozen=True)
class StudyReading:
    """A study, read."""

    name: str
    maximize: bool
    n_folds: int
    configurations: tuple[ConfigurationLine, ...]
    use: BudgetUse
    budget_seconds: float
    """Wall-clock seconds that were spent on it; NaN if nobody wrote them down."""

    @cached_property
    def pulls(self) -> list[PullLine]:
        """All of them, in the order they ended."""
        found = [pull for one in self.configurations for pull in one.pulls]
        return sorted(found, key=lambda pull: (math.isnan(pull.at_seconds), pull.at_seconds))

    @cached_property
    def winner(self) -> ConfigurationLine | None:
        """The best of those with all folds; if there is none, what the race would recommend."""
        sign = 1.0 if self.maximize else -1.0
        full = [one for one in self.configurations if len(one.scores) >= self.n_folds]
        if full:
            return max(full, key=lambda one: sign * one.mean)
        race = Race(self.n_folds, math.inf, maximize=self.maximize)
        for number, one in enumerate(self.configurations):
            for pull in one.pulls:
                race.rebuild([_told(number, pull, race.n_pulls)])
        found = race.recommend()
        return None if found is None else self.configurations[found.configuration]

    @property
    def fully_validated(self) -> bool:
        """Whether the winner has all folds."""
        return self.winner is not None and len(self.winner.scores) >= self.n_folds

    def best_so_far(self) -> tuple[list[float], list[float], list[str]]:
        """When the best mean of a fully validated configuration changed, to what, and which."""
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


def _told(number: int, pull: PullLine, count: int) -> tuple[Pull, Outcome]:
    """A pull as the race heard of it."""
    told = Pull(number, pull.fold, pull.cutoff_seconds, number=count)
    if pull.kind is Kind.FINISHED:
        return told, Outcome.finished(pull.score, pull.seconds)
    if pull.kind is Kind.GAVE_UP:
        return told, Outcome.gave_up(pull.cutoff_seconds, pull.seconds)
    return told, Outcome(pull.kind, pull.seconds, error=ErrorReport("fit", pull.error))


def read_study(study: Study) -> StudyReading:
    """Read all there is."""
    trials = _compat.all_trials(study)
    attributes = study.user_attrs
    if any(UNIT in trial.user_attrs for trial in trials):
        configurations = _of_search(trials, attributes.get(METRIC))
        seen = [pull.fold + 1 for one in configurations for pull in one.pulls]
        n_folds = _folds_between(max(seen, default=1), attributes.get(FOLDS))
    else:
        configurations = _of_trials(trials)
        plans = [plan for trial in trials if (plan := Plan.of(trial)) is not None]
        n_folds = max((plan.evaluations for plan in plans), default=1)
    sessions = session_seconds(run_notes(study))
    return StudyReading(
        name=study.study_name,
        maximize=study.direction.name == "MAXIMIZE",
        n_folds=n_folds,
        configurations=tuple(configurations),
        use=_use(configurations, study, BudgetUse.from_attribute(attributes.get(USE))),
        budget_seconds=sum(sessions.values()) if sessions else math.nan,
    )


def _folds_between(least: int, said: Any) -> int:
    """How many folds there are: what the study says, if it makes sense."""
    number = number_or(said, math.nan)
    return int(number) if least <= number <= MOST_FOLDS else least


def _of_search(trials: list[FrozenTrial], metric: Any) -> list[ConfigurationLine]:
    merged: dict[str, list[FrozenTrial]] = {}
    for trial in trials:
        if UNIT in trial.user_attrs:
            merged.setdefault(repr(trial.user_attrs[UNIT]), []).append(trial)
    lines = []
    for number, members in enumerate(merged.values()):
        pulls = [
            line
            for fold, record in sorted(_folds_of(members).items())
            for line in _lines_of(number, fold, record, metric)
        ]
        complete = [trial for trial in members if trial.state is TrialState.COMPLETE]
        trial = (complete or members)[-1]
        params, status = _plain_params(trial.params), _status(trial, pulls)
        lines.append(ConfigurationLine(number, params, tuple(pulls), status))
    return lines


def _folds_of(trials: list[FrozenTrial]) -> dict[int, PullRecord]:
    """Of one configuration, whichever trials it went on in; what has finished goes first."""
    found: dict[int, PullRecord] = {}
    for trial in trials:
        for name, content in trial.user_attrs.items():
            if not (name.startswith(FOLD) and name[len(FOLD) :].isdecimal()):
                continue
            fold, record = int(name[len(FOLD) :]), PullRecord.from_attribute(content)
            known = found.get(fold)
            if record is not None and (known is None or known.result is None):
                found[fold] = record
    return found


def _lines_of(number: int, fold: int, record: PullRecord, metric: Any) -> list[PullLine]:
    score = None
    if record.result is not None:
        found = metric_of(record.result.test_scores, metric if isinstance(metric, str) else None)
        score = found if math.isfinite(found) else None
    earlier = [
        PullLine(number, fold, Kind.GAVE_UP, s, s, None, at, "", "") for s, at in record.before
    ]
    last = PullLine(
        number,
        fold,
        record.kind,
        record.seconds,
        record.cutoff_seconds,
        score,
        record.at_seconds,
        record.reason,
        record.error,
    )
    return [*earlier, last]


def _of_trials(trials: list[FrozenTrial]) -> list[ConfigurationLine]:
    begun = [t.datetime_start for t in trials if t.datetime_start is not None]
    start = min(begun, default=None)
    rows: dict[str, int] = {}
    pulls: dict[int, list[PullLine]] = {}
    members: dict[int, list[FrozenTrial]] = {}
    for trial in trials:
        row = rows.setdefault(configuration_key(trial.params), len(rows))
        members.setdefault(row, []).append(trial)
        if trial.state.is_finished():
            mine = pulls.setdefault(row, [])
            mine.append(_line_of_trial(trial, row, mine, start))
    return [
        ConfigurationLine(
            row,
            dict(found[0].params),
            tuple(pulls.get(row, ())),
            _status(found[-1], pulls.get(row, [])),
        )
        for row, found in members.items()
    ]


def _line_of_trial(
    trial: FrozenTrial, row: int, earlier: list[PullLine], start: datetime | None
) -> PullLine:
    at = math.nan
    if trial.datetime_complete is not None and start is not None:
        at = (trial.datetime_complete - start).total_seconds()
    plan, seconds = Plan.of(trial), seconds_of(trial)
    kind = _kind(trial, plan)
    done = sum(pull.score is not None for pull in earlier)
    return PullLine(
        row,
        done if kind is Kind.FINISHED else 0,
        kind,
        0.0 if math.isnan(seconds) else seconds,
        math.inf if plan is None else plan.cutoff_seconds,
        trial.value if kind is Kind.FINISHED else None,
        at,
        "" if plan is None else plan.reason,
        str(trial.user_attrs.get(ERROR, "")),
    )


def _kind(trial: FrozenTrial, plan: Plan | None) -> Kind:
    if trial.state is TrialState.COMPLETE:
        return Kind.FINISHED
    return Kind.GAVE_UP if is_given_up(trial, plan) else Kind.FAILED


def _status(trial: FrozenTrial, pulls: list[PullLine]) -> str:
    if trial.state is TrialState.COMPLETE:
        return "complete"
    if not trial.state.is_finished():
        return "racing"
    if any(pull.kind in FAILED for pull in pulls):
        return "failed"
    return "dropped" if any(pull.score is not None for pull in pulls) else "given_up"


def _use(
    configurations: list[ConfigurationLine], study: Study, written: BudgetUse | None
) -> BudgetUse:
    """By the pulls; what only the search itself knew, it wrote down at its end."""
    account = Account()
    for one in configurations:
        for pull in one.pulls:
            account.add(pull.kind, pull.seconds)
    refit = 0.0 if written is None else written.refit_seconds
    runs = recorded_runs(study)
    played = sum(runs.values())
    if written is not None and len(runs) <= 1:
        played = written.total_seconds - refit
    return account.close(played, 0.0, refit)


def _plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by the names that the estimator knows, without the choice between spaces."""
    if WHICH not in params:
        return dict(params)
    return {name.partition("@")[0]: value for name, value in params.items() if name != WHICH}
