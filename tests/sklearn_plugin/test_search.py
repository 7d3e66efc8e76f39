"""The search: on time, with scikit-learn's contract, and what it keeps."""

import itertools
import math
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import optuna
import pytest
import sklearn
from optuna.trial import TrialState
from scipy.stats import loguniform, uniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.datasets import load_iris, make_regression
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from f2a_tune.cutoff import CutoffPool
from f2a_tune.outcome import Kind
from f2a_tune.sklearn_plugin import (
    F2ASearchCV,
    PartialValidationWarning,
    SearchInterruptedWarning,
)

X, Y = load_iris(return_X_y=True)
# Generous: what is tested ends when its configurations are done, however slow the machine is.
PLENTY = 300


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Starting the first workers of a process takes seconds, which small budgets do not have."""
    for n_jobs in (1, 2):
        search(Toy(), {"quality": [0.5]}, cv=2, n_jobs=n_jobs).fit(X, Y)


class Toy(ClassifierMixin, BaseEstimator):
    """Takes as long as it is told, and is as good as it is told."""

    def __init__(self, quality=0.5, seconds=0.0, fail=False):
        self.quality = quality
        self.seconds = seconds
        self.fail = fail

    def fit(self, X, y):
        if self.fail:
            raise RuntimeError("no luck")
        time.sleep(self.seconds)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def score(self, X, y):
        return self.quality


def search(estimator, space, **options):
    options.setdefault("time_budget", PLENTY)
    options.setdefault("random_state", 0)
    return F2ASearchCV(estimator, space, **options)


def test_a_finite_grid_is_done_whole_and_agrees_with_grid_search():
    grid = {"C": [0.01, 0.1, 1, 10], "fit_intercept": [True, False]}
    ours = search(LogisticRegression(max_iter=500), grid, return_train_score=True).fit(X, Y)
    theirs = GridSearchCV(LogisticRegression(max_iter=500), grid, return_train_score=True)
    theirs.fit(X, Y)
    assert len(ours.cv_results_["params"]) == 8
    assert (ours.cv_results_["status"] == "complete").all()
    order = [theirs.cv_results_["params"].index(params) for params in ours.cv_results_["params"]]
    for column in theirs.cv_results_:
        assert column in ours.cv_results_, column
        if "time" not in column and not column.startswith("param"):
            assert np.allclose(ours.cv_results_[column], theirs.cv_results_[column][order])
    assert ours.best_score_ == theirs.best_score_
    assert ours.n_splits_ == 5
    assert ours.refit_time_ > 0
    assert np.array_equal(ours.classes_, [0, 1, 2])
    assert ours.n_features_in_ == 4


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_slow_configurations_are_given_up_and_the_best_is_found(n_jobs):
    space = {"quality": uniform(0, 1), "seconds": [0.001, 0.002, 3600.0]}
    begin = time.monotonic()
    found = search(Toy(), space, time_budget=15, n_jobs=n_jobs, cv=3).fit(X, Y)
    assert time.monotonic() - begin < 60
    assert found.best_score_ > 0.8
    assert found.cv_results_["status"][found.best_index_] == "complete"
    assert "given_up" in found.cv_results_["status"]
    use = found.budget_
    assert use.n_given_up > 0
    assert use.total_seconds == pytest.approx(
        use.finished_seconds
        + use.given_up_seconds
        + use.failed_seconds
        + use.overhead_seconds
        + use.refit_seconds
    )
    assert use.total_seconds <= n_jobs * 60


def test_the_study_is_the_memory():
    found = search(Toy(), {"quality": [0.1, 0.9, 0.5]}, cv=3).fit(X, Y)
    trials = found.study_.trials
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 3
    assert found.study_.best_params == {"quality": 0.9}
    assert all(trial.intermediate_values.keys() == {0, 1, 2} for trial in trials)


def test_weak_configurations_are_not_validated_on_all_folds():
    space = {"quality": uniform(0, 1), "seconds": [0.05]}
    found = search(Toy(), space, time_budget=12, cv=5, proposals="random").fit(X, Y)
    assert "dropped" in found.cv_results_["status"]
    assert found.cv_results_["n_folds_done"][found.best_index_] == 5
    complete = found.cv_results_["status"] == "complete"
    ranks = found.cv_results_["rank_test_score"]
    assert ranks[complete].max() < ranks[~complete].min()
    assert ranks[found.best_index_] == 1
    states = {trial.state for trial in found.study_.trials}
    assert states <= {TrialState.COMPLETE, TrialState.PRUNED}


def test_failing_configurations():
    space = {"quality": [0.2, 0.4], "fail": [True, False]}
    with pytest.warns(FitFailedWarning, match=r"2 fits failed.*\n.*set to nan[\s\S]*no luck"):
        found = search(Toy(), space, cv=3).fit(X, Y)
    assert found.best_params_ == {"quality": 0.4, "fail": False}
    failed = found.cv_results_["status"] == "failed"
    assert failed.sum() == 2
    assert (found.cv_results_["n_failed"][failed] == 1).all()
    with pytest.raises(RuntimeError, match="no luck"):
        search(Toy(), space, cv=3, error_score="raise").fit(X, Y)
    with pytest.raises(ValueError, match=r"All the 1 fits failed[\s\S]*no luck"):
        search(Toy(fail=True), {"quality": [0.1]}).fit(X, Y)


class FailsLater(Toy):
    """Fails on its second fold, if it is told to."""

    def fit(self, X, y):
        if self.fail and X[0, 0] != FIRST:
            raise RuntimeError("no luck")
        return super().fit(X, y)

    def score(self, X, y):
        return self.quality - 1


FIRST = X[5:][0, 0]


def test_an_error_score_does_not_make_a_winner_of_what_has_failed():
    folds = [(np.arange(5, 150), np.arange(5)), (np.arange(10), np.arange(10, 20))]
    space = [{"quality": [0.9, 0.8]}, {"fail": [True], "quality": [0.95]}]
    found = search(FailsLater(), space, cv=folds, error_score=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PartialValidationWarning)
        warnings.simplefilter("ignore", FitFailedWarning)
        found.fit(X, Y)
    assert found.best_params_["quality"] == 0.9


def test_workers_that_cannot_start_any_more_do_not_cost_the_result(monkeypatch):
    from f2a_tune.cutoff.launcher import WorkerStartError

    found = search(Toy(), {"quality": uniform(0, 1)}, cv=2)
    n_calls, really = 0, CutoffPool.perform

    def perform(pool, call):
        nonlocal n_calls
        n_calls += 1
        if n_calls > 20:
            raise WorkerStartError("worker processes cannot start: no more files")
        return really(pool, call)

    monkeypatch.setattr(CutoffPool, "perform", perform)
    with pytest.warns(RuntimeWarning, match="no more files"):
        found.fit(X, Y)
    assert found.best_score_ > 0
    n_calls = 20
    with pytest.raises(WorkerStartError):
        search(Toy(), {"quality": uniform(0, 1)}, cv=2).fit(X, Y)


class Misses(Toy):
    """Looks for a file that is not there."""

    def fit(self, X, y):
        raise FileNotFoundError("data.csv")


def test_an_error_of_a_fit_is_not_taken_for_one_of_the_storage():
    with pytest.raises(FileNotFoundError, match=r"data\.csv"):
        search(Misses(), {"quality": [0.1]}, error_score="raise").fit(X, Y)

    def callback(event):
        raise PermissionError("not yours")

    with pytest.raises(PermissionError, match="not yours"):
        search(Toy(), {"quality": [0.1]}, callbacks=[callback]).fit(X, Y)


def test_all_given_up_says_what_to_change():
    with pytest.raises(ValueError, match=r"no fit finished within time_budget=6\. .* given up"):
        search(Toy(seconds=3600.0), {"quality": uniform(0, 1)}, time_budget=6).fit(X, Y)


def test_a_partly_validated_winner_is_said_so():
    with pytest.warns(PartialValidationWarning, match=r"only \d+ of 20 folds"):
        found = search(Toy(0.3, seconds=1.0), {"quality": [0.3]}, time_budget=16, cv=20).fit(X, Y)
    assert 0 < found.cv_results_["n_folds_done"][0] < 20
    assert found.best_score_ == pytest.approx(0.3)


def test_several_metrics_and_kinds_of_refit():
    scoring = {"accuracy": "accuracy", "loss": "neg_log_loss"}
    space = {"C": [0.001, 1.0, 100.0]}
    estimator = LogisticRegression(max_iter=500)
    found = search(estimator, space, scoring=scoring, refit="loss").fit(X, Y)
    assert found.multimetric_
    assert set(found.scorer_) == {"accuracy", "loss"}
    assert found.best_index_ == found.cv_results_["mean_test_loss"].argmax()
    assert "rank_test_accuracy" in found.cv_results_
    found = search(estimator, space, scoring=scoring, refit=False).fit(X, Y)
    assert not hasattr(found, "best_estimator_")
    assert not hasattr(found, "best_index_")
    found = search(estimator, space, refit=lambda results: 1).fit(X, Y)
    assert found.best_index_ == 1
    assert not hasattr(found, "best_score_")
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        search(estimator, space, scoring=scoring).fit(X, Y)


def test_it_is_an_estimator_among_others():
    inner = search(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        {"logisticregression__C": loguniform(1e-2, 1e2)},
        max_configurations=3,
        cv=3,
    )
    assert is_classifier(inner)
    assert clone(inner).get_params()["max_configurations"] == 3
    scores = cross_val_score(inner, X, Y, cv=3)
    assert scores.mean() > 0.9
    inner.fit(X, Y)
    again = pickle.loads(pickle.dumps(inner))
    assert np.array_equal(again.predict(X), inner.predict(X))
    assert "F2ASearchCV" in inner._repr_html_()
    assert inner.score(X, Y) > 0.9


def test_it_works_inside_pipelines_and_stacks():
    inner = search(LogisticRegression(max_iter=500), {"C": [0.1, 1.0]}, cv=2)
    piped = make_pipeline(StandardScaler(), inner).fit(X, Y)
    assert piped.score(X, Y) > 0.9
    stack = StackingClassifier(
        [("search", inner), ("tree", DecisionTreeClassifier(random_state=0))], cv=2
    )
    assert stack.fit(X, Y).score(X, Y) > 0.9


def test_optuna_samplers_propose():
    space = [
        {"quality": uniform(0, 1), "seconds": [0.0, 0.001]},
        {"quality": [0.2, 0.5, 0.7], "fail": [False]},
    ]
    sampler = optuna.samplers.TPESampler(seed=0, n_startup_trials=5)
    found = search(Toy(), space, proposals=sampler, max_configurations=30, cv=2).fit(X, Y)
    assert len(found.cv_results_["params"]) == 30
    drawn = [tuple(sorted(params.items())) for params in found.cv_results_["params"]]
    assert len(set(drawn)) == 30
    random = search(Toy(), space, proposals="random", max_configurations=30, cv=2).fit(X, Y)
    assert found.best_score_ >= random.best_score_ - 0.1
    grid = optuna.samplers.GridSampler({"quality": [0.2, 0.7]})
    found = search(Toy(), {"quality": [0.2, 0.5, 0.7]}, proposals=grid, cv=2).fit(X, Y)
    assert found.best_score_ == 0.7
    with pytest.raises(TypeError, match="proposals must be one of"):
        search(Toy(), space, proposals=3).fit(X, Y)


def test_regression_with_weights_groups_and_routing():
    data, target = make_regression(80, 5, random_state=0)
    weights = np.linspace(0.1, 1, 80)
    found = search(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, cv=KFold(4))
    found.fit(data, target, sample_weight=weights)
    theirs = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, cv=KFold(4))
    theirs.fit(data, target, sample_weight=weights)
    assert sorted(found.cv_results_["mean_test_score"]) == pytest.approx(
        sorted(theirs.cv_results_["mean_test_score"])
    )
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = Ridge().set_fit_request(sample_weight=True)
        estimator.set_score_request(sample_weight=False)
        found = search(estimator, {"alpha": [0.1, 1.0]}, cv=3)
        found.fit(data, target, sample_weight=weights)
        assert found.best_score_ > 0.9


def test_same_seed_same_configurations():
    def once():
        found = search(Toy(), {"quality": uniform(0, 1)}, max_configurations=6, proposals="random")
        return [params["quality"] for params in found.fit(X, Y).cv_results_["params"]]

    assert once() == once()


def test_callbacks_hear_of_every_pull_and_may_end_it():
    events = []

    def callback(event):
        events.append(event.outcome.kind)
        return len(events) == 4

    found = search(Toy(), {"quality": uniform(0, 1)}, callbacks=[callback], cv=2).fit(X, Y)
    assert events == [Kind.FINISHED] * 4
    assert found.cv_results_["n_folds_done"].sum() == 4


def test_progress_is_printed(capsys):
    search(Toy(), {"quality": [0.5, 0.7]}, verbose=2, cv=2).fit(X, Y)
    shown = capsys.readouterr().out
    assert "configurations, 1 folds finished, 0 given up, cutoff" in shown
    assert "[CV 2/2] END quality=0.7; finished, total time=" in shown


@pytest.mark.skipif(
    not hasattr(GridSearchCV, "set_callbacks"), reason="callbacks came with scikit-learn 1.9"
)
def test_scikit_learns_progress_bar_works_for_killed_pulls():
    from sklearn.callback import ProgressBar

    space = {"quality": [0.1, 0.9], "seconds": [0.001, 3600.0]}
    found = search(Toy(), space, cv=2, timeouts=[0.5]).set_callbacks(ProgressBar())
    assert found.fit(X, Y).best_score_ == 0.9


def pressing_ctrl_c(*waits):
    """A callback: when four fits have ended, Ctrl-C comes after each of these seconds."""
    counts = itertools.count(1)

    def callback(event):
        if next(counts) == 4:
            for wait in waits:
                threading.Timer(wait, os.kill, (os.getpid(), signal.SIGINT)).start()

    return callback


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_ctrl_c_leaves_it_fitted(n_jobs):
    pressing = pressing_ctrl_c(0.15)  # in the middle of a fit
    space = {"quality": uniform(0, 1)}
    found = search(Toy(seconds=0.3), space, cv=2, n_jobs=n_jobs, callbacks=[pressing])
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitFailedWarning)  # fits in flight have not failed
        with pytest.warns(SearchInterruptedWarning):
            found.fit(X, Y)
    assert found.best_score_ > 0
    assert TrialState.FAIL not in {trial.state for trial in found.study_.trials}
    assert not found.cv_results_["n_failed"].any()
    assert found.predict(X).shape == (150,)
    assert TrialState.RUNNING not in {trial.state for trial in found.study_.trials}


class SlowRefit(Toy):
    """Quick on folds, for ever on all rows."""

    def fit(self, X, y):
        if len(X) == len(Y):
            time.sleep(3600)
        return super().fit(X, y)


def test_a_second_ctrl_c_raises():
    found = search(SlowRefit(seconds=0.05), {"quality": uniform(0, 1)}, cv=2)
    found.set_params(callbacks=[pressing_ctrl_c(0.02, 6.0)])
    with pytest.raises(KeyboardInterrupt), pytest.warns(SearchInterruptedWarning):
        found.fit(X, Y)


def test_a_fit_that_can_hardly_be_refitted_in_time_is_better_than_nothing():
    space = {"quality": [0.4], "seconds": [2.5]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it may be a fold's model
        found = search(Toy(0.4, 2.5), space, time_budget=15, cv=2).fit(X, Y)
    assert found.best_score_ == 0.4
    assert found.best_estimator_.seconds == 2.5


RESUMED = """
    import sys
    from tests.sklearn_plugin.test_search import Toy, X, Y, F2ASearchCV, uniform
    F2ASearchCV(
        Toy(seconds=0.02), {"quality": uniform(0, 1)}, cv=2, time_budget=1000, random_state=0,
        storage=STORAGE, study_name="s", proposals="random",
        callbacks=[lambda event: print("pull", flush=True)],
    ).fit(X, Y)
