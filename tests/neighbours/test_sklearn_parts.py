"""Libraries and parts of scikit-learn that people combine with a search."""

import pickle

import joblib
import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GroupKFold,
    TimeSeriesSplit,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from f2a_tune import F2ASearchCV

pytestmark = pytest.mark.slow

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[:200], Y[:200]
SPACE = {"logisticregression__C": loguniform(1e-2, 1e2)}


def model():
    return make_pipeline(StandardScaler(), LogisticRegression())


def search(estimator=None, space=SPACE, **options):
    options = {"time_budget": 300, "max_configurations": 3, "cv": 3, "random_state": 0} | options
    return F2ASearchCV(model() if estimator is None else estimator, space, **options)


@pytest.mark.parametrize("around", [CalibratedClassifierCV, TunedThresholdClassifierCV])
def test_a_search_inside(around):
    fitted = around(search(), cv=2).fit(X, Y)
    assert (fitted.predict(X) == Y).mean() > 0.8


def test_a_search_over_a_calibrated_classifier():
    estimator = CalibratedClassifierCV(LogisticRegression(max_iter=5000), cv=2)
    found = search(estimator, {"estimator__C": [0.1, 1.0]}).fit(X, Y)
    assert found.best_score_ > 0.8


def test_a_search_over_a_threshold():
    estimator = FixedThresholdClassifier(model())
    found = search(estimator, {"threshold": [0.3, 0.5, 0.7]}, max_configurations=None).fit(X, Y)
    assert len(found.cv_results_["params"]) == 3


@pytest.mark.parametrize("around", [VotingClassifier, StackingClassifier])
def test_a_search_in_an_ensemble(around):
    fitted = around([("search", search()), ("plain", model())]).fit(X, Y)
    assert fitted.score(X, Y) > 0.8


def test_nested_cross_validation():
    assert cross_val_score(search(), X, Y, cv=2).mean() > 0.8


def test_groups_and_time_series():
    groups = np.arange(len(X)) // 10
    assert search(cv=GroupKFold(3)).fit(X, Y, groups=groups).best_score_ > 0.8
    assert search(cv=TimeSeriesSplit(3)).fit(X, Y).best_score_ > 0.5


@pytest.mark.parametrize("dump", ["pickle", "joblib", "skops"])
def test_saved_and_loaded(dump, tmp_path):
    fitted, path = search().fit(X, Y), tmp_path / "model"
    if dump == "pickle":
        again = pickle.loads(pickle.dumps(fitted))
    elif dump == "joblib":
        joblib.dump(fitted, path)
        again = joblib.load(path)
    else:
        skops = pytest.importorskip("skops.io", reason="pip install skops")
        skops.dump(fitted.best_estimator_, path)
        again = skops.load(path, trusted=skops.get_untrusted_types(file=path))
    assert (again.predict(X) == fitted.predict(X)).all()


def test_imbalanced_learn():
    pipeline = pytest.importorskip("imblearn.pipeline", reason="pip install imbalanced-learn")
    from imblearn.over_sampling import RandomOverSampler

    estimator = pipeline.make_pipeline(RandomOverSampler(random_state=0), model())
    space = {"randomoversampler__shrinkage": [0.1, 0.5], "pipeline__logisticregression__C": [1.0]}
    assert search(estimator, space, scoring="balanced_accuracy").fit(X, Y).best_score_ > 0.8


def test_category_encoders():
    encoders = pytest.importorskip("category_encoders", reason="pip install category_encoders")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"kind": np.where(X[:, 0] > 14, "a", "b"), "size": X[:, 1]})
    estimator = make_pipeline(encoders.TargetEncoder(cols=["kind"]), LogisticRegression())
    found = search(estimator, {"targetencoder__smoothing": [1.0, 10.0]}).fit(frame, Y)
    assert found.best_score_ > 0.7


def test_polars_frames():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({f"f{column}": X[:, column] for column in range(5)})
    assert search().fit(frame, Y).best_score_ > 0.8


def test_plots_and_reports_take_a_search(tmp_path):
    pytest.importorskip("plotly")
    from f2a_tune.report import write_report
    from f2a_tune.visualization import plot_race

    fitted = search().fit(X, Y)
    assert plot_race(fitted).data
    write_report(fitted, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1000
    with pytest.raises(TypeError, match="a fitted F2ASearchCV"):
        plot_race("search")


@pytest.mark.parametrize("budget", ["300s", "5m", "0.1h"])
def test_a_time_budget_as_on_the_command_line(budget):
    assert search(time_budget=budget).fit(X, Y).best_score_ > 0.8


def test_a_time_budget_that_is_no_duration():
    with pytest.raises(ValueError, match="time_budget must be a number of seconds or a duration"):
        search(time_budget="soon").fit(X, Y)
