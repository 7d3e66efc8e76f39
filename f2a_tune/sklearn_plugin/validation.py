"""`cross_val_score`: an estimator goes in, a score per fold comes out, each fit with a cutoff.

Folds run in killable workers, as many at a time as joblib would. In an Optuna objective the cutoff
of the trial bounds all folds together, every score is reported, and the trial is pruned when its
time is up or its pruner says so. Inside a worker, where the whole objective can be killed, folds
run in place.
"""

from __future__ import annotations

import math
import uuid
import warnings
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from optuna.exceptions import TrialPruned
from sklearn.base import is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from f2a_tune import clock
from f2a_tune.checks import positive_number
from f2a_tune.cutoff.dialogue import in_worker
from f2a_tune.cutoff.limits import memory_limit
from f2a_tune.cutoff.pool import CutoffPool, checked_memory
from f2a_tune.optuna_plugin import cutoff_of, running
from f2a_tune.outcome import FAILED, ErrorReport, Kind, Outcome
from f2a_tune.sklearn_plugin.fold import FoldData, score_fold
from f2a_tune.sklearn_plugin.pools import lent_pool
from f2a_tune.sklearn_plugin.routing import routed

if TYPE_CHECKING:
    from optuna.trial import BaseTrial


Folds = Generator[tuple[int, Outcome], None, None]


class FitTimeoutWarning(FitFailedWarning):  # type: ignore[misc]
    """Some fits were given up at their cutoff."""


class FoldScores(np.ndarray[tuple[int], np.dtype[np.float64]]):
    """Scores of the folds, as an array, with the outcome of each.

    A fold that was given up or failed has ``error_score`` in the array.
    """

    outcomes: tuple[Outcome, ...] = ()

    @classmethod
    def of(cls, outcomes: list[Outcome], error_score: float) -> FoldScores:
        """Make it."""
        values = [outcome.value if outcome.ok else error_score for outcome in outcomes]
        scores = cls(len(values))
        scores[:] = values
        scores.outcomes = tuple(outcomes)
        return scores


def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    trial: BaseTrial | None = None,
    cutoff: float | None = None,
    cv: Any = None,
    scoring: Any = None,
    groups: Any = None,
    params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    error_score: float | str = math.nan,
    memory: int | None = None,
) -> FoldScores:
    """Scores by cross-validation, like scikit-learn's, with a hard cutoff for every fit.

    Parameters
    ----------
    trial
        An Optuna trial: its cutoff is for all folds together, each score is reported to it at the
        step of its fold, and it is pruned (`optuna.TrialPruned`) when the time is up or
        ``trial.should_prune()`` says so.
    cutoff
        Seconds that a single fit may take; None for no limit but the trial's.
    cv, scoring, groups, params, n_jobs, error_score
        As for scikit-learn's ``cross_val_score``. ``error_score`` stands for folds that failed or
        were given up; "raise" raises instead.
    memory
        Bytes that a single fit may map (Linux).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> scores = cross_val_score(LogisticRegression(), *load_iris(return_X_y=True), cutoff=30)
    >>> len(scores), scores.outcomes[0].kind
    (5, <Kind.FINISHED: 'finished'>)
    """
    if cutoff is not None:
        cutoff = positive_number("cutoff", cutoff, endless=True)
    checked_memory(memory)
    if error_score != "raise" and not isinstance(error_score, (int, float)):
        raise ValueError(f"error_score must be a number or 'raise', got {error_score!r}.")
    data = _data(estimator, X, y, cv, scoring, groups, params)
    limits = _Limits(math.inf if cutoff is None else cutoff, _deadline(trial), memory)
    n_players = min(effective_n_jobs(n_jobs), len(data.splits))
    outcomes: dict[int, Outcome] = {}
    if in_worker() and cutoff is None:
        found: Folds = _in_place(data, memory)
    else:
        found = _in_workers(data, limits, n_players)
    try:
        for fold, outcome in found:
            outcomes[fold] = outcome
            if trial is not None:
                _tell(trial, fold, outcome)
    finally:
        with warnings.catch_warnings():  # joblib warns of folds that are not needed any more
            warnings.simplefilter("ignore", UserWarning)
            found.close()
    ordered = [outcomes[fold] for fold in range(len(data.splits))]
    if error_score == "raise":
        for outcome in ordered:
            outcome.unwrap()
        error_score = math.nan
    _warn(ordered, float(error_score))
    return FoldScores.of(ordered, float(error_score))


