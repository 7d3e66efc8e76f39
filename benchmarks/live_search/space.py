"""The searched parameters of each model.

A parameter is a list of choices or one of Optuna's distributions. Lists of numbers are in rising
order. LightGBM and XGBoost have FLAML's own spaces, whose upper ends are exclusive there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna.distributions import FloatDistribution, IntDistribution

Parameter = list[Any] | FloatDistribution | IntDistribution
Space = dict[str, Parameter]
# The parameter that is the number of rounds of a fit.
ROUNDS = {
    "lightgbm": "n_estimators",
    "xgboost": "n_estimators",
    "hgb": "max_iter",
    "mlp": "mlp__max_iter",
}


class Draw:
    """A distribution of Optuna with the interface of a scipy distribution."""

    def __init__(self, distribution: FloatDistribution | IntDistribution) -> None:
        self.low, self.high, self.log = distribution.low, distribution.high, distribution.log
        self.whole = isinstance(distribution, IntDistribution)

    def rvs(self, random_state: Any = None) -> float | int:
        rng = np.random.RandomState() if random_state is None else random_state
        # Each whole number gets the same share as in Optuna, also the two ends.
        half = 0.5 if self.whole else 0.0
        ends = np.array([self.low - half, self.high + half], dtype=float)
        value = np.exp(rng.uniform(*np.log(ends))) if self.log else rng.uniform(*ends)
        value = min(max(value, self.low), self.high)
        return round(value) if self.whole else float(value)


def space_of(model: str, n_rows: int) -> Space:
    """Return the space of a model for a number of training rows."""
    if model in ("lightgbm", "xgboost"):
        return _boosting(model, max(5, min(32768, n_rows)) - 1)
    return _hgb() if model == "hgb" else _mlp()


def draws(space: Mapping[str, Parameter]) -> dict[str, list[Any] | Draw]:
    """Return the space in the form of scikit-learn's argument ``param_distributions``."""
    return {name: one if isinstance(one, list) else Draw(one) for name, one in space.items()}


def _log(low: float, high: float) -> FloatDistribution:
    return FloatDistribution(low, high, log=True)


def _log_int(low: int, high: int) -> IntDistribution:
    return IntDistribution(low, high, log=True)


def _boosting(model: str, upper: int) -> Space:
    shared: Space = {
        "n_estimators": _log_int(4, upper),
        "learning_rate": _log(1 / 1024, 1.0),
        "colsample_bytree": FloatDistribution(0.01, 1.0),
        "reg_alpha": _log(1 / 1024, 1024.0),
        "reg_lambda": _log(1 / 1024, 1024.0),
    }
    if model == "lightgbm":
        return shared | {
            "num_leaves": _log_int(4, upper),
            "min_child_samples": _log_int(2, 128),
            "max_bin": [2**k - 1 for k in range(3, 11)],
        }
    return shared | {
        "max_leaves": _log_int(4, upper),
        "min_child_weight": _log(0.001, 128.0),
        "subsample": FloatDistribution(0.1, 1.0),
        "colsample_bylevel": FloatDistribution(0.01, 1.0),
    }


def _hgb() -> Space:
    return {
        "max_iter": _log_int(8, 4096),
        "learning_rate": _log(0.005, 1.0),
        "max_leaf_nodes": _log_int(4, 512),
        "min_samples_leaf": _log_int(2, 256),
        "l2_regularization": _log(1e-6, 100.0),
        "max_features": FloatDistribution(0.2, 1.0),
    }


def _mlp() -> Space:
    return {
        "mlp__hidden_layer_sizes": [(32,), (64,), (128,), (64, 64), (128, 128)],
        "mlp__alpha": _log(1e-6, 1e-1),
        "mlp__learning_rate_init": _log(1e-4, 3e-2),
        "mlp__batch_size": [64, 128, 256],
        "mlp__max_iter": _log_int(4, 256),
    }
