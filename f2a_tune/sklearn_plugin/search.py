"""`F2ASearchCV`: an estimator with a space goes in, the best configuration comes out, on time.

`fit` prepares (scorers, splits, space, study), lets the players run, chooses the winner among the
fully validated configurations, and refits it in the seconds that were kept for that. All that the
search learns is in the study; the estimator only reads it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import optuna
from joblib import effective_n_jobs
from optuna.samplers import BaseSampler
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, indexable

from f2a_tune import _compat, clock
from f2a_tune.bandit import Policy
from f2a_tune.checks import known_name, positive_integer, positive_number
from f2a_tune.clock import Budget
from f2a_tune.cutoff.pool import checked_memory
from f2a_tune.optuna_plugin.storages import without_passwords
from f2a_tune.racing.space import Floats
from f2a_tune.sklearn_plugin.account import USE, BudgetUse
from f2a_tune.sklearn_plugin.candidates import CandidateSpace
from f2a_tune.sklearn_plugin.elsewhere import (
    brought_home,
    place_to_play,
    play_elsewhere,
)
from f2a_tune.sklearn_plugin.fold import FoldData
from f2a_tune.sklearn_plugin.patience import STORAGE_TROUBLE
from f2a_tune.sklearn_plugin.record import FOLDS, METRIC
from f2a_tune.sklearn_plugin.results import (
    PartialValidationWarning,
    cv_results,
    warn_of_non_finite,
    warn_partial,
)
from f2a_tune.sklearn_plugin.session import SearchInterruptedWarning, Session, Settings
from f2a_tune.sklearn_plugin.studies import open_study, quiet_optuna, storage_with
from f2a_tune.sklearn_plugin.watching import Progress, Watch

__all__ = ["F2ASearchCV", "PartialValidationWarning", "SearchInterruptedWarning"]

PROPOSALS = ("model", "random")


class F2ASearchCV(_compat.base_search_cv()):  # type: ignore[misc]
    """Search over parameters inside a wall-clock budget, with hard cutoffs for every fit.

    One pull is one fit on one fold, in a process that is killed at its cutoff. Which configuration
    and fold comes next, and how long to wait for it, is decided by a race: configurations that
    cannot win any more get no more folds, and waiting is learned. ``fit`` returns when the budget
    is spent, refit included, or when every configuration of a finite space is done.

    Parameters
    ----------
    estimator
        As in `RandomizedSearchCV`.
    param_distributions
        A dict of lists, scipy distributions or Optuna distributions, or a list of such dicts.
    time_budget
        Seconds for all of it.
    timeouts
        The cutoffs to choose from, in seconds; learned if left out.
    policy
        "race" (default), "wait-ucb", or a policy of `f2a_tune.bandit`.
    proposals
        Where configurations come from: "model" (default, also None), "random", or an Optuna
        sampler.
    scoring, n_jobs, refit, cv, verbose, random_state, error_score, return_train_score
        As in `RandomizedSearchCV`. With ``verbose=1`` a line now and then says how it goes.
    storage, study_name, resume
        Where to keep the search: an Optuna storage or its URL, and a name; with ``resume=True`` an
        earlier search of that name goes on with the seconds it had left.
    max_configurations
        At most so many.
    memory
        Bytes that one fit may map (Linux).
    callbacks
        Functions that are called with each `Event`; one that returns True ends the search.
    start
        Configurations to try first: dicts with all parameters of a dict of the space. By default
        the estimator's own values, if they are in the space; ``[]`` for none.

    Attributes
    ----------
    cv_results_, best_index_, best_params_, best_score_, best_estimator_, refit_time_, scorer_,
    n_splits_, multimetric_, classes_, n_features_in_, feature_names_in_
        As in `RandomizedSearchCV`; ``cv_results_`` also has ``n_folds_done``, ``n_given_up``,
        ``n_failed``, ``seconds``, ``cutoff`` and ``status`` ("complete", "given_up", "dropped" or
        "failed").
    study_
        The Optuna study: one trial is one configuration, its intermediate values are folds.
    budget_
        Where the seconds went.

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
    """Written to the study before the first fit; for programs that begin searches for others."""

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        time_budget: float = 60,
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

    @_compat.fit_context()  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, **params: Any) -> F2ASearchCV:
        """Search, and refit the winner.

        Parameters
        ----------
        X, y
            Data as the estimator takes it.
        **params
            Passed to the estimator's ``fit``, the scorer and the splitter, as in
            `RandomizedSearchCV`.
        """
        task = self._task(X, y, params)
        watch = Watch(self, task.data.X, task.data.y, params.get("sample_weight"))
        session = self._play(task, watch)
        self._take_over(session, task)
        if self.refit:
            self._refit(task.data, watch)
        self.budget_ = session.use(self.refit_time_ if self.refit else 0.0)
        with suppress(*STORAGE_TROUBLE):
            self.study_.set_user_attr(USE, self.budget_.to_attribute())
        watch.end()
        return self

    def join(self, X: Any, y: Any = None, **params: Any) -> BudgetUse:
        """Play along in a search that another process has begun, until its budget ends.

        It takes the same data and parameters as `fit` there, a storage that both can reach and the
        name of the study. Returns where the seconds of all went; who began the search has the
        result.
        """
        if self.storage is None or self.study_name is None:
            raise ValueError("join needs a storage and a study_name: where is the search?")
        storage = storage_with(self.storage, self.study_name)
        # Who began has tried the estimator as it is.
        search = clone(self).set_params(storage=storage, resume=True, start=[])
        return search._play(search._task(X, y, params), None).use(0.0)  # type: ignore[no-any-return]

    def _task(self, X: Any, y: Any, params: dict[str, Any]) -> _Task:
        """All that is to be done, checked."""
        budget = Budget(positive_number("time_budget", self.time_budget))
        scorers, refit_metric = _compat.scorers_of(self)
        X, y = indexable(X, y)
        params = _compat.checked_params(X, params)
        routed = _compat.routed_for_fit(self, params)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = splitter.get_n_splits(X, y, **routed.splitter.split)
        splits = list(splitter.split(X, y, **routed.splitter.split))
        if not splits:
            raise ValueError(
                "No fits were performed. Was the CV iterator empty? Were there no candidates?"
            )
        if len(splits) != self.n_splits_:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. "
                f"Expected {self.n_splits_} splits, got {len(splits)}"
            )
        data = FoldData(
            clone(self.estimator),
            X,
            y,
            splits,
            scorers,
            routed.estimator.fit,
            routed.scorer.score,
            self.return_train_score,
        )
        space = CandidateSpace(self.param_distributions, self.estimator)
        metric = refit_metric if isinstance(refit_metric, str) else None
        return _Task(budget, data, space, self._settings(space, metric), refit_metric)

    def _play(self, task: _Task, watch: Watch | None) -> Session:
        with place_to_play(self.storage, self.policy, task.settings.n_players) as place:
            self.study_ = self._study(place.storage, task.data, task.space)
            for name, value in self.study_attributes.items():
                self.study_.set_user_attr(name, value)
            self.study_.set_user_attr(FOLDS, task.settings.n_folds)
            if task.settings.metric is not None:
                self.study_.set_user_attr(METRIC, task.settings.metric)
            session = Session(
                task.settings,
                self.study_,
                task.space,
                task.data,
                task.budget,
                shared=place.storage is not None,
                elsewhere=place.elsewhere,
            )
            if watch is not None:
                session.watchers.append(watch)
            with self._progress(session):
                if place.elsewhere:
                    session.watch(lambda: play_elsewhere(session, place.storage))
                else:
                    session.play()
            if place.temporary:
                self.study_ = brought_home(self.study_)
        return session

    def _progress(self, session: Session) -> AbstractContextManager[object]:
        if not self.verbose:
            return nullcontext()
        progress = Progress(session, self.verbose)
        session.watchers.append(progress)
        return progress

    def _settings(self, space: CandidateSpace, metric: str | None) -> Settings:
        most = math.inf
        if self.max_configurations is not None:
            most = positive_integer("max_configurations", self.max_configurations)
        if isinstance(self.proposals, str):
            known_name("proposals", self.proposals, PROPOSALS)
        elif self.proposals is not None and not isinstance(self.proposals, BaseSampler):
            raise TypeError(
                f"proposals must be one of {', '.join(PROPOSALS)} or an Optuna sampler, got "
                f"{self.proposals!r} ({type(self.proposals).__name__})."
            )
        if self.error_score != "raise" and not isinstance(self.error_score, numbers.Real):
            raise ValueError(f"error_score must be a number or 'raise', got {self.error_score!r}.")
        settings = Settings(
            n_folds=self.n_splits_,
            time_budget=float(self.time_budget),
            n_players=effective_n_jobs(self.n_jobs),
            policy=self.policy,
            timeouts=self.timeouts,
            proposals=self.proposals,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            metric=metric,
            refit=bool(self.refit),
            raise_errors=self.error_score == "raise",
            most_configurations=min(most, space.size),
            memory=checked_memory(self.memory),
            callbacks=tuple(self.callbacks or ()),
            start=self._start(space),
        )
        settings.race()  # says what is wrong with policy and timeouts, before any work
        return settings

    def _start(self, space: CandidateSpace) -> tuple[Floats, ...]:
        """Rows to try first: what the user says, else the estimator as it is."""
        if self.start is not None:
            return tuple(space.encoded(params) for params in self.start)
        own = space.own(self.estimator)
        return () if own is None else (own,)

    def _study(self, storage: Any, data: FoldData, space: CandidateSpace) -> optuna.Study:
        sampler = optuna.samplers.RandomSampler(seed=0)  # configurations are ours
        if self.storage is None and self.resume:
            raise ValueError("resume=True needs a storage and a study_name to resume from.")
        if self.storage is None:
            with quiet_optuna():
                return optuna.create_study(
                    direction="maximize",
                    sampler=sampler,
                    storage=storage,
                    study_name=self.study_name,
                )
        if self.study_name is None:
            raise ValueError(
                f"storage={without_passwords(repr(self.storage))} needs a study_name: by what "
                "name is the search kept?"
            )
        return open_study(storage, self.study_name, self.resume, sampler, data, space)

    def _take_over(self, session: Session, task: _Task) -> None:
        """Fitted attributes, from what the search has recorded."""
        refit_metric = task.refit_metric
        configurations = session.record.configurations
        finished = session.record.results
        if not finished and session.interrupted:
            raise KeyboardInterrupt
        if not finished:
            raise ValueError(session.why_nothing())
        self.multimetric_ = isinstance(finished[0].test_scores, Mapping)
        if callable(self.scoring) and self.multimetric_:
            _compat.check_refit_for_multimetric(self, finished[0].test_scores)
            refit_metric = self.refit
        error_score = math.nan if self.error_score == "raise" else float(self.error_score)
        results = cv_results(
            configurations, self.n_splits_, error_score, train=self.return_train_score
        )
        session.warn_of_failures(error_score)
        warn_of_non_finite(results, finished)
        self.cv_results_ = results
        self.scorer_ = _compat.scorers_by_name(task.data.scorer)
        if self.refit or not self.multimetric_:
            self.best_index_ = _compat.best_index_of(self, refit_metric, results)
            complete = results["status"] == "complete"
            if not callable(self.refit) and not complete[self.best_index_]:
                self.best_index_ = session.best_partial(self.best_index_)
            if not complete[self.best_index_]:
                warn_partial(results, self.best_index_, self.n_splits_)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]

    def _refit(self, data: FoldData, watch: Watch) -> None:
        # Parameters may be estimators themselves: they are cloned too, as scikit-learn does.
        self.best_estimator_ = clone(self.estimator).set_params(
            **clone(self.best_params_, safe=False)
        )
        begin = clock.monotonic_seconds()
        with watch.refit(self.best_estimator_):
            if data.y is not None:
                self.best_estimator_.fit(data.X, data.y, **data.fit_params)
            else:
                self.best_estimator_.fit(data.X, **data.fit_params)
        self.refit_time_ = clock.monotonic_seconds() - begin
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


@dataclass(frozen=True)
class _Task:
    """What a search has to do."""

    budget: Budget
    data: FoldData
    space: CandidateSpace
    settings: Settings
    refit_metric: Any