"""


def test_killed_and_resumed(tmp_path):
    url = f"sqlite:///{tmp_path}/search.db"
    code = textwrap.dedent(RESUMED).replace("STORAGE", repr(url))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    for _ in range(12):
        assert process.stdout.readline() == "pull\n"
    process.kill()
    process.wait()
    process.stdout.close()
    before = optuna.load_study(storage=url, study_name="s")
    known = sum(len(trial.intermediate_values) for trial in before.trials)
    assert known >= 12
    options = {"storage": url, "study_name": "s", "cv": 2, "proposals": "random"}
    space = {"quality": uniform(0, 1)}
    n_configurations = len(before.trials)
    found = search(
        Toy(), space, resume=True, max_configurations=n_configurations + 2, **options
    ).fit(X, Y)
    assert len(found.cv_results_["params"]) == n_configurations + 2
    assert (
        len({params["quality"] for params in found.cv_results_["params"]}) == n_configurations + 2
    )
    # Only what was in flight, or not there yet, has been fitted.
    assert found.budget_.n_finished == 2 * (n_configurations + 2) - known
    spent = [v["seconds"] for k, v in found.study_.user_attrs.items() if k.startswith("f2a:run:")]
    assert len(spent) == 2
    assert all(seconds > 0 for seconds in spent)
    used_up = search(Toy(), space, resume=True, **{**options, "time_budget": sum(spent) / 2})
    assert used_up.fit(X, Y).budget_.n_finished == 0
    with pytest.raises(ValueError, match=r"already exists in the storage\. Pass resume=True"):
        search(Toy(), space, **options).fit(X, Y)
    with pytest.raises(ValueError, match="was created with different data"):
        search(Toy(), space, resume=True, **options).fit(X[:140], Y[:140])
    with pytest.raises(ValueError, match="was created with different space"):
        search(Toy(), {"quality": [0.1]}, resume=True, **options).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"time_budget": 0}, ValueError, "time_budget must be a finite number above 0, got 0"),
        ({"time_budget": "soon"}, ValueError, "time_budget"),
        ({"time_budget": math.inf}, ValueError, "time_budget"),
        ({"timeouts": [2, 1]}, ValueError, "timeouts must be strictly increasing"),
        ({"policy": "rase"}, ValueError, "did you mean 'race'"),
        ({"proposals": "tpe"}, ValueError, "proposals='tpe' is unknown"),
        ({"max_configurations": 0}, ValueError, "max_configurations"),
        ({"storage": "sqlite://"}, ValueError, "also requires study_name"),
        ({"resume": True}, ValueError, "resume=True also requires storage="),
        ({"cv": 1}, ValueError, "'cv' parameter of F2ASearchCV"),
        ({"scoring": "acuracy"}, ValueError, "acuracy"),
        ({"memory": 0}, ValueError, "memory"),
    ],
)
def test_bad_input(options, error, words):
    estimator = DummyClassifier()
    with pytest.raises(error, match=words):
        search(estimator, {"strategy": ["prior"]}, **options).fit(X, Y)


def test_frames_lists_and_sparse_matrices_reach_the_estimator():
    pd = pytest.importorskip("pandas")
    import scipy.sparse

    space = {"C": [0.1, 1.0]}
    estimator = LogisticRegression(max_iter=500)
    frame = pd.DataFrame(X, columns=list("abcd"))
    found = search(estimator, space).fit(frame, pd.Series(Y))
    assert list(found.feature_names_in_) == list("abcd")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.predict(frame)
    search(estimator, space).fit(X.tolist(), Y.tolist())
    polars = pytest.importorskip("polars")
    found = search(estimator, space).fit(polars.DataFrame(X, schema=list("abcd")), Y)
    assert list(found.feature_names_in_) == list("abcd")
    search(estimator, space).fit(scipy.sparse.csr_matrix(X), Y)
