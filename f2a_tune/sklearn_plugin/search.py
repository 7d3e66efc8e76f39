"""`F2ASearchCV`: an estimator with a space goes in, the best configuration comes out, on time.

`fit` prepares (scorers, splits, space, study), lets the players run, chooses the winner among the
fully validated configurations, and refits it in the seconds that were kept for that. All that the
search learns is in the study; the estimator only reads it.
"""

from __future__ import annotations

import copy
import math
import numbers
import uuid
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from joblib import effective_n_jobs
from optuna.samplers import BaseSampler
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, indexable

from f2a_tune import _compat, clock
from f2a_tune.bandit import Policy
from f2a_tune.checks import known_name, positive_integer, positive_number
from f2a_tune.clock import Budget
from f2a_tune.cutoff.pool import checked_memory
from f2a_tune.outcome import FAILED, Kind
from f2a_tune.racing import (
    ModelProposals,
    Proposals,
    Pull,
    Race,
    RandomProposals,
    Recommendation,
)
from f2a_tune.sklearn_plugin.account import BudgetUse
from f2a_tune.sklearn_plugin.candidates import CandidateSpace
from f2a_tune.sklearn_plugin.fold import FoldData
from f2a_tune.sklearn_plugin.players import Players, Work
from f2a_tune.sklearn_plugin.pools import lent_pool
from f2a_tune.sklearn_plugin.record import SearchRecord
from f2a_tune.sklearn_plugin.results import cv_results, warn_of_non_finite
from f2a_tune.sklearn_plugin.sampled import SampledProposals
from f2a_tune.sklearn_plugin.studies import RunRecord, open_study, quiet_optuna
from f2a_tune.sklearn_plugin.watching import Progress, Watch

# A refit is on more rows than a fold's fit, and some fits grow with their square; a third more for
# what fits of the same configuration differ by.
REFIT_POWER = 2.0
REFIT_MARGIN = 1.3
REFIT_SLACK_SECONDS = 0.05
CLOSING_PATIENCE_SECONDS = 5.0
PROPOSALS = ("model", "random")


class PartialValidationWarning(UserWarning):
    """The winner has not been validated on all folds."""


