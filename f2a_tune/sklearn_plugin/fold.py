"""One fold fit: data with its splits goes in once, the score of a fold comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone

from f2a_tune import _compat


@dataclass(frozen=True)
class FoldData:
    """All that fold fits share: workers load it once."""

    X: Any
    y: Any
    splits: Sequence[tuple[Any, Any]]
    scorer: Any
    fit_params: dict[str, Any] = field(default_factory=dict)
    score_params: dict[str, Any] = field(default_factory=dict)

    def score(self, estimator: Any, fold: int) -> float:
        """Fit a clone on the fold's training rows, and score it on its test rows."""
        train, test = self.splits[fold]
        found = _compat.fit_and_score(
            clone(estimator),
            self.X,
            self.y,
            scorer=self.scorer,
            train=train,
            test=test,
            parameters=None,
            fit_params=self.fit_params,
            score_params=self.score_params,
        )
        return float(found["test_scores"])


def score_fold(data: FoldData, estimator: Any, fold: int) -> float:
    """`FoldData.score` as a function that can be sent to a worker."""
    return data.score(estimator, fold)
