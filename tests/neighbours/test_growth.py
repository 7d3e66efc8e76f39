"""Boosting libraries: a grown model is the model of a plain fit with that many rounds."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from f2a_tune.growth import StopGrowing, growable
from tests.growth.test_growth import ROUNDS, check_equality, classes, numbers, outputs

SUBSETS = {"subsample": 0.7, "colsample_bytree": 0.6, "random_state": 1, "n_jobs": 1}


def make(library, kind, **options):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    if library == "catboost":
        options = {"learning_rate": 0.1, "verbose": 0, "thread_count": 1,
                   "allow_writing_files": False} | options  # fmt: skip
    if library == "lightgbm":
        options = SUBSETS | {"subsample_freq": 1, "verbosity": -1} | options
    if library == "xgboost":
        options = SUBSETS | options
    prefix = {"lightgbm": "LGBM", "xgboost": "XGB", "catboost": "CatBoost"}[library]
    return getattr(module, prefix + kind)(**options)


LIBRARIES = ["lightgbm", "xgboost", "catboost"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("data", [classes(2), classes(3), numbers()], ids=["two", "three", "real"])
def test_equality(library, data):
    kind = "Regressor" if data[1].dtype.kind == "f" else "Classifier"
    growth = check_equality(make(library, kind), *data)
    assert growth.rounds == {"catboost": 1000}.get(library, 100)
    check_equality(make_pipeline(StandardScaler(), make(library, kind)), *data)


@pytest.mark.parametrize(
    ("library", "options"),
    [
        ("lightgbm", {"boosting_type": "dart"}),
        ("lightgbm", {"boosting_type": "rf", "subsample": 0.5}),
        ("lightgbm", {"extra_trees": True, "max_bin": 31}),
        ("lightgbm", {"class_weight": "balanced"}),
        ("xgboost", {"booster": "dart", "rate_drop": 0.3}),
        ("xgboost", {"tree_method": "exact"}),
        ("xgboost", {"grow_policy": "lossguide", "max_leaves": 8}),
        ("catboost", {"bootstrap_type": "Bernoulli", "subsample": 0.6}),
        ("catboost", {"depth": 3, "l2_leaf_reg": 9.0, "random_seed": 3}),
        ("catboost", {"n_estimators": 70}),
        ("catboost", {"grow_policy": "Lossguide"}),
    ],
)
def test_equality_with_options(library, options):
    check_equality(make(library, "Classifier", **options), *classes(2))


@pytest.mark.parametrize("library", LIBRARIES)
def test_weights_and_sparse_rows(library):
    from scipy import sparse

    X, y = classes(2)
    X = sparse.csr_matrix(np.where(np.abs(X) < 0.5, 0.0, X))
    weight = np.linspace(0.1, 2.0, len(y))
    check_equality(make(library, "Classifier"), X, y, {"sample_weight": weight})


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_categorical_features(library):
    import pandas as pd

    X, y = classes(2)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)])
    frame["f0"] = pd.Categorical(np.round(frame["f0"]).astype(int).astype(str))
    options = {"enable_categorical": True} if library == "xgboost" else {}
    check_equality(make(library, "Classifier", **options), frame, y)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_look_can_stop_the_fit(library):
    X, y = classes(3)
    estimator = make(library, "Classifier")
    seen = []

    def look(done, model):
        seen.append(done)
        if done == 6:
            raise StopGrowing

    fitted = growable(clone(estimator)).fit(X, y, ROUNDS, look)
    assert seen == [3, 6]
    growth = growable(clone(estimator))
    plain = clone(estimator).set_params(**{growth.parameter: 6}).fit(X, y)
    assert np.array_equal(outputs(fitted, X), outputs(plain, X))


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_error_in_a_look_is_not_swallowed(library):
    def look(done, model):
        raise ZeroDivisionError("in the look")

    with pytest.raises(ZeroDivisionError, match="in the look"):
        growable(make(library, "Classifier")).fit(*classes(2), ROUNDS, look)


@pytest.mark.parametrize(
    ("library", "kind", "options"),
    [
        ("lightgbm", "Classifier", {"early_stopping_round": 5}),
        ("lightgbm", "Classifier", {"num_iterations": 50}),
        ("xgboost", "Classifier", {"early_stopping_rounds": 5}),
        ("xgboost", "Classifier", {"booster": "gblinear"}),
        ("xgboost", "RFClassifier", {}),
        ("catboost", "Classifier", {"learning_rate": None}),
        ("catboost", "Classifier", {"cat_features": [0]}),
        ("catboost", "Classifier", {"early_stopping_rounds": 5}),
    ],
)
def test_what_does_not_grow(library, kind, options):
    assert growable(make(library, kind, **options)) is None
