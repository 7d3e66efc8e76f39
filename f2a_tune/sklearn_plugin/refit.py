"""The refit of the winner: a forecast of its duration, and the fit itself with a cutoff.

A refit runs in a worker like any other fit. If it does not finish in time, the model of one fold
replaces it: long fits have saved their model to a file, and short fits are repeated.
"""

from __future__ import annotations

import math
import os
import uuid
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np

from f2a_tune.clock import Budget, monotonic_seconds
from f2a_tune.cutoff import CutoffPool, Shared
from f2a_tune.cutoff.call import checked_call
from f2a_tune.outcome import Kind, Outcome
from f2a_tune.runtime.limits import CLOSING_SECONDS
from f2a_tune.sklearn_plugin.fold import FoldData, KeepModel, evaluate_fold, fit_on_all_rows

if TYPE_CHECKING:
    from f2a_tune.racing import Race, Recommendation
    from f2a_tune.study.trial_store import TrialStore

# A refit uses more rows than the fit of a fold, and the time of some fits grows with their square.
# The margin covers differences between fits of the same configuration.
REFIT_POWER = 2.0
REFIT_MARGIN = 1.3
# The time of trees and boosting, which are fitted in rounds, grows with the number of rows.
GROWING_REFIT_POWER = 1.1
# A model is sent back after the refit. Pickling boosted trees of many classes takes this share of
# the time to fit them.
TRANSFER_SHARE = 0.15
# Sending a task to a worker and a model back takes a moment, or 0.1 s if the worker is busy.
REFIT_SLACK_SECONDS = 0.2
SHORTEST_REFIT_SECONDS = 0.3
# The refit may need a new worker, which first has to load the data and import modules.
START_MARGIN = 1.5
LARGEST_SLACK_SECONDS = 2.0
LARGEST_SLACK_SHARE = 0.1
# For small folds the square is an overestimate, so at most this is reserved for a refit.
LARGEST_REFIT_FITS = 5.0
LARGEST_SHARE = 1 / 3
# A fit that takes this share of the budget saves its model to a file; shorter ones are repeated.
KEPT_SHARE = 0.01
REPEAT_MARGIN = 1.2
# A refit with less time than this share of a fold's fit is not started.
HOPELESS_SHARE = 0.3
# As a last resort, a repeated fit may take this many times as long as before plus this many
# seconds, even beyond the budget.
REPEAT_PATIENCE = 10.0
REPEAT_PATIENCE_SECONDS = 5.0
# Number of configurations whose models are kept in files.
MOST_KEPT = 4


class RefitWarning(UserWarning):
    """Warns that the refit did not finish in time, and a model of one fold replaces it."""


class RefitForecast:
    """Forecast of the time to refit the best configuration so far."""

    def __init__(
        self,
        race: Race,
        store: TrialStore,
        data: FoldData,
        budget_seconds: float,
        *,
        refit: bool,
        grows: bool = False,
    ) -> None:
        self._race, self._store, self._refit = race, store, refit
        self._budget_seconds = budget_seconds
        growth = max(data.n_rows / max(len(data.splits[0][0]), 1), 1.0)
        power = GROWING_REFIT_POWER if grows else REFIT_POWER
        self.seconds_per_second = REFIT_MARGIN * growth**power if refit else 0.0
        self._best: Recommendation | None = None
        self.start_seconds = 0.0
        """Longest time so far to start a fit in a new worker."""

    @property
    def fits(self) -> float:
        """Seconds to reserve for a refit, per second of a fit."""
        return min(self.seconds_per_second, LARGEST_REFIT_FITS)

    @property
    def kept_from_seconds(self) -> float:
        """Fits of at least this many seconds save their model to a file."""
        return KEPT_SHARE * self._budget_seconds

    def expected_seconds(self, changed: int | None = None) -> float:
        """Return the seconds to reserve after a fold of configuration ``changed`` finished."""
        if not self._refit:
            return 0.0
        if self._may_lead(changed):
            self._best = self._race.recommend(final=True)
        if self._best is None:
            return 0.0
        mean = mean_fit_seconds(self._store, self._best.configuration)
        refit = (1.0 + TRANSFER_SHARE) * self.seconds_per_second * mean
        refit = min(refit, LARGEST_SHARE * self._budget_seconds)
        most = min(LARGEST_SLACK_SECONDS, LARGEST_SLACK_SHARE * self._budget_seconds)
        slack = max(REFIT_SLACK_SECONDS, min(START_MARGIN * self.start_seconds, most))
        return refit + self.repeat_seconds(mean) + slack

    def repeat_seconds(self, fit_seconds: float) -> float:
        """Return the seconds to fit one fold again, or 0 if its model was saved."""
        return 0.0 if fit_seconds >= self.kept_from_seconds else REPEAT_MARGIN * fit_seconds

    def _may_lead(self, changed: int | None) -> bool:
        """Whether the leader may change; a fully validated one is replaced only by another."""
        if changed is None or self._best is None or not self._best.fully_validated:
            return True
        one = self._store.configurations[changed]
        return one.count(Kind.FINISHED) == self._store.n_folds


