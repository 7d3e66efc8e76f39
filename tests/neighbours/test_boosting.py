"""LightGBM, XGBoost and CatBoost inside `F2ASearchCV`, as people use them."""

import os

import numpy as np
import pytest
from scipy.stats import loguniform, randint
from sklearn.datasets import make_classification, make_regression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from f2a_tune import F2ASearchCV
from f2a_tune.sklearn_plugin.inner_threads import decided_threads, thread_params

pytestmark = pytest.mark.slow

X, Y = make_classification(300, 8, random_state=0)
PLENTY = 300


def search(estimator, space, **options):
    options = {
        "time_budget": PLENTY,
        "max_configurations": 3,
        "cv": 3,
        "random_state": 0,
    } | options
    return F2ASearchCV(estimator, space, **options)


def lightgbm(**options):
    library = pytest.importorskip("lightgbm", reason="pip install lightgbm")
    return library.LGBMClassifier(verbose=-1, **options)


def xgboost(**options):
    return pytest.importorskip("xgboost", reason="pip install xgboost").XGBClassifier(**options)


def catboost(**options):
    library = pytest.importorskip("catboost", reason="pip install catboost")
    return library.CatBoostClassifier(verbose=0, allow_writing_files=False, **options)


MAKERS = {"lightgbm": lightgbm, "xgboost": xgboost, "catboost": catboost}
SPACES = {
    "lightgbm": {
        "n_estimators": randint(5, 30),
        "learning_rate": loguniform(0.01, 0.3),
        # Aliases and parameters that its get_params() does not list.
        "max_bin": [63, 255],
        "feature_fraction": [0.5, 1.0],
        "lambda_l1": loguniform(1e-3, 1),
        "extra_trees": [True, False],
    },
    "xgboost": {
        "n_estimators": randint(5, 30),
        "eta": loguniform(0.01, 0.3),
        "max_bin": [64, 256],
    },
    # Its get_params() lists only what was set.
    "catboost": {"iterations": randint(5, 30), "depth": [2, 4], "learning_rate": [0.05, 0.2]},
}


@pytest.mark.parametrize("name", MAKERS)
def test_its_own_parameters_can_be_searched(name):
    found = search(MAKERS[name](), SPACES[name]).fit(X, Y)
    assert set(found.best_params_) == set(SPACES[name])
    assert found.best_score_ > 0.7
    assert found.predict(X).shape == Y.shape


@pytest.mark.parametrize("name", MAKERS)
def test_inside_a_pipeline(name):
    model = make_pipeline(StandardScaler(), MAKERS[name]())
    step = model.steps[-1][0]
    space = {f"{step}__{key}": spec for key, spec in SPACES[name].items()}
    assert search(model, space).fit(X, Y).best_score_ > 0.7


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_parameters_that_do_not_exist_are_refused_where_the_library_refuses_them(name):
    class Strict(type(MAKERS[name]())):
        def set_params(self, **params):
            if unknown := set(params) - set(self.get_params()):
                raise ValueError(f"unknown: {unknown}")
            return super().set_params(**params)

    with pytest.raises(ValueError, match="did you mean 'learning_rate'"):
        search(Strict(), {"learning_rat": [0.1, 0.2]}).fit(X, Y)


def test_early_stopping_and_eval_sets_reach_lightgbm():
    library = pytest.importorskip("lightgbm", reason="pip install lightgbm")
    model = lightgbm(n_estimators=500)
    found = search(model, {"learning_rate": [0.1, 0.3]}).fit(
        X, Y, eval_set=[(X[:50], Y[:50])], callbacks=[library.early_stopping(5, verbose=False)]
    )
    assert found.best_estimator_.best_iteration_ < 500


def test_early_stopping_of_xgboost():
    model = xgboost(n_estimators=500, early_stopping_rounds=5)
    found = search(model, {"eta": [0.1, 0.3]}).fit(
        X, Y, eval_set=[(X[:50], Y[:50])], verbose=False
    )
    assert found.best_estimator_.best_iteration < 500


def test_categorical_columns_of_lightgbm():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X).rename(columns=str)
    frame["colour"] = pandas.Categorical(np.where(X[:, 0] > 0, "red", "blue"))
    assert search(lightgbm(), {"n_estimators": [5, 20]}).fit(frame, Y).best_score_ > 0.7


def test_categorical_features_of_catboost():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X).rename(columns=str)
    frame["colour"] = np.where(X[:, 0] > 0, "red", "blue")
    # In the constructor they do not survive scikit-learn's clone(), in no search.
    found = search(catboost(), {"iterations": [5, 20]}).fit(frame, Y, cat_features=["colour"])
    assert found.best_score_ > 0.7


def test_regressors():
    rows, target = make_regression(200, 5, random_state=0)
    library = pytest.importorskip("lightgbm", reason="pip install lightgbm")
    model = library.LGBMRegressor(verbose=-1)
    assert search(model, {"n_estimators": [20, 50]}).fit(rows, target).best_score_ > 0.3


@pytest.mark.parametrize("name", MAKERS)
def test_workers_get_their_share_of_the_cores(name, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    parameter = "thread_count" if name == "catboost" else "n_jobs"
    assert thread_params(MAKERS[name](), {}) == {parameter: 1}
    model = make_pipeline(StandardScaler(), MAKERS[name]())
    assert thread_params(model, {}) == {f"{model.steps[-1][0]}__{parameter}": 1}
    # Whoever sets it has decided, here or in the space.
    assert thread_params(MAKERS[name](**{parameter: 4}), {}) == {}
    assert thread_params(MAKERS[name](), {parameter: 4}) == {}
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert thread_params(MAKERS[name](), {}) == {}


def test_threads_that_the_user_asks_for_are_mentioned():
    assert decided_threads(lightgbm(n_jobs=-1)) == ["n_jobs=-1"]
    assert decided_threads(make_pipeline(StandardScaler(), lightgbm())) == []
