"""XGBoost's estimators, which call back after every round."""

from __future__ import annotations

import copy
from typing import Any

import xgboost

from f2a_tune.growth.adapter import Growable, Look, StopGrowing

DEFAULT_ROUNDS = 100


class _Looks(xgboost.callback.TrainingCallback):
    def __init__(self, estimator: Any, levels: tuple[int, ...], look: Look) -> None:
        super().__init__()
        self.estimator, self.levels, self.look = estimator, levels, look

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
        if epoch + 1 not in self.levels:
            return False
        fitted = copy.copy(self.estimator)
        fitted._Booster = model
        try:
            self.look(epoch + 1, fitted)
        except StopGrowing:
            return True
        return False


def adapted(estimator: Any) -> Growable | None:
    """Return how the estimator grows, or None if it does not."""
    kinds = (xgboost.XGBClassifier, xgboost.XGBRegressor, xgboost.XGBRanker)
    if type(estimator) not in kinds or estimator.booster not in (None, "gbtree", "dart"):
        return None
    if estimator.early_stopping_rounds is not None or estimator.callbacks is not None:
        return None

    def grow(
        X: Any, y: Any, fit_params: dict[str, Any], levels: tuple[int, ...], look: Look
    ) -> Any:
        callback = _Looks(estimator, levels, look)
        estimator.set_params(n_estimators=levels[-1], callbacks=[callback])
        try:
            return estimator.fit(X, y, **fit_params)
        finally:
            estimator.set_params(callbacks=None)

    return Growable("n_estimators", int(estimator.n_estimators or DEFAULT_ROUNDS), grow)
