"""What every method gets, and what it returns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from live_search.estimator import estimator_of
from live_search.job import Job
from live_search.space import ROUNDS, Space, space_of
from live_search.table import N_FOLDS, Table


@dataclass(frozen=True)
class Found:
    """The result of a search."""

    model: Any
    """The winner, fitted on all rows to search on."""
    cv_score: float | None = None
    """Mean of minus the loss over the folds."""
    n_configurations: int | None = None
    n_folds: int | None = None
    """Number of folds on which the winner was validated."""
    given_up_share: float | None = None
    """Share of the worker-seconds in fits that were given up."""


class NothingFoundError(Exception):
    """No configuration was validated in time."""


@dataclass(frozen=True)
class FoldScore:
    """Minus the loss on the validation rows, and the seconds to fit and to score."""

    score: float
    seconds: float


@dataclass(frozen=True)
class Problem:
    """One search, with its data read and its libraries imported."""

    job: Job
    table: Table
    estimator: Any
    space: Space
    workers: int

    @classmethod
    def read(cls, job: Job, path: Path, workers: int) -> Problem:
        """Read the table of a job."""
        table = Table.read(path, job.seed)
        estimator = estimator_of(job.model, table.n_classes, job.seed)
        return cls(job, table, estimator, space_of(job.model, len(table.y)), workers)

    @property
    def rounds(self) -> str:
        """The parameter that is the number of rounds of a fit."""
        return ROUNDS[self.job.model]

    def with_params(self, params: Mapping[str, Any]) -> Any:
        """Return an unfitted estimator with these parameters."""
        return clone(self.estimator).set_params(**params)

    def evaluate(self, params: Mapping[str, Any], place: int) -> FoldScore:
        """Fit on one fold and score."""
        begin, fold = time.monotonic(), self.table.folds[place]
        X, y = self.table.X, self.table.y
        model = self.with_params(params).fit(X[fold.train], y[fold.train])
        predict = model.predict_proba if self.table.n_classes else model.predict
        score = self.table.score(predict(X[fold.validation]), y[fold.validation])
        return FoldScore(score, time.monotonic() - begin)

    def refit(self, params: Mapping[str, Any]) -> Any:
        """Fit on all rows to search on."""
        return self.with_params(params).fit(self.table.X, self.table.y)


def refit_seconds(folds: list[FoldScore]) -> float:
    """Return the expected seconds of a refit, which has more rows than the fit of a fold."""
    return N_FOLDS / (N_FOLDS - 1) * float(np.mean([fold.seconds for fold in folds]))
