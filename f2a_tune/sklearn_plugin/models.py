"""Models that people tune, with spaces that are ready: names in, an estimator and its space out.

A table with numbers, categories and gaps is prepared by scikit-learn's own parts: medians and
scaling for numbers, the most frequent value and one column per value for categories. Several
models make a conditional space: a list of one dict each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.compose import ColumnTransformer
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
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from f2a_tune.checks import known_name

CLASSIFICATION, REGRESSION = "classification", "regression"
# Categories beyond this many become one for all the rare ones.
MOST_CATEGORIES = 50

Space = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """One kind of model."""

    classifier: Callable[..., Any]
    regressor: Callable[..., Any]
    space: Space
    """Of both, by the names of their parameters."""
    start: Space
    """A configuration that is good on most data."""
    classifier_only: Space | None = None
    regressor_only: Space | None = None
    classifier_start: Space | None = None
    """What is better begun with otherwise when classes are predicted."""

    def estimator(self, task: str, seed: int | None) -> Any:
        """With scikit-learn's defaults, but for the seed."""
        made = self.classifier() if task == CLASSIFICATION else self.regressor()
        if "random_state" in made.get_params():
            made.set_params(random_state=seed)
        return made

    def space_for(self, task: str) -> Space:
        """What to tune."""
        more = self.classifier_only if task == CLASSIFICATION else self.regressor_only
        return {**self.space, **(more or {})}

    def start_for(self, task: str) -> Space:
        """The configuration to begin with."""
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
"""Other names of the same."""


def model_names(names: str) -> tuple[str, ...]:
    """``auto``, or names separated by commas."""
    if names == "auto":
        return tuple(MODELS)
    given = [name.strip() for name in names.split(",")]
    return tuple(
        known_name("estimator", SAME.get(name, name), ("auto", *MODELS)) for name in given
    )


def prepared(estimator: Any, categorical: Sequence[Any], numeric: Sequence[Any]) -> Pipeline:
    """A pipeline that turns a table with such columns into numbers, then the estimator."""
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    categories = make_pipeline(
        SimpleImputer(strategy="most_frequent", keep_empty_features=True),
        OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=MOST_CATEGORIES,
            sparse_output=False,
        ),
    )
    columns = [("numbers", numbers, list(numeric)), ("categories", categories, list(categorical))]
    return Pipeline([("prepare", ColumnTransformer(columns)), ("model", estimator)])


@dataclass(frozen=True)
class Ready:
    """What a search over ready models needs."""

    estimator: Any
    """The first of the models."""
    space: list[dict[str, Any]]
    """Over all of them, for a pipeline's step ``model``."""
    start: list[dict[str, Any]]
    """One configuration of each to begin with, the quickest first."""


def ready_space(names: Sequence[str], task: str, seed: int | None = None) -> Ready:
    """A conditional space over models by their names."""
    spaces, start = [], []
    for name in sorted(names, key=QUICKEST_FIRST.index):
        model = MODELS[name]
        estimator = model.estimator(task, seed)
        tuned = {f"model__{key}": one for key, one in model.space_for(task).items()}
        begun = {f"model__{key}": one for key, one in model.start_for(task).items()}
        spaces.append({"model": [estimator], **tuned})
        start.append({"model": estimator, **begun})
    return Ready(start[0]["model"], spaces, start)
