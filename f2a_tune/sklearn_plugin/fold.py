"""The functions that run in a worker: fit and score one fold, and refit on all rows.

Importing this module delays the first fit of every worker, so its imports should stay few.
"""

from __future__ import annotations

import copy
import errno
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, cast

import cloudpickle
import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from f2a_tune.cutoff.shared import CloudPickled
from f2a_tune.outcome import FoldResult
from f2a_tune.sklearn_plugin import sklearn_private
from f2a_tune.sklearn_plugin.inner_threads import thread_params

# Only modules that every fit needs: each one delays the first fit of a process.
PRELOAD = ("sklearn", "f2a_tune.sklearn_plugin.fold")
# A table with text columns is copied to every worker if its numbers take less than this. Larger
# tables are memory-mapped.
MOST_COPIED_BYTES = 100_000_000
# Larger models are not kept, because a refit is faster than writing and reading them.
MOST_MODEL_BYTES = 200_000_000
# Libraries whose objects every worker can load without cloudpickle.
PLAIN_LIBRARIES = ("numpy", "scipy", "pandas", "polars")


@dataclass(frozen=True)
class FoldData:
    """The data and settings that all fits share; every worker loads them once."""

    estimator: Any
    X: Any
    y: Any
    splits: Sequence[tuple[Any, Any]]
    scorer: Any
    fit_params: dict[str, Any] = field(default_factory=dict)
    score_params: dict[str, Any] = field(default_factory=dict)
    return_train_score: bool = False

    def evaluate(
        self, params: dict[str, Any] | None, fold: int, keep: KeepModel | None = None
    ) -> FoldResult:
        """Fit a clone with ``params`` on the training rows of a fold, and score it."""
        train, test = self.splits[fold]
        estimator, params = clone(self.estimator), dict(params or {})
        found = sklearn_private.fit_and_score(
            estimator,
            self.X,
            self.y,
            scorer=self.scorer,
            train=train,
            test=test,
            parameters=params | thread_params(estimator, params),
            fit_params=self.fit_params,
            score_params=self.score_params,
            return_train_score=self.return_train_score,
            return_estimator=keep is not None,
        )
        if keep is not None and found["fit_time"] >= keep.least_seconds:
            keep.write(found["estimator"])
        return FoldResult(
            test_scores=found["test_scores"],
            fit_seconds=found["fit_time"],
            score_seconds=found["score_time"],
            train_scores=found.get("train_scores"),
        )

    @property
    def rows(self) -> tuple[Any, ...]:
        """The positional arguments of ``fit``."""
        return (self.X,) if self.y is None else (self.X, self.y)

    @property
    def n_rows(self) -> int:
        """Number of rows of ``X``."""
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)

    def fit_on_all_rows(self, params: dict[str, Any]) -> Any:
        """Fit a clone with ``params`` on all rows, using all cores, and return it."""
        # Parameters may be estimators. They are cloned too, as in scikit-learn.
        estimator = clone(self.estimator).set_params(**clone(params, safe=False))
        # Workers map the data read-only, but some estimators modify their input.
        rows = [_own_copy(value) for value in self.rows]
        with _all_cores():
            estimator.fit(*rows, **self.fit_params)
        return estimator

    def shareable(self) -> FoldData:
        """Return a copy for workers; arrays and frames can be mapped, the rest is cloudpickled."""
        return replace(
            self,
            estimator=CloudPickled("estimator", self.estimator),
            X=_plain_or_packed("X", self.X),
            y=_plain_or_packed("y", self.y),
            scorer=CloudPickled("scoring", self.scorer),
            fit_params=cast("Any", CloudPickled("fit parameters", self.fit_params)),
            score_params=cast("Any", CloudPickled("fit parameters", self.score_params)),
        )


def _plain_or_packed(name: str, value: Any) -> Any:
    library = type(value).__module__.partition(".")[0]
    plain = library in PLAIN_LIBRARIES and getattr(value, "dtype", None) != np.dtype(object)
    # joblib, which maps arrays, is ten times slower than pickle for many small objects.
    plain = plain and not (library == "pandas" and _is_mostly_objects(value))
    return value if plain or value is None else CloudPickled(name, value)


def _is_mostly_objects(table: Any) -> bool:
    """Whether a pandas table has columns of Python objects and few bytes of numbers."""
    kinds = list(getattr(table, "dtypes", [])) if getattr(table, "ndim", 0) == 2 else []
    n_numbers = sum(getattr(kind, "kind", "O") in "biuf" for kind in kinds)
    return n_numbers < len(kinds) and 8 * n_numbers * len(table) < MOST_COPIED_BYTES


def _all_cores() -> AbstractContextManager[object]:
    """Use all cores: a worker is limited to its share of them, but a refit runs alone."""
    cores = os.cpu_count() or 1
    share = os.environ.get("OMP_NUM_THREADS", "")
    alone = not share.isdecimal() or int(share) >= cores
    return nullcontext() if alone else threadpool_limits(limits=cores)


def _own_copy(value: Any) -> Any:
    return np.array(value) if isinstance(value, np.ndarray) else copy.deepcopy(value)


@dataclass(frozen=True)
class KeepModel:
    """Where a worker writes the model of a fold, if the fit took at least ``least_seconds``."""

    path: str
    least_seconds: float

    def write(self, estimator: Any) -> None:
        """Write the model atomically, because this process may be killed meanwhile."""
        part = f"{self.path}.part"
        try:
            with open(part, "wb") as file:
                cloudpickle.dump(estimator, _LimitedFile(file))
            os.replace(part, self.path)
        except Exception:  # not picklable or too large; the score is still valid
            with suppress(OSError):
                os.remove(part)


class _LimitedFile:
    """A file that cannot grow beyond `MOST_MODEL_BYTES`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._left = file, MOST_MODEL_BYTES

    def write(self, content: Any) -> int:
        """Write ``content``, or raise `OSError` if the file would become too large."""
        self._left -= memoryview(content).nbytes
        if self._left < 0:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return self._file.write(content)


def evaluate_fold(
    data: FoldData, params: dict[str, Any] | None, fold: int, keep: KeepModel | None = None
) -> FoldResult:
    """`FoldData.evaluate` as a function that can be sent to a worker."""
    return data.evaluate(params, fold, keep)


def fit_on_all_rows(data: FoldData, params: dict[str, Any]) -> Any:
    """`FoldData.fit_on_all_rows` as a function that can be sent to a worker."""
    return data.fit_on_all_rows(params)


def score_fold(data: FoldData, fold: int) -> float:
    """Return the score of one fold, for a single metric."""
    scores = data.evaluate(None, fold).test_scores
    assert not isinstance(scores, dict)
    return float(scores)
