"""The built-in models of the command line, each with a search space.

Several models form a conditional space: a list with one dict per model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC, SVR

from f2a_tune.checks import known_name

CLASSIFICATION, REGRESSION = "classification", "regression"

Space = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """A classifier and a regressor of one kind, with their search space."""

    classifier: Callable[..., Any]
    regressor: Callable[..., Any]
    space: Space
    """Distributions of the parameters that both have, by name."""
    start: Space
    """A configuration that performs well on most data."""
    classifier_only: Space | None = None
    regressor_only: Space | None = None
    classifier_start: Space | None = None
    """Values that replace those of ``start`` for classification."""

    def estimator(self, task: str, seed: int | None) -> Any:
        """Create the estimator with default parameters and this seed."""
        made = self.classifier() if task == CLASSIFICATION else self.regressor()
        if "random_state" in made.get_params():
            made.set_params(random_state=seed)
        return made

    def space_for(self, task: str) -> Space:
        """Return the search space for a task."""
        more = self.classifier_only if task == CLASSIFICATION else self.regressor_only
        return {**self.space, **(more or {})}

    def start_for(self, task: str) -> Space:
        """Return the first configuration to try for a task."""
        start = self.start
        if task == CLASSIFICATION:
            start = {**start, **(self.classifier_start or {})}
        return {name: start[name] for name in self.space_for(task)}


def _log(low: float, high: float) -> FloatDistribution:
    return FloatDistribution(low, high, log=True)


_FOREST: Space = {
    "n_estimators": IntDistribution(20, 1000, log=True),
    "max_features": FloatDistribution(0.05, 1.0),
    "min_samples_leaf": IntDistribution(1, 50, log=True),
    "max_depth": CategoricalDistribution([None, 4, 8, 16]),
}

_FOREST_START: Space = {
    "n_estimators": 200,
    "max_features": 0.3,
    "min_samples_leaf": 1,
    "max_depth": None,
}

_CLASSIFYING_FOREST_START: Space = {"max_features": 0.15}

MODELS: dict[str, Model] = {
    "linear": Model(
        lambda: LogisticRegression(max_iter=2000),
        Ridge,
        {},
        {"C": 1.0, "class_weight": None, "alpha": 1.0},
        {"C": _log(1e-4, 1e4), "class_weight": CategoricalDistribution([None, "balanced"])},
        {"alpha": _log(1e-4, 1e5)},
    ),
    "svm": Model(
        SVC,
        SVR,
        {
            "C": _log(1e-3, 1e4),
            "gamma": _log(1e-5, 1e1),
            "kernel": CategoricalDistribution(["rbf", "poly", "sigmoid"]),
        },
        {"C": 1.0, "gamma": 0.02, "kernel": "rbf", "epsilon": 0.1},
        None,
        {"epsilon": _log(1e-3, 1.0)},
    ),
    "knn": Model(
        KNeighborsClassifier,
        KNeighborsRegressor,
        {
            "n_neighbors": IntDistribution(1, 200, log=True),
            "weights": CategoricalDistribution(["uniform", "distance"]),
            "p": CategoricalDistribution([1, 2]),
        },
        {"n_neighbors": 5, "weights": "uniform", "p": 2},
    ),
    "random_forest": Model(
        RandomForestClassifier,
        RandomForestRegressor,
        _FOREST,
        _FOREST_START,
        classifier_start=_CLASSIFYING_FOREST_START,
    ),
    "extra_trees": Model(
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        _FOREST,
        _FOREST_START,
        classifier_start=_CLASSIFYING_FOREST_START,
    ),
    "gradient_boosting": Model(
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        {
            "n_estimators": IntDistribution(20, 1000, log=True),
            "learning_rate": _log(1e-3, 1.0),
            "max_depth": IntDistribution(1, 8),
            "subsample": FloatDistribution(0.3, 1.0),
            "max_features": FloatDistribution(0.05, 1.0),
        },
        {
            "n_estimators": 200,
            "learning_rate": 0.05,
            "max_depth": 3,
            "subsample": 0.6,
            "max_features": 0.3,
        },
    ),
    "hist_gradient_boosting": Model(
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        {
            "max_iter": IntDistribution(20, 1000, log=True),
            "learning_rate": _log(1e-3, 1.0),
            "max_leaf_nodes": IntDistribution(4, 256, log=True),
            "min_samples_leaf": IntDistribution(2, 100, log=True),
            "l2_regularization": _log(1e-8, 1e2),
        },
        {
            "max_iter": 100,
            "learning_rate": 0.1,
            "max_leaf_nodes": 31,
            "min_samples_leaf": 20,
            "l2_regularization": 1e-8,
        },
    ),
    "mlp": Model(
        lambda: MLPClassifier(max_iter=500),
        lambda: MLPRegressor(max_iter=500),
        {
            "hidden_layer_sizes": [(16,), (64,), (256,), (64, 64), (256, 64)],
            "alpha": _log(1e-7, 1e1),
            "learning_rate_init": _log(1e-4, 1e-1),
            "early_stopping": CategoricalDistribution([False, True]),
        },
        {
            "hidden_layer_sizes": (64,),
            "alpha": 1e-4,
            "learning_rate_init": 1e-3,
            "early_stopping": False,
        },
    ),
}
QUICKEST_FIRST = (
    "linear",
    "knn",
    "svm",
    "hist_gradient_boosting",
    "extra_trees",
    "random_forest",
    "gradient_boosting",
    "mlp",
)
SAME = {"logistic": "linear", "ridge": "linear", "svc": "svm", "svr": "svm"}
"""Aliases of model names."""


def model_names(names: str) -> tuple[str, ...]:
    """Parse ``auto`` or a comma-separated list of model names."""
    if names == "auto":
        return tuple(MODELS)
    given = [name.strip() for name in names.split(",")]
    return tuple(
        known_name("estimator", SAME.get(name, name), ("auto", *MODELS)) for name in given
    )


@dataclass(frozen=True)
class Ready:
    """Estimator, search space and first configurations of a search over built-in models."""

    estimator: Any
    """The fastest of the models."""
    space: list[dict[str, Any]]
    """One dict per model, for the step ``model`` of a pipeline."""
    start: list[dict[str, Any]]
    """The first configuration of each model, the fastest model first."""


def ready_space(names: Sequence[str], task: str, seed: int | None = None) -> Ready:
    """Return the conditional search space over the named models."""
    spaces, start = [], []
    for name in sorted(names, key=QUICKEST_FIRST.index):
        model = MODELS[name]
        estimator = model.estimator(task, seed)
        tuned = {f"model__{key}": one for key, one in model.space_for(task).items()}
        begun = {f"model__{key}": one for key, one in model.start_for(task).items()}
        spaces.append({"model": [estimator], **tuned})
        start.append({"model": estimator, **begun})
    return Ready(start[0]["model"], spaces, start)
