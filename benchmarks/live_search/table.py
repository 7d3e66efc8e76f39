"""A table, split into rows to search on and rows to test on, and the folds of the former.

Every class has at least one row in the rows to search on and in the training rows of every fold,
because some models cannot be fitted or scored otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import log_loss, make_scorer, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import LabelEncoder

Array = NDArray[Any]
TEST_SHARE = 0.33
N_FOLDS = 5
# A target with more distinct values than this is a number to predict, not a class.
MOST_CLASSES = 100
SMALLEST_PROBABILITY = 1e-7


@dataclass(frozen=True)
class Fold:
    """Indices of rows."""

    train: Array
    validation: Array


@dataclass(frozen=True)
class Table:
    """Rows to search on and rows to test on."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    n_classes: int
    """0 for regression."""
    scale: float
    """Factor from a loss on ``y`` to one in units of the table. Regression targets are scaled."""
    folds: tuple[Fold, ...]

    @classmethod
    def read(cls, path: Path, seed: int) -> Table:
        """Read a table and split it by the seed."""
        frame = pd.read_csv(path, sep="\t")
        target = frame.pop("target")
        X = np.column_stack([_numbers(frame[name]) for name in frame.columns])
        if _is_regression(target):
            return cls._regression(X, target.to_numpy(dtype=float), seed)
        return cls._classification(X, LabelEncoder().fit_transform(target), seed)

    @classmethod
    def _regression(cls, X: Array, y: Array, seed: int) -> Table:
        train, test = train_test_split(np.arange(len(y)), test_size=TEST_SHARE, random_state=seed)
        mean, scale = float(y[train].mean()), float(y[train].std()) or 1.0
        splitter = KFold(N_FOLDS, shuffle=True, random_state=seed)
        folds = tuple(Fold(*parts) for parts in splitter.split(train))
        y = (y - mean) / scale
        return cls(X[train], y[train], X[test], y[test], 0, scale, folds)

    @classmethod
    def _classification(cls, X: Array, y: Array, seed: int) -> Table:
        counts = np.bincount(y)
        single, several = np.flatnonzero(counts[y] == 1), np.flatnonzero(counts[y] > 1)
        train, test = train_test_split(
            several, test_size=TEST_SHARE, random_state=seed, stratify=y[several]
        )
        train = np.concatenate([train, single])
        folds = _stratified(y[train], seed)
        return cls(X[train], y[train], X[test], y[test], len(counts), 1.0, folds)

    @property
    def splits(self) -> list[tuple[Array, Array]]:
        """The folds in the form of scikit-learn's argument ``cv``."""
        return [(fold.train, fold.validation) for fold in self.folds]

    @property
    def scoring(self) -> str | Callable[..., float]:
        """The metric in the form of scikit-learn's argument ``scoring``."""
        if not self.n_classes:
            return "neg_root_mean_squared_error"
        if np.bincount(self.y, minlength=self.n_classes).min() >= N_FOLDS:
            return "neg_log_loss"
        return make_scorer(
            log_loss,
            greater_is_better=False,
            response_method="predict_proba",
            labels=np.arange(self.n_classes),
        )

    def score(self, predicted: Array, truth: Array) -> float:
        """Return minus the loss of probabilities or of predicted numbers."""
        if not self.n_classes:
            return -float(root_mean_squared_error(truth, predicted))
        if predicted.ndim == 1:  # the probability of the second of two classes
            predicted = np.column_stack([1 - predicted, predicted])
        clipped = np.clip(predicted.astype(float), SMALLEST_PROBABILITY, 1.0)
        clipped /= clipped.sum(axis=1, keepdims=True)
        return -float(log_loss(truth, clipped, labels=np.arange(self.n_classes)))

    def test_loss(self, model: Any) -> float:
        """Return the loss of a fitted model on the test rows, in units of the table."""
        if not self.n_classes:
            return -self.score(model.predict(self.X_test), self.y_test) * self.scale
        predicted = np.zeros((len(self.y_test), self.n_classes))
        predicted[:, np.asarray(model.classes_)] = model.predict_proba(self.X_test)
        return -self.score(predicted, self.y_test)


def _numbers(column: pd.Series) -> Array:
    if not pd.api.types.is_numeric_dtype(column):
        return pd.factorize(column)[0].astype(float)
    return column.to_numpy(dtype=float)


def _is_regression(target: pd.Series) -> bool:
    if not pd.api.types.is_numeric_dtype(target):
        return False
    return bool(target.nunique() > MOST_CLASSES or (target % 1 != 0).any())


def _stratified(y: Array, seed: int) -> tuple[Fold, ...]:
    """Return folds in which classes with fewer rows than folds are only trained on."""
    rare = np.bincount(y)[y] < N_FOLDS
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    return tuple(
        Fold(np.union1d(train, np.flatnonzero(rare)), validation[~rare[validation]])
        for train, validation in splitter.split(y, y)
    )
