"""The recorded problems: a space of configurations, a table, and the ladder of rounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from f2a_tune.racing import Parameter, Space

Array = NDArray[Any]
# Rows that no fold sees.
TEST_SHARE = 0.25


def _log(name: str, low: float, high: float) -> Parameter:
    return Parameter(name, "float", low=low, high=high, log=True)


def _log_int(name: str, low: int, high: int) -> Parameter:
    return Parameter(name, "int", low=low, high=high, log=True)


# FLAML's own space of LightGBM, without the rounds, which are the level of the curve.
LIGHTGBM = Space(
    (
        _log_int("num_leaves", 4, 4096),
        _log_int("min_child_samples", 2, 129),
        _log("learning_rate", 1 / 1024, 1.0),
        _log_int("max_bin", 7, 1023),
        Parameter("colsample_bytree", "float", low=0.01, high=1.0),
        _log("reg_alpha", 1 / 1024, 1024),
        _log("reg_lambda", 1 / 1024, 1024),
    )
)
XGBOOST = Space(
    (
        _log_int("max_leaves", 4, 1024),
        _log("min_child_weight", 0.001, 128),
        _log("learning_rate", 1 / 1024, 1.0),
        Parameter("subsample", "float", low=0.1, high=1.0),
        Parameter("colsample_bytree", "float", low=0.01, high=1.0),
        _log("reg_alpha", 1 / 1024, 1024),
        _log("reg_lambda", 1 / 1024, 1024),
    )
)
HIST = Space(
    (
        _log_int("max_leaf_nodes", 3, 255),
        _log_int("min_samples_leaf", 2, 128),
        _log("learning_rate", 0.003, 1.0),
        _log("l2_regularization", 1e-4, 100),
        Parameter("max_features", "float", low=0.2, high=1.0),
    )
)
FOREST = Space(
    (
        Parameter("max_features", "float", low=0.05, high=1.0),
        _log_int("min_samples_leaf", 1, 64),
        Parameter("criterion", "categorical", choices=("gini", "entropy")),
        Parameter("bootstrap", "categorical", choices=(True, False)),
        _log("max_samples", 0.1, 1.0),
    )
)
NETWORK = Space(
    (
        _log_int("width", 16, 256),
        Parameter("depth", "int", low=1, high=3),
        _log("learning_rate_init", 1e-4, 1e-1),
        _log("alpha", 1e-6, 1e-1),
        _log_int("batch_size", 32, 512),
        Parameter("activation", "categorical", choices=("relu", "tanh")),
    )
)


def _ladder(low: int, high: int) -> tuple[int, ...]:
    return tuple(low * 2**step for step in range((high // low).bit_length()))


@dataclass(frozen=True)
class CurveProblem:
    """A space on a table."""

    name: str
    family: str
    table: str
    """File below the data folder."""
    space: Space
    levels: tuple[int, ...]
    is_classification: bool = True
    most_rows: int = 10**9
    """Rows to use, so that one fit takes seconds and not minutes."""

    def configuration(self, index: int) -> dict[str, Any]:
        """The random configuration with this index, the same in every recording."""
        return self.space.configuration(self.space.sample(np.random.default_rng(index), 1)[0])

    def space_as_json(self) -> list[dict[str, Any]]:
        """The parameters as the replay benchmark reads them."""
        return [
            {
                "name": one.name,
                "type": one.kind,
                "low": one.low,
                "high": one.high,
                "log": one.log,
                "choices": list(one.choices) or None,
                "active_if": None,
            }
            for one in self.space.parameters
        ]


PROBLEMS = {
    problem.name: problem
    for problem in (
        CurveProblem("lgbm-magic", "lightgbm", "pmlb/magic.tsv.gz", LIGHTGBM, _ladder(4, 4096)),
        CurveProblem("lgbm-adult", "lightgbm", "pmlb/adult.tsv.gz", LIGHTGBM, _ladder(4, 4096)),
        CurveProblem(
            "lgbm-houses",
            "lightgbm",
            "pmlb/537_houses.tsv.gz",
            LIGHTGBM,
            _ladder(4, 4096),
            is_classification=False,
        ),
        CurveProblem("xgb-churn", "xgboost", "pmlb/churn.tsv.gz", XGBOOST, _ladder(4, 4096)),
        CurveProblem(
            "xgb-fried",
            "xgboost",
            "pmlb/564_fried.tsv.gz",
            XGBOOST,
            _ladder(4, 2048),
            is_classification=False,
            most_rows=20_000,
        ),
        CurveProblem("hist-coil", "hist", "pmlb/coil2000.tsv.gz", HIST, _ladder(4, 1024)),
        CurveProblem(
            "hist-krkopt", "hist", "pmlb/krkopt.tsv.gz", HIST, _ladder(4, 512), most_rows=8_000
        ),
        CurveProblem("forest-phoneme", "forest", "phoneme.csv", FOREST, _ladder(4, 512)),
        CurveProblem("mlp-phoneme", "mlp", "phoneme.csv", NETWORK, _ladder(1, 128)),
        CurveProblem(
            "mlp-letter", "mlp", "pmlb/letter.tsv.gz", NETWORK, _ladder(1, 64), most_rows=12_000
        ),
    )
}


@dataclass(frozen=True)
class FoldRows:
    """Training rows and both kinds of test rows of one fold."""

    X: Array
    y: Array
    fold_rows: Array
    fold_target: Array
    test_rows: Array
    test_target: Array
    n_classes: int


def load(problem: CurveProblem, data: Path, fold: int, n_folds: int) -> FoldRows:
    """Read the rows of one fold; splits are the same in every recording."""
    X, y = _rows(problem, data)
    labels = y if problem.is_classification else None
    train, test = train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, random_state=0, stratify=labels
    )
    kind = StratifiedKFold if problem.is_classification else KFold
    splits = list(kind(n_folds, shuffle=True, random_state=0).split(train, y[train]))
    inner, outer = train[splits[fold][0]], train[splits[fold][1]]
    if problem.family == "mlp":
        X = StandardScaler().fit(X[inner]).transform(X)
    n_classes = int(y.max()) + 1 if problem.is_classification else 0
    return FoldRows(X[inner], y[inner], X[outer], y[outer], X[test], y[test], n_classes)


@cache
def _rows(problem: CurveProblem, data: Path) -> tuple[Array, Array]:
    path = data / problem.table
    if path.suffix == ".csv":
        frame = pd.read_csv(path, header=None)
        X, target = frame.iloc[:, :-1], frame.iloc[:, -1]
    else:
        frame = pd.read_csv(path, sep="\t")
        X, target = frame.drop(columns="target"), frame["target"]
    X = X.to_numpy(dtype=np.float64)
    y = pd.factorize(target, sort=True)[0] if problem.is_classification else target.to_numpy()
    if problem.is_classification:  # a class needs a row in every part
        counts = np.bincount(y)
        keep = counts[y] >= 20
        X, y = X[keep], pd.factorize(y[keep], sort=True)[0]
    if len(y) > problem.most_rows:
        chosen, _ = train_test_split(
            np.arange(len(y)),
            train_size=problem.most_rows,
            random_state=0,
            stratify=y if problem.is_classification else None,
        )
        X, y = X[chosen], y[chosen]
    return X, y
