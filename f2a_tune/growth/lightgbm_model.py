"""LightGBM's estimators, which call back after every round."""

from __future__ import annotations

import copy
from typing import Any

import lightgbm
from lightgbm.callback import EarlyStopException

from f2a_tune.growth.adapter import Growable, Look, StopGrowing

# Other names of n_estimators and of early stopping, which LightGBM takes as additional parameters.
OTHER_NAMES = (
    "num_iterations",
    "num_iteration",
    "n_iter",
    "num_tree",
    "num_trees",
    "num_round",
    "num_rounds",
    "nrounds",
    "num_boost_round",
    "max_iter",
    "early_stopping_round",
    "early_stopping_rounds",
    "early_stopping",
    "n_iter_no_change",
)


def adapted(estimator: Any) -> Growable | None:
    """Return how the estimator grows, or None if it does not."""
    parameters = estimator.get_params()
    if type(estimator) not in (
        lightgbm.LGBMClassifier,
        lightgbm.LGBMRegressor,
        lightgbm.LGBMRanker,
    ):
        return None
    if any(parameters.get(name) is not None for name in OTHER_NAMES):
        return None

    def grow(
        X: Any, y: Any, fit_params: dict[str, Any], levels: tuple[int, ...], look: Look
    ) -> Any:
        def after_round(environment: Any) -> None:
            done = environment.iteration + 1
            if done not in levels:
                return
            try:
                look(done, _model(estimator, environment.model))
            except StopGrowing:
                # This is how a callback of LightGBM ends the training.
                raise EarlyStopException(environment.iteration, []) from None

        others = fit_params.pop("callbacks", None) or []
        estimator.set_params(n_estimators=levels[-1])
        estimator.fit(X, y, callbacks=[*others, after_round], **fit_params)
        return estimator

    return Growable("n_estimators", int(estimator.n_estimators), grow)


def _model(estimator: Any, booster: Any) -> Any:
    """Return a fitted estimator around a booster that is still in training."""
    model = copy.copy(estimator)
    model._Booster, model.fitted_ = booster, True
    model._n_features = model._n_features_in = booster.num_feature()
    return model
