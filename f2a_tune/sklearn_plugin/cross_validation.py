"""`cross_val_score`, cross-validation with a hard cutoff for every fit.

Folds run in killable workers, in parallel as joblib would run them. In an Optuna objective, the
trial's cutoff limits all folds together, every score is reported, and the trial is pruned when its
time is up or its pruner decides so. Inside a worker, where the whole objective can be killed,
folds run in place.
"""

from __future__ import annotations

import math
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
from f2a_tune.cutoff.call import checked_memory
from f2a_tune.cutoff.callback_channel import in_worker
from f2a_tune.cutoff.limits import memory_limit
from f2a_tune.outcome import FAILED, ErrorReport, Kind, Outcome
from f2a_tune.runtime.workers import Workers, open_workers
from f2a_tune.sklearn_plugin.fold import PRELOAD, FoldData, score_fold
from f2a_tune.sklearn_plugin.routing import routed
from f2a_tune.study import trial_clock
from f2a_tune.study.trial_plan import cutoff_of

if TYPE_CHECKING:
    from optuna.trial import BaseTrial


Folds = Generator[tuple[int, Outcome], None, None]


class FitTimeoutWarning(FitFailedWarning):  # type: ignore[misc]
    """Warns that some fits were given up at their cutoff."""


class FoldScores(np.ndarray[tuple[int], np.dtype[np.float64]]):
    """Array of the fold scores, with the outcome of each fold in ``outcomes``.

    Folds that were given up or failed have ``error_score`` in the array.
    """

    outcomes: tuple[Outcome, ...] = ()

    @classmethod
    def of(cls, outcomes: list[Outcome], error_score: float) -> FoldScores:
        """Create the array from the outcomes of all folds."""
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
    """Evaluate scores by cross-validation, like scikit-learn, with a hard cutoff for every fit.

    Parameters
    ----------
    estimator : estimator object
        The estimator to fit. It is cloned for each fold.
    X : array-like of shape (n_samples, n_features)
        The data to fit.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        The target for supervised learning.
    trial : optuna.Trial, default=None
        Pass the trial when you call this function in an Optuna objective. Its cutoff limits all
        folds together, each score is reported with the fold as step, and `optuna.TrialPruned` is
        raised when a fold is given up or ``trial.should_prune()`` returns True.
    cutoff : float, default=None
        Maximum number of seconds of a single fit, with its scoring. None means no limit except
        that of the trial. Set it if some fits may hang.
    cv : int, cross-validation generator or iterable, default=None
        Splitting strategy as in scikit-learn. None means 5 folds. Use more on small data, where
        scores vary strongly between folds.
    scoring : str or callable, default=None
        A single metric. None means the ``score`` method of the estimator. Set it if that is not
        the metric you optimize.
    groups : array-like of shape (n_samples,), default=None
        Group labels for splitters such as `GroupKFold`. Set it if rows are not independent. With
        metadata routing enabled, pass it in ``params``.
    params : dict, default=None
        Keyword arguments for ``fit`` such as ``sample_weight``. With metadata routing enabled,
        they are routed to estimator, scorer and splitter.
    n_jobs : int, default=None
        Number of folds that run in parallel. None means 1 unless in a `joblib.parallel_config`
        context, and -1 means one per core. Increase it if each fit uses a single core.
    error_score : float or "raise", default=nan
        Score of folds that failed or were given up. "raise" raises the error instead; use it for
        debugging.
    memory : int, default=None
        Maximum number of bytes that a single fit may map (Linux only). None means no limit. Set it
        if large fits could exhaust the memory of the machine.

    Returns
    -------
    FoldScores
        Array with one score per fold; its ``outcomes`` tell how each fit ended.

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
    limits = _FoldLimits(math.inf if cutoff is None else cutoff, _deadline(trial), memory)
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
        with warnings.catch_warnings():  # joblib warns about folds that are no longer needed
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
class _FoldLimits:
    cutoff_seconds: float
    deadline: float
    memory: int | None

    @property
    def remaining(self) -> float:
        """Seconds that a fit starting now may take."""
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
    """Return the end of a live trial's time on the monotonic clock; inf for other trials."""
    if trial is None or in_worker() or not hasattr(trial, "study"):
        return math.inf  # the parent process kills a worker at its cutoff
    start = trial_clock.find(trial.study, trial)
    begin = clock.monotonic_seconds() if start is None else start.monotonic_seconds
    return begin + cutoff_of(trial)


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


def _in_workers(data: FoldData, limits: _FoldLimits, n_players: int) -> Folds:
    folds = range(len(data.splits))
    begin = clock.monotonic_seconds()
    with open_workers(n_players, PRELOAD, data.shareable()) as workers:
        # Starting workers does not count towards the time of the trial.
        waited = clock.monotonic_seconds() - begin
        limits = replace(limits, deadline=limits.deadline + waited)
        if n_players == 1:
            for fold in folds:
                yield _one_fold(workers, fold, limits)
        else:
            calls = (delayed(_one_fold)(workers, fold, limits) for fold in folds)
            yield from Parallel(n_players, backend="threading", return_as="generator_unordered")(
                calls
            )


def _one_fold(workers: Workers, fold: int, limits: _FoldLimits) -> tuple[int, Outcome]:
    remaining = limits.remaining
    if remaining <= 0:
        return fold, Outcome.gave_up(0.0)
    outcome = workers.pool.run(
        score_fold, workers.data, fold, cutoff=remaining, memory=limits.memory
    )
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
            f"all {len(outcomes)} fits failed. The first error: {failed[0].error}. Pass "
            "error_score='raise' to see its traceback."
        )
    score = f"The score of these folds is set to {error_score}."
    for found, category, what in (
        (given_up, FitTimeoutWarning, "were given up at their cutoff"),
        (failed, FitFailedWarning, "failed"),
    ):
        if found:
            first = "" if found[0].error is None else f" The first error: {found[0].error}."
            text = f"{len(found)} of {len(outcomes)} fits {what}.{first} {score}"
            warnings.warn(text, category, stacklevel=3)
