"""CatBoost's estimators, whose training can be continued from an earlier model."""

from __future__ import annotations

from typing import Any

import catboost

from f2a_tune.growth.adapter import Growable, Look, StopGrowing

DEFAULT_ROUNDS = 1000
ROUNDS_NAMES = ("iterations", "n_estimators", "num_trees", "num_boost_round")
# A continued training would differ with these: they depend on the number of rounds or on the order
# of the rows, or CatBoost refuses to continue.
UNSUITABLE = (
    "early_stopping_rounds",
    "od_type",
    "od_wait",
    "od_pval",
    "use_best_model",
    "callback",
    "cat_features",
    "text_features",
    "embedding_features",
    "boosting_type",
)


def adapted(estimator: Any) -> Growable | None:
    """Return how the estimator grows, or None if it does not.

    Without a ``learning_rate``, CatBoost derives one from the number of rounds, so that a plain
    fit with fewer rounds would be another model.
    """
    kinds = (catboost.CatBoostClassifier, catboost.CatBoostRegressor)
    parameters = estimator.get_params()
    if (
        type(estimator) not in kinds
        or parameters.get("learning_rate", parameters.get("eta")) is None
    ):
        return None
    if any(parameters.get(name) is not None for name in UNSUITABLE):
        return None
    given = [name for name in ROUNDS_NAMES if name in parameters]
    name = given[0] if given else ROUNDS_NAMES[0]

    def grow(
        X: Any, y: Any, fit_params: dict[str, Any], levels: tuple[int, ...], look: Look
    ) -> Any:
        model, done = None, 0
        for level in levels:
            step = type(estimator)(**{**parameters, name: level - done})
            model = step.fit(X, y, init_model=model, **fit_params)
            done = level
            try:
                look(level, model)
            except StopGrowing:
                break
        return model

    # Each continued training quantizes the data again.
    return Growable(name, int(parameters.get(name, DEFAULT_ROUNDS)), grow, repeats_start=True)