def mean_fit_seconds(store: TrialStore, place: int) -> float:
    """Return the mean fit seconds of the finished folds of a configuration; 0 if unknown."""
    one = store.configurations[place]
    results = [r for fold in range(store.n_folds) if (r := one.finished(fold))]
    mean = float(np.mean([result.fit_seconds for result in results])) if results else 0.0
    return mean if math.isfinite(mean) else 0.0


class KeptModels:
    """Files with models of folds, in the folder of the pool that fitted them."""

    def __init__(self) -> None:
        self._paths: dict[int, tuple[int, str]] = {}
        self._name = uuid.uuid4().hex  # later searches use the same folder

    def place_for(
        self, pool: CutoffPool, place: int, fold: int, least_seconds: float
    ) -> KeepModel:
        """Return where the model of this fit may be written."""
        return KeepModel(pool.scratch_path(f"model-{self._name}-{place}-{fold}"), least_seconds)

    def add(self, place: int, fold: int, path: str) -> None:
        """Register a finished fit; its model, if saved, replaces that of an earlier fold."""
        if not os.path.exists(path):
            return
        self._drop(place)
        self._paths[place] = fold, path
        while len(self._paths) > MOST_KEPT:
            self._drop(next(iter(self._paths)))

    def load(self, place: int) -> tuple[int, Any] | None:
        """Return the fold and the model kept for a configuration, or None."""
        if place not in self._paths:
            return None
        fold, path = self._paths[place]
        try:
            with open(path, "rb") as file:
                return fold, cloudpickle.load(file)
        except Exception:  # loading may raise anything; the caller has alternatives
            return None

    def has(self, place: int) -> bool:
        """Whether a model of this configuration is kept."""
        return place in self._paths

    def clear(self) -> None:
        """Delete all files."""
        for place in list(self._paths):
            self._drop(place)

    def _drop(self, place: int) -> None:
        if place in self._paths:
            with suppress(OSError):
                os.remove(self._paths.pop(place)[1])


@dataclass(frozen=True)
class Refitter:
    """Refits a configuration in a worker, within the remaining budget."""

    pool: CutoffPool
    shared: Shared
    data: FoldData
    budget: Budget
    kept: KeptModels
    memory: int | None = None
    """Largest number of bytes that the refit may map."""

    def refit(
        self, place: int, params: dict[str, Any], seconds: float, folds: Sequence[int]
    ) -> Any:
        """Return the fitted estimator; if time is short, warn and return that of a fold.

        ``seconds`` is the duration of a fit on one fold, and ``folds`` are the folds to choose
        from.
        """
        left = (self.budget.remaining_seconds - CLOSING_SECONDS) / (1.0 + TRANSFER_SHARE)
        cutoff = max(left - REPEAT_MARGIN * seconds, SHORTEST_REFIT_SECONDS)
        if self.kept.has(place):
            cutoff = left
        reason = f"did not finish in the {max(cutoff, 0.0):.3g} s that were left"
        if cutoff > HOPELESS_SHARE * seconds:
            outcome = self._perform(fit_on_all_rows, (params,), cutoff)
            error = outcome.error
            if outcome.kind is Kind.OUT_OF_MEMORY:
                reason = "ran out of memory"
            if outcome.ok:
                return outcome.value
            if error is not None and error.result_lost:
                return self.data.fit_on_all_rows(params)  # it cannot be sent, so fit it here
            if outcome.kind is Kind.FAILED and error is not None and not error.is_death:
                outcome.unwrap()
        kept = self.kept.load(place)
        fold, model = kept if kept is not None else self._repeat(params, seconds, folds)
        n_train = len(self.data.splits[fold][0])
        warnings.warn(
            f"Refitting the best configuration on all {self.data.n_rows} rows {reason}. "
            f"best_estimator_ was fitted on the {n_train} training rows of fold {fold} instead. "
            "Increase time_budget to give the refit more time.",
            RefitWarning,
            stacklevel=7,
        )
        return model

    def _repeat(self, params: dict[str, Any], seconds: float, folds: Sequence[int]) -> Any:
        """Fit one fold again; a late model is better than none."""
        fold = folds[0]
        keep = self.kept.place_for(self.pool, -1, fold, 0.0)
        left = self.budget.remaining_seconds - CLOSING_SECONDS
        cutoff = max(left, REPEAT_PATIENCE * seconds + REPEAT_PATIENCE_SECONDS)
        outcome = self._perform(evaluate_fold, (params, fold, keep), cutoff)
        outcome.unwrap()
        self.kept.add(-1, fold, keep.path)
        found = self.kept.load(-1)
        if found is None:  # the model cannot be sent between processes
            return fold, self.data.fit_on_all_rows(params)
        return found

    def _perform(self, function: Any, arguments: tuple[Any, ...], cutoff: float) -> Outcome:
        call = checked_call(function, (self.shared, *arguments), {}, cutoff, self.memory)
        return self.pool.perform(replace(call, latest=monotonic_seconds() + cutoff))
