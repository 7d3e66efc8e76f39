"""`F2ASearchCV`: a scikit-learn search with a time budget.

`fit` prepares scorers, splits, space and study, runs the search, chooses the winner among the
fully validated configurations, and refits it in the time that was kept for that. Everything that
the search learns is in the study.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from optuna.samplers import BaseSampler
from sklearn.base import clone

from f2a_tune import clock
from f2a_tune.bandit import Policy
from f2a_tune.runtime.joblib_backend import copied_to_memory
from f2a_tune.runtime.progress import Progress
from f2a_tune.sklearn_plugin import sklearn_private
from f2a_tune.sklearn_plugin.cv_results import (
    PartialValidationWarning,
    cv_results,
    warn_of_non_finite,
    warn_partial,
)
from f2a_tune.sklearn_plugin.failures import warn_of_failures
from f2a_tune.sklearn_plugin.fold import PRELOAD
from f2a_tune.sklearn_plugin.inner_threads import mention_threads
from f2a_tune.sklearn_plugin.joblib_search import run_elsewhere, search_backend
from f2a_tune.sklearn_plugin.search_run import SearchInterruptedWarning, SearchRun, describe
from f2a_tune.sklearn_plugin.settings import Settings
from f2a_tune.sklearn_plugin.sklearn_callbacks import SklearnCallbacks
from f2a_tune.sklearn_plugin.task import SearchTask, prepared_search
from f2a_tune.study import optuna_private
from f2a_tune.study.accounting import BudgetSummary
from f2a_tune.study.attributes import FOLDS, METRIC, USE, WINNER
from f2a_tune.study.configuration_record import point_to_json
from f2a_tune.study.opening import search_study, storage_with
from f2a_tune.study.storage_retry import STORAGE_ERRORS

__all__ = ["F2ASearchCV", "PartialValidationWarning", "SearchInterruptedWarning"]


class F2ASearchCV(sklearn_private.base_search_cv()):  # type: ignore[misc]
    """Search over parameters within a wall-clock budget, with an enforced cutoff for every fit.

    Each fit of one configuration on one fold runs in a worker process that is killed at its
    cutoff. A race decides which configuration and fold comes next and how long to wait for it:
    configurations that cannot win any more get no more folds, and cutoffs are learned from earlier
    fits. ``fit`` returns when the budget is spent, refit included, or when every configuration of
    a finite space has been evaluated.

    Parameters
    ----------
    estimator : estimator object
        The estimator to tune, as in `RandomizedSearchCV`. Its own parameter values are tried
        first, so the result is not worse than the default in cross-validation.
    param_distributions : dict or list of dicts
        Parameter names with lists, scipy distributions or Optuna distributions. With a list of
        dicts, each configuration is drawn from one of them; use it for parameters that exclude
        each other.
    time_budget : float or str, default=60
        Seconds for everything, refit included, or a text such as "90s", "5m" or "1h30m". Allow at
        least as long as all folds and the refit of the default take.
    timeouts : list of float, optional
        Cutoffs in seconds to choose from. By default they are learned, which is better unless you
        know the durations well.
    policy : {"race", "wait-ucb"} or Policy, default="race"
        How to choose the next fit. "wait-ucb" is the algorithm of the paper over a pool of
        configurations; a policy of `f2a_tune.bandit` plays the same game. Change it only to
        compare.
    proposals : {"model", "random"} or optuna.samplers.BaseSampler, optional
        Where new configurations come from: a model of score and seconds (default), random draws,
        or an Optuna sampler. Try "random" if fits take a few milliseconds.
    scoring : str, callable, list, tuple or dict, optional
        As in `RandomizedSearchCV`.
    n_jobs : int, optional
        Number of fits to run at the same time; -1 uses all cores. Under `joblib.parallel_config`
        with a backend of processes ("loky", "dask", "ray") the fits are supervised there. If the
        estimator uses several threads itself, choose fewer.
    refit : bool, str or callable, default=True
        As in `RandomizedSearchCV`. Time for the refit is kept in the budget.
    cv : int, cross-validation generator or iterable, optional
        As in `RandomizedSearchCV`; 5 folds by default.
    verbose : int, default=0
        1 shows a progress bar in a terminal, and elsewhere a line every two seconds; 2 prints a
        line for every fit.
    random_state : int, RandomState instance, optional
        Seed of the proposals. Cutoffs depend on a real clock, so two searches with the same seed
        can still differ.
    error_score : "raise" or float, default=np.nan
        As in `RandomizedSearchCV`.
    return_train_score : bool, default=False
        As in `RandomizedSearchCV`.
    storage : str or optuna.storages.BaseStorage, optional
        Where to keep the search: the URL of a database, the path of a file that ends in .journal,
        or an Optuna storage. By default it is kept in memory. Set it, with ``study_name``, to
        resume the search later, to watch it with optuna-dashboard, or to share it between
        processes.
    study_name : str, optional
        Name of the study in the storage.
    resume : bool, default=False
        Whether to continue an earlier search of that name with the seconds it had left.
    max_configurations : int, optional
        Maximum number of configurations to try. By default there is no limit.
    memory : int, optional
        Maximum number of bytes that one fit may map (Linux only). By default there is no limit.
    callbacks : list of callable, optional
        Called with an `Event` after each fit. The search ends when one of them returns True. With
        a joblib backend of processes, they are called in those processes, and ``verbose`` shows
        nothing.
    start : list of dict, optional
        Configurations to try first, each with all parameters of a dict of the space. By default
        the estimator's own values; pass ``[]`` for none.
    growth : {"auto"} or None, default="auto"
        With "auto", fits of boosting models, forests and other estimators that grow by rounds are
        scored while they run, and paused, continued or dropped. The largest number of rounds in
        ``param_distributions``, or that of the estimator, is the limit; ``best_params_`` contains
        the number that was validated. Other estimators are not affected, nor are searches with
        ``timeouts``, ``policy`` or ``proposals``. None runs every fit to its end.

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, refit_time_, scorer_, n_splits_, \
multimetric_, classes_, n_features_in_, feature_names_in_
        As in `RandomizedSearchCV`.
    cv_results_ : dict
        As in `RandomizedSearchCV`, with these additional columns: ``n_folds_done``,
        ``n_given_up``, ``n_failed``, ``seconds`` (of all fits), ``rounds`` (at which a fit that
        grows was scored, else 0), ``cutoff`` (of the last fit),
        ``in_space`` (False for the estimator's own values if they lie outside the space) and
        ``status``: "complete" with all folds, "given_up" if no fit finished before its cutoff,
        "failed" if a fit failed, "dropped" otherwise.
    study_ : optuna.Study
        One trial per configuration, one intermediate value per fold.
    budget_ : BudgetSummary
        Where the seconds of this call went.

    Warns
    -----
    PartialValidationWarning
        If the best configuration was not evaluated on all folds.
    RefitWarning
        If the refit did not finish in time and a model of one fold takes its place.
    SearchInterruptedWarning
        If Ctrl-C was pressed; the search is fitted with the best result so far.
    StorageLostWarning
        If the storage could not be reached at the end.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> search = F2ASearchCV(
    ...     LogisticRegression(max_iter=500), {"C": loguniform(1e-3, 1e3)},
    ...     time_budget=20, max_configurations=5, random_state=0,
    ... )
    >>> bool(search.fit(*load_iris(return_X_y=True)).best_score_ > 0.9)
    True
    """

    study_attributes: Mapping[str, Any] = MappingProxyType({})
    """User attributes to set on the study; for programs that start searches for their users."""
    worker_preload: tuple[str, ...] = PRELOAD
    """Modules that workers import before the first fit."""
    started: float | None = None
    """Monotonic time from which ``time_budget`` counts; by default the start of `fit`."""

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        time_budget: float | str = 60,
        timeouts: Any = None,
        policy: str | Policy = "race",
        proposals: str | BaseSampler | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        storage: Any = None,
        study_name: str | None = None,
        resume: bool = False,
        max_configurations: int | None = None,
        memory: int | None = None,
        callbacks: Any = None,
        start: Any = None,
        growth: str | None = "auto",
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.param_distributions = param_distributions
        self.time_budget = time_budget
        self.timeouts = timeouts
        self.policy = policy
        self.proposals = proposals
        self.random_state = random_state
        self.storage = storage
        self.study_name = study_name
        self.resume = resume
        self.max_configurations = max_configurations
        self.memory = memory
        self.callbacks = callbacks
        self.start = start
        self.growth = growth

    @sklearn_private.fit_context()  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, **params: Any) -> F2ASearchCV:
        """Search for the best configuration, and refit it on all rows.

        Parameters
        ----------
        X, y
            Data as the estimator takes it.
        **params
            Passed to the estimator's ``fit``, the scorer and the splitter, as in
            `RandomizedSearchCV`.
        """
        task = prepared_search(self, X, y, params)
        self.n_splits_ = task.settings.n_folds
        mention_threads(self.estimator, task.settings.n_players)
        callbacks = SklearnCallbacks(self, task.data.X, task.data.y, params.get("sample_weight"))
        with ExitStack() as resources:
            run = self._run(task, callbacks, resources)
            winner = self._set_results(run, task)
            if self.refit:
                self._refit(run, callbacks)
        self.budget_ = run.budget_summary(self.refit_time_ if self.refit else 0.0)
        self._write_summary(run, winner)
        callbacks.end()
        return self

    def _write_summary(self, run: SearchRun, winner: int | None) -> None:
        """Write the winner and the accounting to the study, for reports."""
        with suppress(*STORAGE_ERRORS):
            if winner is not None:
                point = point_to_json(run.state.store.units[winner])
                n_trials = len(optuna_private.all_trials(self.study_))
                self.study_.set_user_attr(WINNER, {"unit": point, "n_trials": n_trials})
            self.study_.set_user_attr(USE, self.budget_.to_attribute())

    def join(self, X: Any, y: Any = None, **params: Any) -> BudgetSummary:
        """Help with a search that another process has started, until its budget ends.

        The process that started the search gets the result.

        Parameters
        ----------
        X, y, **params
            The same data and parameters as in the `fit` of the other process. ``storage`` must be
            one that both processes can reach, and ``study_name`` the same.

        Returns
        -------
        BudgetSummary
            Where the seconds of all processes went.
        """
        if self.storage is None or self.study_name is None:
            raise ValueError("join() requires both storage= and study_name=.")
        storage = storage_with(self.storage, self.study_name)
        # The run that started the search has tried the estimator as it is.
        search = clone(self).set_params(storage=storage, resume=True, start=[])
        search.worker_preload = self.worker_preload
        with ExitStack() as resources:
            run = search._run(prepared_search(search, X, y, params), None, resources)
        return run.budget_summary(0.0)  # type: ignore[no-any-return]

    def _run(
        self, task: SearchTask, callbacks: SklearnCallbacks | None, resources: ExitStack
    ) -> SearchRun:
        settings = task.settings
        with search_backend(self.storage, self.policy, settings.n_players) as backend:
            self.study_ = search_study(
                None if self.storage is None else backend.storage,
                self.study_name,
                resume=self.resume,
                temporary=backend.storage,
                fingerprint=task.fingerprint,
            )
            self._write_settings(settings)
            run = SearchRun(
                settings,
                self.study_,
                task.space,
                task.data,
                task.budget,
                shared=backend.storage is not None,
                elsewhere=backend.is_elsewhere,
            )
            resources.push(run)
            if callbacks is not None:
                run.add_callback(callbacks)
            with self._progress(run):
                if backend.is_elsewhere:
                    run.watch(lambda: run_elsewhere(run, backend.storage))
                else:
                    run.run()
            if backend.is_temporary:
                self.study_ = copied_to_memory(self.study_)
        return run

    def _write_settings(self, settings: Settings) -> None:
        """Write to the study what readers need to know."""
        for name, value in self.study_attributes.items():
            self.study_.set_user_attr(name, value)
        self.study_.set_user_attr(FOLDS, settings.n_folds)
        if settings.metric is not None:
            self.study_.set_user_attr(METRIC, settings.metric)

    def _progress(self, run: SearchRun) -> AbstractContextManager[object]:
        if not self.verbose:
            return nullcontext()
        progress = Progress(
            run.state.budget, partial(describe, run.state), run.settings.n_folds, self.verbose
        )
        run.add_callback(progress)
        return progress

    def _set_results(self, run: SearchRun, task: SearchTask) -> int | None:
        """Set the fitted attributes from the results of the run; returns the winner, if any."""
        refit_metric, store = task.refit_metric, run.state.store
        finished = store.results
        if not finished and run.interrupted:
            raise KeyboardInterrupt
        if not finished:
            raise run.why_nothing()
        self.multimetric_ = isinstance(finished[0].test_scores, Mapping)
        if callable(self.scoring) and self.multimetric_:
            sklearn_private.check_refit_for_multimetric(self, finished[0].test_scores)
            refit_metric = self.refit
        error_score = math.nan if self.error_score == "raise" else float(self.error_score)
        results = cv_results(
            store.configurations, self.n_splits_, error_score, train=self.return_train_score
        )
        warn_of_failures(store.records, error_score)
        warn_of_non_finite(results, finished)
        self.cv_results_ = results
        self.scorer_ = sklearn_private.scorers_by_name(task.data.scorer)
        if not self.refit and self.multimetric_:
            return None
        self.best_index_ = sklearn_private.best_index_of(self, refit_metric, results)
        complete = results["status"] == "complete"
        if not callable(self.refit):
            self.best_index_ = run.best_partial(self.best_index_)
        if not complete[self.best_index_]:
            warn_partial(results, self.best_index_, self.n_splits_, run.fits_to_validate)
        if not callable(self.refit):
            self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
        self.best_params_ = results["params"][self.best_index_]
        return int(self.best_index_)

    def _refit(self, run: SearchRun, callbacks: SklearnCallbacks) -> None:
        # Parameters may be estimators themselves: they are cloned too, as scikit-learn does.
        estimator = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        begin = clock.monotonic_seconds()
        with callbacks.refit(estimator):
            if any(sklearn_private.has_callbacks(one) for one in (self, self.estimator)):
                # Callbacks live in this process, not in a worker.
                estimator.fit(*run.data.rows, **run.data.fit_params)
            else:
                estimator = run.refitted(self.best_index_, self.best_params_)
        self.best_estimator_ = estimator
        self.refit_time_ = clock.monotonic_seconds() - begin
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