class SearchInterruptedWarning(UserWarning):
    """The search was ended by the user; what it found until then is there."""


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
        budget = Budget(positive_number("time_budget", self.time_budget))
        scorers, refit_metric = _compat.scorers_of(self)
        X, y = indexable(X, y)
        params = _compat.checked_params(X, params)
        routed = _compat.routed_for_fit(self, params)
        watch = Watch(self, X, y, params.get("sample_weight"))
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
        space = CandidateSpace(self.param_distributions, self.estimator)
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
        settings = self._settings(space)
        self.study_ = self._study(data, space)
        record = SearchRecord(
            self.study_,
            space,
            self.n_splits_,
            refit_metric if isinstance(refit_metric, str) else None,
        )
        search = _Search(self, settings, record, data, budget)
        search.run(watch)
        self._take_over(search, scorers, refit_metric)
        if self.refit:
            self._refit(X, y, routed.estimator.fit, watch)
        self.budget_ = search.use(self.refit_time_ if self.refit else 0.0)
        watch.end()
        return self

    def _settings(self, space: CandidateSpace) -> _Settings:
        most = math.inf
        if self.max_configurations is not None:
            most = positive_integer("max_configurations", self.max_configurations)
        if self.error_score != "raise" and not isinstance(self.error_score, numbers.Real):
            raise ValueError(f"error_score must be a number or 'raise', got {self.error_score!r}.")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        proposals = self._proposals(space, seed)
        n_players = effective_n_jobs(self.n_jobs)
        race = Race(
            self.n_splits_,
            float(self.time_budget),
            policy=self.policy,
            timeouts=self.timeouts,
            n_workers=n_players,
            seed=seed,
        )
        memory = checked_memory(self.memory)
        return _Settings(race, proposals, n_players, min(most, space.size), memory)

    def _proposals(self, space: CandidateSpace, seed: int) -> Proposals:
        if isinstance(self.proposals, BaseSampler):
            return SampledProposals(space, copy.deepcopy(self.proposals), seed)
        if isinstance(self.proposals, str):
            known_name("proposals", self.proposals, PROPOSALS)
        elif self.proposals is not None:
            raise TypeError(
                f"proposals must be one of {', '.join(PROPOSALS)} or an Optuna sampler, got "
                f"{self.proposals!r} ({type(self.proposals).__name__})."
            )
        if self.proposals == "random":
            return RandomProposals(space.space, seed)
        return ModelProposals(space.space, seed)

    def _study(self, data: FoldData, space: CandidateSpace) -> optuna.Study:
        sampler = optuna.samplers.RandomSampler(seed=0)  # configurations are ours
        if self.storage is None:
            if self.resume:
                raise ValueError("resume=True needs a storage and a study_name to resume from.")
            with quiet_optuna():
                return optuna.create_study(
                    direction="maximize", sampler=sampler, study_name=self.study_name
                )
        if self.study_name is None:
            raise ValueError(
                f"storage={self.storage!r} needs a study_name: by what name is the search kept?"
            )
        return open_study(self.storage, self.study_name, self.resume, sampler, data, space)

    def _take_over(self, search: _Search, scorers: Any, refit_metric: Any) -> None:
        """Fitted attributes, from what the search has recorded."""
        configurations = search.record.configurations
        finished = search.record.results
        if not finished:
            raise ValueError(search.why_nothing())
        self.multimetric_ = isinstance(finished[0].test_scores, Mapping)
        if callable(self.scoring) and self.multimetric_:
            _compat.check_refit_for_multimetric(self, finished[0].test_scores)
            refit_metric = self.refit
        error_score = math.nan if self.error_score == "raise" else float(self.error_score)
        results = cv_results(
            configurations, self.n_splits_, error_score, train=self.return_train_score
        )
        search.warn_of_failures(error_score)
        warn_of_non_finite(results, finished)
        self.cv_results_ = results
        self.scorer_ = _compat.scorers_by_name(scorers)
        if self.refit or not self.multimetric_:
            self.best_index_ = _compat.best_index_of(self, refit_metric, results)
            complete = results["status"] == "complete"
            if not callable(self.refit) and not complete[self.best_index_]:
                self.best_index_ = search.best_partial(self.best_index_)
            if not complete[self.best_index_]:
                _warn_partial(results, self.best_index_, self.n_splits_)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]

    def _refit(self, X: Any, y: Any, fit_params: dict[str, Any], watch: Watch) -> None:
        # Parameters may be estimators themselves: they are cloned too, as scikit-learn does.
        self.best_estimator_ = clone(self.estimator).set_params(
            **clone(self.best_params_, safe=False)
        )
        begin = clock.monotonic_seconds()
        with watch.refit(self.best_estimator_):
            if y is not None:
                self.best_estimator_.fit(X, y, **fit_params)
            else:
                self.best_estimator_.fit(X, **fit_params)
        self.refit_time_ = clock.monotonic_seconds() - begin
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


@dataclass(frozen=True)
class _Settings:
    """What the arguments say, checked."""

    race: Race
    proposals: Proposals
    n_players: int
    most_configurations: float
    memory: int | None