@dataclass(frozen=True)
class _Limits:
    cutoff_seconds: float
    deadline: float
    memory: int | None

    @property
    def remaining(self) -> float:
        """Seconds that a fit which starts now may take."""
        return min(self.cutoff_seconds, self.deadline - clock.monotonic_seconds())


def _data(
    estimator: Any, X: Any, y: Any, cv: Any, scoring: Any, groups: Any, params: Any
) -> FoldData:
    X, y = indexable(X, y)
    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    scorer = check_scoring(estimator, scoring=scoring)
    found = routed("cross_val_score", estimator, splitter, scorer, params or {}, groups)
    splits = list(splitter.split(X, y, **found.splitter.split))
    return FoldData(estimator, X, y, splits, scorer, found.estimator.fit, found.scorer.score)


def _deadline(trial: Any) -> float:
    """When a live trial's time is up, on the monotonic clock."""
    if trial is None or not hasattr(trial, "study"):
        return math.inf
    known = running.find(trial.study, trial)
    started = clock.monotonic_seconds() if known is None else known.started
    return started + cutoff_of(trial)


def _in_place(data: FoldData, memory: int | None) -> Folds:
    for fold in range(len(data.splits)):
        begin = clock.monotonic_seconds()
        try:
            with memory_limit(memory):
                value = score_fold(data, fold)
        except MemoryError as error:
            seconds = clock.monotonic_seconds() - begin
            yield fold, Outcome.out_of_memory(_report(error), seconds)
        except Exception as error:
            yield fold, Outcome.failed(_report(error), clock.monotonic_seconds() - begin)
        else:
            yield fold, Outcome.finished(value, clock.monotonic_seconds() - begin)


def _report(error: Exception) -> ErrorReport:
    return ErrorReport(type(error).__name__, str(error), exception=error)


def _in_workers(data: FoldData, limits: _Limits, n_players: int) -> Folds:
    folds = range(len(data.splits))
    begin = clock.monotonic_seconds()
    with lent_pool(n_players) as pool:
        # Starting workers is no fault of the trial.
        waited = clock.monotonic_seconds() - begin
        limits = replace(limits, deadline=limits.deadline + waited)
        shared = pool.share(f"folds-{uuid.uuid4().hex}", data.shareable())
        try:
            if n_players == 1:
                for fold in folds:
                    yield _one_fold(pool, shared, fold, limits)
            else:
                calls = (delayed(_one_fold)(pool, shared, fold, limits) for fold in folds)
                yield from Parallel(
                    n_players, backend="threading", return_as="generator_unordered"
                )(calls)
        finally:
            pool.forget(shared)


def _one_fold(pool: CutoffPool, shared: Any, fold: int, limits: _Limits) -> tuple[int, Outcome]:
    remaining = limits.remaining
    if remaining <= 0:
        return fold, Outcome.gave_up(0.0)
    outcome = pool.run(score_fold, shared, fold, cutoff=remaining, memory=limits.memory)
    return fold, outcome


def _tell(trial: BaseTrial, fold: int, outcome: Outcome) -> None:
    if outcome.kind is Kind.GAVE_UP:
        raise TrialPruned(f"fold {fold} was given up after {outcome.seconds:.3g} s")
    if not outcome.ok:
        return
    trial.report(outcome.value, fold)
    if trial.should_prune():
        raise TrialPruned(f"pruned after fold {fold}")


def _warn(outcomes: list[Outcome], error_score: float) -> None:
    given_up = [outcome for outcome in outcomes if outcome.kind is Kind.GAVE_UP]
    failed = [outcome for outcome in outcomes if outcome.kind in FAILED]
    if len(failed) == len(outcomes):
        raise ValueError(
            f"all {len(outcomes)} fits failed. The first one: {failed[0].error}. "
            "error_score='raise' shows where."
        )
    score = f"The score of these folds is set to {error_score}."
    for found, category, what in (
        (given_up, FitTimeoutWarning, "were given up at their cutoff"),
        (failed, FitFailedWarning, "failed"),
    ):
        if found:
            first = "" if found[0].error is None else f" The first one: {found[0].error}."
            text = f"{len(found)} of {len(outcomes)} fits {what}.{first} {score}"
            warnings.warn(text, category, stacklevel=3)
