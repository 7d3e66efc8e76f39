"""Fits one configuration on one fold and scores it at every level of the ladder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, root_mean_squared_error

from recording.problems import Array, CurveProblem, FoldRows

# A fit is not continued after this many processor seconds: the next level takes as long again.
LONGEST_SECONDS = 8.0

Predict = Callable[[Array], Array]


@dataclass
class Curve:
    """Cumulative seconds and scores at the levels that were reached; larger scores are better."""

    seconds: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)


class _Watch:
    """Counts processor seconds, except while it is paused."""

    def __init__(self) -> None:
        self._begin, self._paused = time.process_time(), 0.0

    @property
    def seconds(self) -> float:
        return time.process_time() - self._begin - self._paused

    def without(self, call: Callable[[], float]) -> float:
        begin = time.process_time()
        try:
            return call()
        finally:
            self._paused += time.process_time() - begin


class LongEnoughError(Exception):
    """The fit has taken long enough."""


def record_curve(problem: CurveProblem, configuration: dict[str, Any], rows: FoldRows) -> Curve:
    """Fit, and score at every level."""
    curve, watch = Curve(), _Watch()

    def look(predict: Predict) -> None:
        score = _score(predict(rows.fold_rows), rows.fold_target, rows)
        curve.seconds.append(watch.seconds)
        curve.scores.append(score)
        curve.test.append(
            watch.without(lambda: _score(predict(rows.test_rows), rows.test_target, rows))
        )
        if watch.seconds > LONGEST_SECONDS:
            raise LongEnoughError

    with suppress(LongEnoughError):
        FAMILIES[problem.family](problem, configuration, rows, look)
    return curve


def _score(predicted: Array, truth: Array, rows: FoldRows) -> float:
    if not np.isfinite(predicted).all():
        return float("nan")
    if not rows.n_classes:
        return -float(root_mean_squared_error(truth, predicted))
    clipped = np.clip(predicted, 1e-7, 1.0)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return -float(log_loss(truth, clipped, labels=np.arange(rows.n_classes)))


def _outputs(model: Any, rows: FoldRows) -> Predict:
    return model.predict_proba if rows.n_classes else model.predict  # type: ignore[no-any-return]


def _lightgbm(
    problem: CurveProblem, configuration: dict[str, Any], rows: FoldRows, look: Any
) -> None:
    import lightgbm

    parameters = configuration | {
        "objective": _objective(rows, ("binary", "multiclass", "regression")),
        "num_threads": 1,
        "verbosity": -1,
        "seed": 0,
    }
    if rows.n_classes > 2:
        parameters["num_class"] = rows.n_classes
    levels = set(problem.levels)

    def after_round(environment: Any) -> None:
        if environment.iteration + 1 in levels:
            model = environment.model

            def predict(X: Array) -> Array:
                found = np.asarray(model.predict(X))
                two = rows.n_classes == 2
                return np.column_stack([1 - found, found]) if two else found

            look(predict)

    data = lightgbm.Dataset(rows.X, rows.y, params={"max_bin": configuration["max_bin"]})
    lightgbm.train(parameters, data, problem.levels[-1], callbacks=[after_round])


def _xgboost(
    problem: CurveProblem, configuration: dict[str, Any], rows: FoldRows, look: Any
) -> None:
    import xgboost

    levels = set(problem.levels)

    class Looks(xgboost.callback.TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            if epoch + 1 in levels:

                def predict(X: Array) -> Array:
                    found = model.inplace_predict(X)
                    two = rows.n_classes == 2
                    return np.column_stack([1 - found, found]) if two else np.asarray(found)

                look(predict)
            return False

    objective = ("binary:logistic", "multi:softprob", "reg:squarederror")
    parameters = configuration | {
        "objective": _objective(rows, objective),
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_depth": 0,
        "nthread": 1,
        "seed": 0,
        "verbosity": 0,
    }
    if rows.n_classes > 2:
        parameters["num_class"] = rows.n_classes
    data = xgboost.QuantileDMatrix(rows.X, rows.y, nthread=1)
    xgboost.train(parameters, data, problem.levels[-1], callbacks=[Looks()])


def _objective(rows: FoldRows, names: tuple[str, str, str]) -> str:
    return names[2] if not rows.n_classes else names[0] if rows.n_classes == 2 else names[1]


def _hist(problem: CurveProblem, configuration: dict[str, Any], rows: FoldRows, look: Any) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if rows.n_classes else HistGradientBoostingRegressor
    model = kind(warm_start=True, early_stopping=False, random_state=0, **configuration)
    for level in problem.levels:
        model.set_params(max_iter=level).fit(rows.X, rows.y)
        look(_outputs(model, rows))


def _forest(
    problem: CurveProblem, configuration: dict[str, Any], rows: FoldRows, look: Any
) -> None:
    from sklearn.ensemble import RandomForestClassifier

    settings = dict(configuration)
    if not settings["bootstrap"]:
        settings["max_samples"] = None
    model = RandomForestClassifier(warm_start=True, random_state=0, n_jobs=1, **settings)
    for level in problem.levels:
        model.set_params(n_estimators=level).fit(rows.X, rows.y)
        look(_outputs(model, rows))


def _network(
    problem: CurveProblem, configuration: dict[str, Any], rows: FoldRows, look: Any
) -> None:
    from sklearn.neural_network import MLPClassifier

    settings = dict(configuration)
    width, depth = settings.pop("width"), settings.pop("depth")
    settings["batch_size"] = min(settings["batch_size"], len(rows.y))
    model = MLPClassifier((width,) * depth, random_state=0, **settings)
    levels, classes = set(problem.levels), np.arange(rows.n_classes)
    for epoch in _epochs(problem):
        model.partial_fit(rows.X, rows.y, classes=classes)
        if epoch in levels:
            look(_outputs(model, rows))


def _epochs(problem: CurveProblem) -> Iterator[int]:
    return iter(range(1, problem.levels[-1] + 1))


FAMILIES: dict[str, Callable[[CurveProblem, dict[str, Any], FoldRows, Any], None]] = {
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
    "hist": _hist,
    "forest": _forest,
    "mlp": _network,
}
