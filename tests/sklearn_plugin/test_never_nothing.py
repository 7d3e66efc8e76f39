"""Searches that once ended with nothing, late, or without a reason."""

import sys
import time
import warnings

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from f2a_tune.sklearn_plugin import F2ASearchCV, RefitWarning

X, Y = load_iris(return_X_y=True)
PLENTY = 300


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Starting the first workers of a process takes seconds, which small budgets do not have."""
    F2ASearchCV(LogisticRegression(max_iter=500), {"C": [1.0]}, time_budget=PLENTY).fit(X, Y)


class SlowOnAllRows(ClassifierMixin, BaseEstimator):
    """Fits a fold at once, and all rows never."""

    def __init__(self, quality=0.5, most_rows=140):
        self.quality = quality
        self.most_rows = most_rows

    def fit(self, X, y):
        if len(X) > self.most_rows:
            time.sleep(3600)
        self.classes_, self.n_rows_ = np.unique(y), len(X)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def score(self, X, y):
        return self.quality


def test_a_refit_has_a_cutoff_and_a_fold_model_takes_its_place():
    search = F2ASearchCV(SlowOnAllRows(), {"quality": [0.1, 0.9]}, time_budget=10)
    begin = time.monotonic()
    with pytest.warns(RefitWarning, match="all 150 rows .* 120 training rows of fold 0"):
        search.fit(X, Y)
    assert time.monotonic() - begin < 60  # the refit sleeps for an hour
    assert search.best_params_ == {"quality": 0.9}
    assert search.best_estimator_.n_rows_ == 120
    assert search.best_estimator_.quality == 0.9
    assert (search.predict(X) == 0).all()


class SlowFold(SlowOnAllRows):
    """Takes long enough on a fold for its model to be kept."""

    def fit(self, X, y):
        time.sleep(0.2)
        return super().fit(X, y)


def test_the_model_of_a_long_fold_fit_is_kept():
    search = F2ASearchCV(SlowFold(), {"quality": [0.9]}, time_budget=10)
    with pytest.warns(RefitWarning):
        search.fit(X, Y)
    assert search.best_estimator_.n_rows_ == 120
    assert search.cv_results_["n_folds_done"][0] == 5


class Unpicklable(SlowOnAllRows):
    """Fitted, it cannot be sent between processes."""

    def fit(self, X, y):
        super().fit(X, y)
        self.lock_ = (one for one in ())
        return self


def test_a_model_that_cannot_be_sent_is_refitted_here():
    search = F2ASearchCV(Unpicklable(most_rows=1000), {"quality": [0.9]}, time_budget=PLENTY)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RefitWarning)
        search.fit(X, Y)
    assert search.best_estimator_.n_rows_ == 150


def test_an_error_of_the_refit_is_raised():
    class FailsOnAllRows(SlowOnAllRows):
        def fit(self, X, y):
            if len(X) > 140:
                raise RuntimeError("too many rows")
            return super().fit(X, y)

    search = F2ASearchCV(FailsOnAllRows(), {"quality": [0.9]}, time_budget=PLENTY)
    with pytest.raises(RuntimeError, match="too many rows"):
        search.fit(X, Y)


def test_a_refitted_model_owns_its_data():
    space = {"n_neighbors": [1, 3, 5]}
    search = F2ASearchCV(KNeighborsClassifier(), space, time_budget=PLENTY).fit(X, Y)
    fitted = search.best_estimator_._fit_X
    assert type(fitted) is np.ndarray
    assert fitted.flags.writeable


def test_small_folds_do_not_make_the_refit_late():
    rows, classes = np.repeat(X, 200, axis=0), np.repeat(Y, 200)
    rows = rows + np.random.default_rng(0).normal(scale=2.0, size=rows.shape)
    cv = ShuffleSplit(5, train_size=0.01, test_size=0.05, random_state=0)
    search = F2ASearchCV(SVC(), {"C": loguniform(1, 1e3)}, time_budget=4, cv=cv)
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefitWarning)
        search.fit(rows, classes)
    assert time.monotonic() - begin < 60
    assert hasattr(search, "best_estimator_")


def fails(y_true, y_pred):
    raise ValueError("pos_label=1 is not a valid label")


def test_fits_that_all_fail_alike_end_the_search_with_the_reason():
    model = make_pipeline(StandardScaler(), LogisticRegression())
    space = {"logisticregression__C": loguniform(1e-3, 1e3)}
    search = F2ASearchCV(model, space, time_budget=PLENTY, scoring=make_scorer(fails))
    begin = time.monotonic()
    with pytest.raises(ValueError, match="not a valid label") as raised:
        search.fit(X, Y)
    assert time.monotonic() - begin < PLENTY / 2
    assert "All the 1" in str(raised.value), "ten or so fits are enough"


class FailsAtFirst(SlowOnAllRows):
    """Fails for most of its values."""

    def fit(self, X, y):
        if self.quality < 0.9:
            raise ValueError("too low")
        return super().fit(X, y)


def test_a_few_failures_among_successes_are_a_warning():
    values = [0.91, *np.linspace(0.1, 0.8, 20)]
    search = F2ASearchCV(
        FailsAtFirst(most_rows=1000),
        {"quality": values},
        time_budget=PLENTY,
        start=[{"quality": 0.91}],
    )
    with pytest.warns(FitFailedWarning, match="20 fits failed"):
        search.fit(X, Y)
    assert search.best_score_ == pytest.approx(0.91)


class HangsUnlessDefault(SlowOnAllRows):
    """Finishes only with its own parameters, which the space does not have."""

    def __init__(self, quality=0.5, mode="default"):
        self.quality = quality
        self.mode = mode

    def fit(self, X, y):
        if self.mode != "default":
            time.sleep(3600)
        self.classes_, self.n_rows_ = np.unique(y), len(X)
        return self


def test_the_estimator_as_it_is_stands_in_for_a_space_in_which_nothing_finishes():
    space = {"mode": ["slow", "slower"], "quality": loguniform(0.1, 1)}
    search = F2ASearchCV(HangsUnlessDefault(), space, time_budget=8)
    search.fit(X, Y)
    assert search.best_params_ == {"mode": "default", "quality": 0.5}
    assert list(search.cv_results_["in_space"]) == [
        params["mode"] != "default" for params in search.cv_results_["params"]
    ]
    assert not search.cv_results_["in_space"][search.best_index_]
    (own,) = [t for t in search.study_.trials if "f2a:default" in t.user_attrs]
    assert own.user_attrs["f2a:default"] == {"mode": "default", "quality": 0.5}
    assert search.best_estimator_.mode == "default"


def test_a_default_outside_the_space_is_not_tried_where_the_space_works():
    space = {"C": loguniform(10, 100)}
    search = F2ASearchCV(
        LogisticRegression(max_iter=500), space, time_budget=PLENTY, max_configurations=5
    ).fit(X, Y)
    assert search.cv_results_["in_space"].all()
    assert search.cv_results_["params"][0]["C"] == pytest.approx(10)  # the nearest to 1


def test_the_default_of_a_quick_model_is_validated_in_a_second():
    rows, classes = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    space = {"logisticregression__C": loguniform(1e-3, 1e3)}
    # Ten times the budget that a quiet machine needs.
    search = F2ASearchCV(model, space, time_budget=10, random_state=0).fit(rows, classes)
    assert search.cv_results_["status"][search.best_index_] == "complete"
    assert search.cv_results_["params"][0] == {"logisticregression__C": pytest.approx(1.0)}
    assert search.cv_results_["status"][0] == "complete"


class Endless(SlowOnAllRows):
    """Never ends."""

    def fit(self, X, y):
        time.sleep(3600)


def test_an_error_without_any_result_says_how_long_a_fit_takes():
    search = F2ASearchCV(Endless(), {"quality": loguniform(0.1, 1)}, time_budget=8)
    with pytest.raises(ValueError, match=r"no fit finished within time_budget=8.*try time_budget"):
        search.fit(X, Y)


class FailsUnlessDefault(SlowOnAllRows):
    """The default takes a moment, and everything else fails at once."""

    def fit(self, X, y):
        if abs(self.quality - 0.5) > 1e-6:
            raise ValueError("only the default works")
        time.sleep(0.5)
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_failures_do_not_end_a_search_whose_default_is_still_running():
    space = {"quality": loguniform(0.1, 0.9)}
    search = F2ASearchCV(
        FailsUnlessDefault(most_rows=PLENTY), space, time_budget=20, n_jobs=2, refit=False
    ).fit(X, Y)
    assert search.best_params_["quality"] == pytest.approx(0.5)
    assert search.cv_results_["n_folds_done"][search.best_index_] > 1


class Eats(SlowOnAllRows):
    """Needs 300 MB for a fit, or only for a fit on all rows."""

    def __init__(self, quality=0.5, most_rows=PLENTY, from_rows=0):
        super().__init__(quality, most_rows)
        self.from_rows = from_rows

    def fit(self, X, y):
        if len(X) >= self.from_rows:
            np.ones(300_000_000 // 8)
        return super().fit(X, y)


@pytest.mark.skipif(sys.platform != "linux", reason="memory limits need Linux")
def test_fits_that_all_run_out_of_memory_end_the_search():
    space = {"quality": loguniform(0.1, 0.9)}
    begin = time.monotonic()
    with pytest.raises(ValueError, match="MemoryError"):
        F2ASearchCV(Eats(), space, time_budget=PLENTY, memory=100_000_000).fit(X, Y)
    assert time.monotonic() - begin < PLENTY / 2


@pytest.mark.skipif(sys.platform != "linux", reason="memory limits need Linux")
def test_a_refit_respects_the_memory_limit():
    search = F2ASearchCV(
        Eats(from_rows=150), {"quality": [0.1, 0.9]}, time_budget=60, memory=100_000_000
    )
    with pytest.warns(RefitWarning, match="ran out of memory"):
        search.fit(X, Y)
    assert search.best_estimator_.n_rows_ == 120


def test_the_default_is_the_last_resort_without_start_configurations():
    modes = ["default", *"abcdefghijklmnopqrst"]
    search = F2ASearchCV(
        HangsUnlessDefault(), {"mode": modes}, time_budget=12, start=[], refit=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, Y)
    assert search.best_params_ == {"mode": "default"}
