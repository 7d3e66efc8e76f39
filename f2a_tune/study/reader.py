"""Reads a study, running or finished, into a `StudyView`.

Studies of `F2ASearchCV` have one trial per configuration and one attribute per fold. Any other
study is read as one pull per trial. Nothing is written, and foreign attributes are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from optuna.trial import TrialState

from f2a_tune.outcome import FoldResult, Kind
from f2a_tune.study import optuna_private
from f2a_tune.study.accounting import PRUNED, Account, BudgetSummary
from f2a_tune.study.attributes import (
    DEFAULT,
    ERROR,
    FOLD,
    FOLDS,
    METRIC,
    UNIT,
    USE,
    WHICH_SPACE,
    WINNER,
    configuration_key,
    number_or,
)
from f2a_tune.study.fold_levels import chosen_level, chosen_rounds, kind_at
from f2a_tune.study.fold_record import FoldRecord, metric_of
from f2a_tune.study.history import is_given_up, seconds_of
from f2a_tune.study.limits import MOST_FOLDS
from f2a_tune.study.run_records import run_records, session_seconds
from f2a_tune.study.status import configuration_status
from f2a_tune.study.trial_plan import TrialPlan
from f2a_tune.study.view import ConfigurationView, CurvePoint, PullView, StudyView

if TYPE_CHECKING:
    from datetime import datetime

    from optuna import Study
    from optuna.trial import FrozenTrial


def study_of(study: Any) -> Study:
    """The study itself, given a study or a fitted search."""
    found: Study = getattr(study, "study_", study)
    return found


def read_study(study: Any) -> StudyView:
    """Read a study, or the study of a fitted search."""
    study = study_of(study)
    trials = optuna_private.all_trials(study)
    if trials and all(_is_of_search(trial) for trial in trials):
        return _read_search(study, trials)
    return _read_trials(study, trials)


def _is_of_search(trial: FrozenTrial) -> bool:
    """Whether a trial is one configuration of a search, with its folds."""
    if UNIT not in trial.user_attrs:
        return False
    if trial.state is not TrialState.COMPLETE:
        return True
    folds = (content for name, content in trial.user_attrs.items() if name.startswith(FOLD))
    return any(FoldRecord.from_attribute(content) is not None for content in folds)


def _wall_seconds(study: Study) -> float:
    sessions = session_seconds(run_records(study))
    return sum(sessions.values()) if sessions else math.nan


def _maximizes(study: Study) -> bool:
    return study.direction.name == "MAXIMIZE"


# One trial per configuration.


def _read_search(study: Study, trials: list[FrozenTrial]) -> StudyView:
    attributes = study.user_attrs
    merged: dict[str, list[FrozenTrial]] = {}
    for trial in trials:
        if UNIT in trial.user_attrs:
            merged.setdefault(repr(trial.user_attrs[UNIT]), []).append(trial)
    folds = [_folds_of(members) for members in merged.values()]
    seen = max((fold + 1 for records in folds for fold in records), default=1)
    said = number_or(attributes.get(FOLDS), math.nan)
    n_folds = int(said) if seen <= said <= MOST_FOLDS else seen
    metric = attributes.get(METRIC)
    configurations = tuple(
        _search_configuration(number, members, records, n_folds, metric)
        for number, (members, records) in enumerate(zip(merged.values(), folds, strict=True))
    )
    return StudyView(
        name=study.study_name,
        maximize=_maximizes(study),
        n_folds=n_folds,
        configurations=configurations,
        budget=_search_budget(study, configurations),
        wall_seconds=_wall_seconds(study),
        recorded_winner=_recorded_winner(attributes.get(WINNER), list(merged), len(trials)),
    )


def _recorded_winner(content: Any, units: list[str], n_trials: int) -> int | None:
    """The configuration that a search recommended, unless the study has grown since then."""
    if not isinstance(content, Mapping) or content.get("n_trials") != n_trials:
        return None
    unit = repr(content.get("unit"))
    return units.index(unit) if unit in units else None


def _search_configuration(
    number: int,
    trials: list[FrozenTrial],
    folds: dict[int, FoldRecord],
    n_folds: int,
    metric: Any,
) -> ConfigurationView:
    name = metric if isinstance(metric, str) else None
    level = chosen_level(list(folds.values()), n_folds, name)
    pulls = [
        pull
        for fold, record in sorted(folds.items())
        for pull in _pulls_of(number, fold, record, level, name)
    ]
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    trial = (complete or trials)[-1]
    own = trial.user_attrs.get(DEFAULT)  # values outside the space
    kinds = [str(kind) for one in folds.values() if (kind := kind_at(one, level)) is not None]
    params = _plain_params(trial.params) or (dict(own) if isinstance(own, Mapping) else {})
    return ConfigurationView(
        number,
        params | chosen_rounds(list(folds.values()), level),
        tuple(pulls),
        configuration_status(kinds, n_folds, is_open=not trial.state.is_finished()),
        tuple(one.number for one in complete or trials),
    )


def _folds_of(trials: list[FrozenTrial]) -> dict[int, FoldRecord]:
    """Fold records of one configuration over all its trials; finished ones come first."""
    found: dict[int, FoldRecord] = {}
    for trial in trials:
        for name, content in trial.user_attrs.items():
            if not (name.startswith(FOLD) and name[len(FOLD) :].isdecimal()):
                continue
            fold, record = int(name[len(FOLD) :]), FoldRecord.from_attribute(content)
            known = found.get(fold)
            if record is None:
                continue
            if known is None or known.result is None or record.is_newer_than(known):
                found[fold] = record
    return found


def _pulls_of(
    number: int, fold: int, record: FoldRecord, level: int, metric: str | None
) -> list[PullView]:
    reached = record.at(level)
    result = record.result
    if record.grows:
        result = None if reached is None else reached.result
    score = None if result is None else _finite_score(result, metric)
    earlier = [
        PullView(number, fold, Kind.GAVE_UP, seconds, seconds, None, at)
        for seconds, at in record.before
    ]
    last = PullView(
        number,
        fold,
        kind_at(record, level) or Kind.PAUSED,
        record.seconds,
        record.cutoff_seconds,
        score,
        record.at_seconds,
        record.reason,
        record.error,
        tuple(
            CurvePoint(one.rounds, _finite_score(one.result, metric), one.seconds)
            for one in record.curve
        ),
    )
    return [*earlier, last]


def _finite_score(result: FoldResult, metric: str | None) -> float | None:
    found = metric_of(result.test_scores, metric)
    return found if math.isfinite(found) else None


def _search_budget(study: Study, configurations: tuple[ConfigurationView, ...]) -> BudgetSummary:
    """Sums over the pulls; only the search itself knows the seconds of its refit."""
    account = Account()
    for one in configurations:
        for pull in one.pulls:
            finished = pull.kind == Kind.PAUSED  # it has finished some rounds
            account.add(Kind.FINISHED if finished else pull.kind, pull.seconds)
    written = BudgetSummary.from_attribute(study.user_attrs.get(USE))
    refit_seconds = 0.0 if written is None else written.refit_seconds
    records = run_records(study)
    player_seconds = sum(record.player_seconds for record in records)
    if written is not None and len(records) <= 1:
        player_seconds = written.total_seconds - refit_seconds
    return account.summary(player_seconds - account.pull_seconds, refit_seconds)


def _plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by the names of the estimator, without the choice between several spaces."""
    if WHICH_SPACE not in params:
        return dict(params)
    return {name.partition("@")[0]: v for name, v in params.items() if name != WHICH_SPACE}


