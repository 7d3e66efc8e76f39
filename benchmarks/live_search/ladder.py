"""Fits an estimator and shows its predictions at given numbers of rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from live_search.table import Array

Predict = Callable[[Array], Array]
Look = Callable[[int, Predict], None]
"""Called with a number of rounds and a function that predicts; it may raise to end the fit."""


def grow(
    model: str, estimator: Any, X: Array, y: Array, levels: Sequence[int], look: Look
) -> None:
    """Fit, and look at every level. The last one is the number of rounds of the estimator."""
    growers = {"lightgbm": _lightgbm, "xgboost": _xgboost, "hgb": _hgb, "mlp": _mlp}
    growers[model](estimator, X, y, levels, look)


def _lightgbm(estimator: Any, X: Array, y: Array, levels: Sequence[int], look: Look) -> None:
    def after_round(environment: Any) -> None:
        if environment.iteration + 1 in levels:
            look(environment.iteration + 1, environment.model.predict)

    estimator.fit(X, y, callbacks=[after_round])


def _xgboost(estimator: Any, X: Array, y: Array, levels: Sequence[int], look: Look) -> None:
    from xgboost.callback import TrainingCallback

    class AfterRound(TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            if epoch + 1 in levels:
                look(epoch + 1, model.inplace_predict)
            return False

    estimator.set_params(callbacks=[AfterRound()]).fit(X, y)


def _hgb(estimator: Any, X: Array, y: Array, levels: Sequence[int], look: Look) -> None:
    estimator.set_params(warm_start=True)
    for level in levels:
        estimator.set_params(max_iter=level).fit(X, y)
        look(level, _outputs(estimator))


def _mlp(estimator: Any, X: Array, y: Array, levels: Sequence[int], look: Look) -> None:
    scaler, network = estimator.named_steps["scaler"], estimator.named_steps["mlp"]
    X = scaler.fit_transform(X)
    classes = {"classes": np.unique(y)} if hasattr(network, "predict_proba") else {}
    best, idle = np.inf, 0
    for epoch in range(1, levels[-1] + 1):
        network.partial_fit(X, y, **classes)
        # partial_fit does not stop, so this is the rule by which fit stops.
        idle = idle + 1 if network.loss_ > best - network.tol else 0
        best = min(best, network.loss_)
        stops = idle > network.n_iter_no_change
        if stops or epoch in levels:
            look(epoch, lambda rows: _outputs(network)(scaler.transform(rows)))
        if stops:
            break


def _outputs(model: Any) -> Predict:
    return model.predict_proba if hasattr(model, "predict_proba") else model.predict
