"""Checks the arguments of a search and prepares its data, space and settings."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from joblib import effective_n_jobs
from optuna.samplers import BaseSampler
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, indexable

from f2a_tune import clock
from f2a_tune.checks import duration, known_name, positive_integer
from f2a_tune.clock import Budget
from f2a_tune.cutoff.call import checked_memory
from f2a_tune.racing.space import Floats
from f2a_tune.sklearn_plugin import sklearn_private
from f2a_tune.sklearn_plugin.fold import FoldData
from f2a_tune.sklearn_plugin.growth_plan import GrowthPlan, planned_growth
from f2a_tune.sklearn_plugin.search_space import SearchSpace, checked_dicts
from f2a_tune.sklearn_plugin.settings import Settings
from f2a_tune.study.opening import stored_fingerprint

if TYPE_CHECKING:
    from f2a_tune.sklearn_plugin.search import F2ASearchCV

PROPOSALS = ("model", "random")


@dataclass(frozen=True)
class SearchTask:
    """A search that is ready to run."""

    budget: Budget
    data: FoldData
    space: SearchSpace
    settings: Settings
    refit_metric: Any

    def fingerprint(self) -> dict[str, str]:
        """Hashes of what a resumed search must have in common with the original one."""
        return {
            "data": str(joblib.hash((self.data.X, self.data.y))),
            "splits": str(joblib.hash(list(self.data.splits))),
            "space": self.space.fingerprint,
            "scoring": _scoring_text(self.data.scorer),
        }


def prepared_search(search: F2ASearchCV, X: Any, y: Any, params: dict[str, Any]) -> SearchTask:
    """Check all arguments before any work starts."""
    budget = Budget(duration("time_budget", search.time_budget))
    if search.started is not None:
        budget.charge(clock.monotonic_seconds() - search.started)
    scorers, refit_metric = sklearn_private.scorers_of(search)
    data = _fold_data(search, X, y, params, scorers)
    growth = _growth_plan(search, data)
    if growth is not None and _continues_whole_fits(search):
        growth = None
    space = SearchSpace(
        search.param_distributions, search.estimator, () if growth is None else growth.dicts
    )
    metric = refit_metric if isinstance(refit_metric, str) else None
    settings = _settings(search, space, metric, len(data.splits), budget.total_seconds)
    settings = replace(settings, growth=growth)
    settings.race()  # checks policy and timeouts
    return SearchTask(budget, data, space, settings, refit_metric)


def _growth_plan(search: F2ASearchCV, data: FoldData) -> GrowthPlan | None:
    """Return how fits grow; None if they are whole."""
    if search.growth is not None:
        known_name("growth", search.growth, ("auto",))
    default = search.policy == "race" and search.timeouts is None
    default &= search.proposals in (None, "model")
    callbacks = any(sklearn_private.has_callbacks(one) for one in (search, search.estimator))
    if search.growth is None or not default or callbacks:
        return None
    dicts = checked_dicts(search.param_distributions)
    return planned_growth(search.estimator, dicts, data.fit_params)


def _continues_whole_fits(search: F2ASearchCV) -> bool:
    """Whether the search resumes one without growth, such as a search of version 0.1.0."""
    if not search.resume or search.storage is None or search.study_name is None:
        return False
    known = stored_fingerprint(search.storage, search.study_name)
    return (
        known.get("space") == SearchSpace(search.param_distributions, search.estimator).fingerprint
    )


def _fold_data(search: Any, X: Any, y: Any, params: dict[str, Any], scorers: Any) -> FoldData:
    X, y = indexable(X, y)
    routed = sklearn_private.routed_for_fit(search, sklearn_private.checked_params(X, params))
    splitter = check_cv(search.cv, y, classifier=is_classifier(search.estimator))
    n_splits = splitter.get_n_splits(X, y, **routed.splitter.split)
    splits = list(splitter.split(X, y, **routed.splitter.split))
    if not splits:
        raise ValueError(
            "No fits were performed. Was the CV iterator empty? Were there no candidates?"
        )
    if len(splits) != n_splits:
        raise ValueError(
            "cv.split and cv.get_n_splits return inconsistent results. "
            f"Expected {n_splits} splits, got {len(splits)}"
        )
    return FoldData(
        clone(search.estimator),
        X,
        y,
        splits,
        scorers,
        routed.estimator.fit,
        routed.scorer.score,
        search.return_train_score,
    )


def _settings(
    search: F2ASearchCV, space: SearchSpace, metric: str | None, n_folds: int, seconds: float
) -> Settings:
    most = math.inf
    if search.max_configurations is not None:
        most = positive_integer("max_configurations", search.max_configurations)
    if isinstance(search.proposals, str):
        known_name("proposals", search.proposals, PROPOSALS)
    elif search.proposals is not None and not isinstance(search.proposals, BaseSampler):
        raise TypeError(
            f"proposals must be one of {', '.join(PROPOSALS)} or an Optuna sampler, got "
            f"{search.proposals!r} ({type(search.proposals).__name__})."
        )
    if search.error_score != "raise" and not isinstance(search.error_score, numbers.Real):
        raise ValueError(f"error_score must be a number or 'raise', got {search.error_score!r}.")
    own = space.own(search.estimator)
    start = _start(search, space, own)
    return Settings(
        n_folds=n_folds,
        time_budget=seconds,
        n_players=effective_n_jobs(search.n_jobs),
        policy=search.policy,
        timeouts=search.timeouts,
        proposals=search.proposals,
        seed=int(check_random_state(search.random_state).randint(2**31 - 1)),
        metric=metric,
        refit=bool(search.refit),
        raise_errors=search.error_score == "raise",
        most_configurations=min(most, space.size),
        memory=checked_memory(search.memory),
        callbacks=tuple(search.callbacks or ()),
        start=start,
        preload=search.worker_preload,
        fallback=_fallback(space, own, start),
    )


def _fallback(space: SearchSpace, own: Floats | None, start: tuple[Floats, ...]) -> Floats | None:
    """Point of the estimator's own values, to try last if it is not among the first ones."""
    if own is None:
        return space.nothing_set
    return None if any(np.array_equal(own, one, equal_nan=True) for one in start) else own


def _start(search: F2ASearchCV, space: SearchSpace, own: Floats | None) -> tuple[Floats, ...]:
    """Points to try first: the user's, else the one nearest to the estimator's own values."""
    if search.start is not None:
        return tuple(space.encoded(params) for params in search.start)
    return (space.nearest_to(search.estimator) if own is None else own,)


def _scoring_text(scorer: Any) -> str:
    """The scoring as text that is the same in every process."""
    if isinstance(scorer, Mapping):
        return ", ".join(f"{name}: {_scoring_text(one)}" for name, one in sorted(scorer.items()))
    inner = sklearn_private.scorers_by_name(scorer)
    if inner is not scorer and isinstance(inner, Mapping):
        return _scoring_text(inner)
    name = getattr(scorer, "__qualname__", None)
    return re.sub(r" at 0x[0-9a-f]+", "", str(name or repr(scorer)))