# One trial per pull.


def _read_trials(study: Study, trials: list[FrozenTrial]) -> StudyView:
    plans = [plan for trial in trials if (plan := TrialPlan.of(trial)) is not None]
    n_evaluations = max((plan.evaluations for plan in plans), default=1)
    members: dict[str, list[FrozenTrial]] = {}
    for trial in trials:
        members.setdefault(configuration_key(trial.params), []).append(trial)
    start = min((t.datetime_start for t in trials if t.datetime_start is not None), default=None)
    return StudyView(
        name=study.study_name,
        maximize=_maximizes(study),
        n_folds=n_evaluations,
        configurations=tuple(
            _trial_configuration(number, found, n_evaluations, start)
            for number, found in enumerate(members.values())
        ),
        budget=_trial_budget(study, trials),
        wall_seconds=_wall_seconds(study),
        is_paired=False,
    )


def _trial_configuration(
    number: int, trials: list[FrozenTrial], n_evaluations: int, start: datetime | None
) -> ConfigurationView:
    pulls: list[PullView] = []
    for trial in trials:
        if trial.state.is_finished():
            pulls.append(_pull_of(trial, number, pulls, start))
    finished = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    return ConfigurationView(
        number,
        dict(trials[0].params),
        tuple(pulls),
        configuration_status(
            [pull.kind for pull in pulls],
            n_evaluations,
            is_open=not trials[-1].state.is_finished(),
        ),
        tuple(trial.number for trial in finished),
        all(optuna_private.is_feasible(trial) for trial in finished),
    )


def _pull_of(
    trial: FrozenTrial, number: int, earlier: list[PullView], start: datetime | None
) -> PullView:
    at = math.nan
    if trial.datetime_complete is not None and start is not None:
        at = (trial.datetime_complete - start).total_seconds()
    plan, seconds = TrialPlan.of(trial), seconds_of(trial)
    kind = _kind(trial, plan)
    n_finished = sum(pull.score is not None for pull in earlier)
    return PullView(
        number,
        n_finished if kind == Kind.FINISHED else 0,
        kind,
        0.0 if math.isnan(seconds) else seconds,
        math.inf if plan is None else plan.cutoff_seconds,
        trial.value if kind == Kind.FINISHED else None,
        at,
        "" if plan is None else plan.reason,
        str(trial.user_attrs.get(ERROR, "")),
    )


def _kind(trial: FrozenTrial, plan: TrialPlan | None) -> str:
    if trial.state is TrialState.COMPLETE:
        return Kind.FINISHED
    if is_given_up(trial, plan):
        return Kind.GAVE_UP
    return PRUNED if trial.state is TrialState.PRUNED else Kind.FAILED


def _trial_budget(study: Study, trials: list[FrozenTrial]) -> BudgetSummary:
    """Overhead is what `optimize` took beyond its trials.

    For trials of a plain ``study.optimize`` it is the part of their duration that was not measured
    as theirs.
    """
    account = Account()
    runs = {record.name: record.player_seconds for record in run_records(study)}
    overhead = sum(runs.values())
    for trial in trials:
        if not trial.state.is_finished():
            continue
        plan, spent = TrialPlan.of(trial), seconds_of(trial)
        spent = 0.0 if math.isnan(spent) else spent
        account.add(_kind(trial, plan), spent)
        if plan is not None and plan.run in runs:
            overhead -= spent
        elif trial.duration is not None:
            overhead += max(trial.duration.total_seconds() - spent, 0.0)
    return account.summary(overhead)
