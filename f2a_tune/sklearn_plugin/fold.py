"""One fold fit: data with its splits goes in once, what became of a fold comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from sklearn.base import clone

from f2a_tune import _compat
from f2a_tune.cutoff.shared import CloudPickled

# Whose objects any worker can load without more ado.
PLAIN_LIBRARIES = ("numpy", "scipy", "pandas", "polars")

Scores = float | dict[str, float]


@dataclass(frozen=True)
class FoldResult:
    """A fold that was fitted and scored; several metrics are a dict."""

    test_scores: Scores
    fit_seconds: float
    score_seconds: float
    train_scores: Scores | None = None


@dataclass(frozen=True)
class FoldData:
    """All that fold fits share: workers load it once."""

    estimator: Any
    X: Any
    y: Any
    splits: Sequence[tuple[Any, Any]]
    scorer: Any
    fit_params: dict[str, Any] = field(default_factory=dict)
    score_params: dict[str, Any] = field(default_factory=dict)
    return_train_score: bool = False

    def evaluate(self, params: dict[str, Any] | None, fold: int) -> FoldResult:
        """Fit a clone with these parameters on the fold's training rows, and score it."""
        train, test = self.splits[fold]
        found = _compat.fit_and_score(
            clone(self.estimator),
            self.X,
            self.y,
            scorer=self.scorer,
            train=train,
            test=test,
            parameters=params,
            fit_params=self.fit_params,
            score_params=self.score_params,
            return_train_score=self.return_train_score,
        )
        return FoldResult(
            test_scores=found["test_scores"],
            fit_seconds=found["fit_time"],
            score_seconds=found["score_time"],
            train_scores=found.get("train_scores"),
        )

    def shareable(self) -> FoldData:
        """Arrays and frames as they are, so that workers map them; the rest cloudpickled."""
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
    return value if plain or value is None else CloudPickled(name, value)


def evaluate_fold(data: FoldData, params: dict[str, Any] | None, fold: int) -> FoldResult:
    """`FoldData.evaluate` as a function that can be sent to a worker."""
    return data.evaluate(params, fold)


def score_fold(data: FoldData, fold: int) -> float:
    """The score of one fold, where there is one metric."""
    scores = data.evaluate(None, fold).test_scores
    assert not isinstance(scores, dict)
    return float(scores)
