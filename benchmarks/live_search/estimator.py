"""The estimators, with the libraries' default values, one thread and a seed."""

from __future__ import annotations

from typing import Any


def estimator_of(model: str, n_classes: int, seed: int) -> Any:
    """Return an unfitted classifier, or a regressor if there are no classes."""
    makers = {"lightgbm": _lightgbm, "xgboost": _xgboost, "hgb": _hgb, "mlp": _mlp}
    return makers[model](n_classes > 0, seed)


def _lightgbm(classes: bool, seed: int) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if classes else LGBMRegressor
    return kind(max_bin=255, n_jobs=1, random_state=seed, verbosity=-1)


def _xgboost(classes: bool, seed: int) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    kind = XGBClassifier if classes else XGBRegressor
    # The defaults as numbers: a depth of 6 is 64 leaves. Growth is limited by leaves, as in FLAML.
    return kind(
        n_estimators=100,
        max_leaves=64,
        max_depth=0,
        grow_policy="lossguide",
        tree_method="hist",
        learning_rate=0.3,
        min_child_weight=1.0,
        subsample=1.0,
        colsample_bylevel=1.0,
        colsample_bytree=1.0,
        reg_alpha=0.0,
        reg_lambda=1.0,
        n_jobs=1,
        random_state=seed,
        verbosity=0,
    )


def _hgb(classes: bool, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(early_stopping=False, random_state=seed)


def _mlp(classes: bool, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    network = (MLPClassifier if classes else MLPRegressor)(random_state=seed)
    return Pipeline([("scaler", StandardScaler()), ("mlp", network)])
