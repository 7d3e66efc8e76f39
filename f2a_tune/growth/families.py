"""Finds the adapter of an estimator, without importing a library that it does not come from."""

from __future__ import annotations

from typing import Any

from f2a_tune.growth import neural_network, protocol, warm_start
from f2a_tune.growth.adapter import Growable


def growable(estimator: Any) -> Growable | None:
    """Return how an unfitted estimator grows, or None if it does not.

    None is also the answer if a grown model could differ from the model of a plain fit, for
    example because the estimator stops early by its own rule.
    """
    if protocol.is_growing(estimator):
        return protocol.adapted(estimator)
    library = type(estimator).__module__.partition(".")[0]
    if library == "lightgbm":
        from f2a_tune.growth import lightgbm_model

        return lightgbm_model.adapted(estimator)
    if library == "xgboost":
        from f2a_tune.growth import xgboost_model

        return xgboost_model.adapted(estimator)
    if library == "catboost":
        from f2a_tune.growth import catboost_model

        return catboost_model.adapted(estimator)
    if library == "sklearn":
        return _sklearn(estimator)
    return None


def _sklearn(estimator: Any) -> Growable | None:
    from sklearn.pipeline import Pipeline

    if type(estimator) is Pipeline:
        from f2a_tune.growth import last_step

        return last_step.adapted(estimator, growable)
    return warm_start.adapted(estimator) or neural_network.adapted(estimator)