class _Search:
    """One run of the players, with what is needed before and after."""

    def __init__(
        self,
        owner: F2ASearchCV,
        settings: _Settings,
        record: SearchRecord,
        data: FoldData,
        budget: Budget,
    ) -> None:
        self.owner, self.settings, self.record = owner, settings, record
        self.data, self.budget = data, budget
        self.race = settings.race
        self.player_seconds = self.played_seconds = 0.0
        self.run_record = RunRecord(record.study, budget)
        self.players: Players | None = None

    def run(self, watch: Watch) -> None:
        """Restore what there is, play, and close the record."""
        self._restore()
        with lent_pool(self.settings.n_players) as pool:
            shared = pool.share(f"data-{uuid.uuid4().hex}", self.data.shareable())
            work = Work(pool, shared, self.settings.memory)
            self.players = Players(
                self.race,
                self.settings.proposals,
                self.record,
                work,
                self.budget,
                _Refit(self),
                self.settings.most_configurations,
                raise_errors=self.owner.error_score == "raise",
            )
            self.players.watchers += [watch, self.run_record, *(self.owner.callbacks or ())]
            if self.owner.verbose:
                self.players.watchers.append(Progress(self))
            begin = self.budget.spent_seconds
            try:
                self.players.play(self.settings.n_players)
            except KeyboardInterrupt:
                self.players.crew.end()
                pool.close()
                self.players.crew.wait_until_idle(CLOSING_PATIENCE_SECONDS)
                warnings.warn(
                    "the search was interrupted: it is fitted with the best found until then.",
                    SearchInterruptedWarning,
                    stacklevel=4,
                )
            finally:
                self.played_seconds = self.budget.spent_seconds - begin
                self.player_seconds = self.played_seconds * self.settings.n_players
                self.record.end()
                self.run_record.write()
                if not pool.closed:
                    pool.forget(shared)

    def use(self, refit_seconds: float) -> BudgetUse:
        """Where the seconds went."""
        assert self.players is not None
        mine = self.budget.spent_seconds - self.run_record.earlier_seconds
        other = mine - self.played_seconds - refit_seconds
        return self.players.account.close(self.player_seconds, other, refit_seconds)

    def recommendation(self) -> Recommendation | None:
        """The best so far."""
        return self.race.recommend(final=True)

    def best_partial(self, default: int) -> int:
        """With nothing validated on all folds: the best with its doubt taken off."""
        found = self.race.recommend()
        return default if found is None else found.configuration

    def why_nothing(self) -> str:
        """An error text for a search without a single score."""
        pulls = self.record.pulls
        failed = [pull for pull in pulls if pull.kind in FAILED]
        waits = [pull.seconds for pull in pulls if pull.kind is Kind.GAVE_UP]
        if failed and not waits:
            return (
                f"\nAll the {len(failed)} fits failed.\nIt is very likely that your model is "
                "misconfigured.\nYou can try to debug the error by setting error_score='raise'."
                f"\n\nBelow are more details about the failures:\n{failed[0].error}"
            )
        if not pulls:
            return (
                f"time_budget={self.owner.time_budget!r} was over before the first fit could end: "
                "give more seconds."
            )
        return (
            f"no fit finished within time_budget={self.owner.time_budget!r}: {len(waits)} were "
            f"given up, the first after {waits[0]:.3g} s, the last after {max(waits):.3g} s, "
            f"{len(failed)} failed. Give more seconds, longer timeouts, or a space with faster "
            "configurations."
        )

    def warn_of_failures(self, error_score: float) -> None:
        """One warning for all fits that failed, as scikit-learn gives it."""
        pulls = self.record.pulls
        failed = [pull for pull in pulls if pull.kind in FAILED]
        if failed:
            warnings.warn(
                f"\n{len(failed)} fits failed out of a total of {len(pulls)}.\n"
                f"The score on these train-test partitions for these parameters will be set to "
                f"{error_score}.\nIf these failures are not expected, you can try to debug them "
                "by setting error_score='raise'.\n\nBelow are more details about the failures:\n"
                f"{failed[0].error}",
                FitFailedWarning,
                stacklevel=4,
            )

    def _restore(self) -> None:
        self.record.restore()
        for place, one in enumerate(self.record.configurations):
            for fold, pull in one.pulls.items():
                number = self.race.n_pulls
                again = Pull(place, fold, pull.cutoff_seconds, number=number)
                self.race.rebuild([(again, pull.outcome(self.record.metric))])


class _Refit:
    """Predicts the refit of the winner from its own fits on folds."""

    def __init__(self, search: _Search) -> None:
        self._search = search
        train, test = search.data.splits[0]
        n_train = max(len(train), 1)
        growth = (n_train + len(test)) / n_train
        self.seconds_per_second = 0.0
        if search.owner.refit:
            self.seconds_per_second = REFIT_MARGIN * growth**REFIT_POWER
        self._best: Recommendation | None = None

    def expected_seconds(self, changed: int | None = None) -> float:
        """For the best so far, when one more fold of configuration ``changed`` has finished."""
        search = self._search
        if not search.owner.refit:
            return 0.0
        if self._may_lead(changed):
            self._best = search.recommendation()
        if self._best is None:
            return 0.0
        one = search.record.configurations[self._best.configuration]
        results = [r for fold in range(search.owner.n_splits_) if (r := one.finished(fold))]
        mean = float(np.mean([result.fit_seconds for result in results])) if results else 0.0
        return self.seconds_per_second * mean + REFIT_SLACK_SECONDS

    def _may_lead(self, changed: int | None) -> bool:
        """A fully validated leader gives way only to another one."""
        if changed is None or self._best is None or not self._best.fully_validated:
            return True
        one = self._search.record.configurations[changed]
        return one.count(Kind.FINISHED) == self._search.record.n_folds


def _warn_partial(results: dict[str, Any], index: int, n_folds: int) -> None:
    done = results["n_folds_done"][index]
    warnings.warn(
        f"no configuration was validated on all {n_folds} folds: best_params_ has {done} of them. "
        "Give a longer time_budget, or fewer folds.",
        PartialValidationWarning,
        stacklevel=4,
    )
