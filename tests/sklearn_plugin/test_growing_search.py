"""Searches whose fits are scored while they grow, and paused, continued or dropped."""

import threading
import time
import warnings

import numpy as np
import optuna
import pytest
from joblib import parallel_config
from optuna.distributions import FloatDistribution, IntDistribution
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from f2a_tune import F2ASearchCV, best_configuration, budget_summary
from f2a_tune.sklearn_plugin import growing_fits
from f2a_tune.study.reader import read_study

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::2], Y[::2]
FOLDS = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y))
FOREST = {
    "n_estimators": IntDistribution(2, 64, log=True),
    "max_features": FloatDistribution(0.05, 1.0),
    "min_samples_leaf": IntDistribution(1, 30, log=True),
}


def forest_search(**options):
    defaults = {"time_budget": 60, "max_configurations": 6, "cv": FOLDS, "random_state": 0}
    return F2ASearchCV(RandomForestClassifier(random_state=0), FOREST, **(defaults | options))


def check_scores(search, row, **options):
    """Compare the scores of a row with those of plain fits with its parameters."""
    params = search.cv_results_["params"][row]
    plain = cross_validate(clone(search.estimator).set_params(**params), X, Y, cv=FOLDS, **options)
    for fold, score in enumerate(plain["test_score"]):
        assert search.cv_results_[f"split{fold}_test_score"][row] == pytest.approx(score)


class Slow(ClassifierMixin, BaseEstimator):
    """Grows by rounds of ``seconds`` each, and is right in more rows with every round."""

    growth_parameter = "rounds"

    def __init__(self, rounds=10_000, seconds=0.02, quality=1.0, hangs=False):
        self.rounds, self.seconds, self.quality, self.hangs = rounds, seconds, quality, hangs

    def fit(self, X, y):
        return self.grow(X, y, self.rounds)

    def grow(self, X, y, rounds):
        self.classes_ = np.unique(y)
        for _ in range(getattr(self, "done_", 0), rounds):
            time.sleep(3600 if self.hangs else self.seconds)
        self.done_ = rounds
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def score(self, X, y):
        return self.quality * (1 - 1 / (1 + self.done_))


def test_scores_are_those_of_plain_fits_with_the_validated_rounds():
    search = forest_search().fit(X, Y)
    results = search.cv_results_
    assert search.best_params_["n_estimators"] == results["rounds"][search.best_index_]
    assert search.best_estimator_.n_estimators == search.best_params_["n_estimators"]
    assert len(search.best_estimator_.estimators_) == search.best_params_["n_estimators"]
    complete = np.flatnonzero(results["status"] == "complete")
    assert search.best_index_ in complete
    for row in complete:
        check_scores(search, row)


def test_the_estimator_as_it_is_is_validated_at_its_own_rounds():
    estimator = GradientBoostingClassifier(n_estimators=24, random_state=0)
    space = {"n_estimators": IntDistribution(4, 200), "learning_rate": FloatDistribution(0.01, 1)}
    search = F2ASearchCV(estimator, space, time_budget=60, max_configurations=3, cv=FOLDS)
    search.fit(X, Y)
    rounds = {point.rounds for pull in read_study(search).configurations[0].pulls
              for point in pull.curve}  # fmt: skip
    assert 24 in rounds
    assert search.cv_results_["status"][0] == "complete"
    check_scores(search, 0)


def test_rounds_in_a_list_are_the_only_ones_tried():
    space = FOREST | {"n_estimators": [5, 20, 40]}
    search = F2ASearchCV(
        ExtraTreesClassifier(random_state=0), space, time_budget=60, max_configurations=5, cv=FOLDS
    ).fit(X, Y)
    assert set(search.cv_results_["rounds"]) <= {0, 5, 20, 40}


def test_rounds_alone_are_not_grown():
    search = F2ASearchCV(
        RandomForestClassifier(random_state=0), {"n_estimators": [5, 10]}, time_budget=60, cv=FOLDS
    ).fit(X, Y)
    assert list(search.cv_results_["rounds"]) == [0, 0]
    assert sorted(search.cv_results_["param_n_estimators"]) == [5, 10]


@pytest.mark.parametrize("options", [{"growth": None}, {"timeouts": [1, 10]},
                                     {"proposals": "random"}])  # fmt: skip
def test_fits_are_whole_without_growth(options):
    search = forest_search(**options).fit(X, Y)
    assert not search.cv_results_["rounds"].any()


def test_fits_that_would_repeat_their_start_are_whole():
    space = {"max_iter": IntDistribution(4, 40), "learning_rate": FloatDistribution(0.01, 1)}
    search = F2ASearchCV(
        HistGradientBoostingClassifier(), space, time_budget=60, max_configurations=2, cv=FOLDS
    ).fit(X, Y)
    assert not search.cv_results_["rounds"].any()


def test_growth_must_be_known():
    with pytest.raises(ValueError, match="growth='yes'"):
        forest_search(growth="yes").fit(X, Y)


def test_a_pipeline_grows_beside_a_model_that_does_not():
    estimator = make_pipeline(StandardScaler(), SVC())
    spaces = [
        {"svc": [SVC()], "svc__C": FloatDistribution(0.1, 10, log=True)},
        {"svc": [RandomForestClassifier(random_state=0)],
         "svc__n_estimators": IntDistribution(2, 32, log=True),
         "svc__max_features": FloatDistribution(0.1, 1)},
    ]  # fmt: skip
    search = F2ASearchCV(
        estimator, spaces, time_budget=60, max_configurations=8, cv=FOLDS, random_state=1
    ).fit(X, Y)
    grown = search.cv_results_["rounds"] > 0
    assert grown.any()
    assert not grown.all()
    complete = search.cv_results_["status"] == "complete"
    for row in np.flatnonzero(complete):
        check_scores(search, row)


def test_several_workers_train_scores_and_several_metrics():
    search = forest_search(
        n_jobs=2,
        scoring=["accuracy", "neg_log_loss"],
        refit="neg_log_loss",
        return_train_score=True,
    ).fit(X, Y)
    best = search.best_index_
    params = search.best_params_
    plain = cross_validate(
        RandomForestClassifier(random_state=0).set_params(**params),
        X, Y, cv=FOLDS, scoring=["accuracy", "neg_log_loss"], return_train_score=True,
    )  # fmt: skip
    for name in ("test_accuracy", "test_neg_log_loss", "train_accuracy"):
        found = [search.cv_results_[f"split{fold}_{name}"][best] for fold in range(3)]
        assert found == pytest.approx(list(plain[name]))


def test_sample_weights_are_split_with_the_rows():
    weight = np.linspace(0.1, 3, len(Y))
    search = forest_search().fit(X, Y, sample_weight=weight)
    grid = {name: [value] for name, value in search.best_params_.items()}
    plain = GridSearchCV(clone(search.estimator), grid, cv=FOLDS).fit(X, Y, sample_weight=weight)
    assert search.best_score_ == pytest.approx(plain.best_score_)


def test_if_every_configuration_is_slower_than_the_budget_the_best_part_of_one_is_returned():
    space = {"quality": FloatDistribution(0.1, 1.0), "rounds": IntDistribution(8, 100_000)}
    search = F2ASearchCV(Slow(), space, time_budget=8, cv=FOLDS, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, Y)
    assert 0 < search.best_params_["rounds"] < 10_000
    assert search.best_estimator_.done_ >= 1


def test_few_paused_fits_and_little_memory(monkeypatch):
    monkeypatch.setattr(growing_fits, "MOST_PAUSED", 1)
    search = forest_search().fit(X, Y)
    check_scores(search, search.best_index_)
    monkeypatch.setattr(growing_fits, "PAUSED_MEMORY_SHARE", 0.0)
    search = forest_search().fit(X, Y)
    check_scores(search, search.best_index_)


def test_a_fit_that_hangs_is_paused_and_the_search_goes_on():
    space = {"hangs": [False, True], "quality": FloatDistribution(0.1, 1.0)}
    estimator = Slow(rounds=16, seconds=0.0)
    search = F2ASearchCV(estimator, space, time_budget=6, cv=FOLDS, random_state=0).fit(X, Y)
    assert not search.best_params_["hangs"]
    assert search.budget_.n_given_up > 0


def test_the_study_keeps_curves_and_a_resumed_search_goes_on(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    options = {"storage": storage, "study_name": "forest", "max_configurations": 4}
    first = forest_search(**options).fit(X, Y)
    study = optuna.load_study(study_name="forest", storage=storage)
    view = read_study(study)
    assert best_configuration(study).params == first.best_params_
    assert budget_summary(study).n_failed == 0
    assert study.best_value == pytest.approx(first.best_score_)
    curves = [pull.curve for one in view.configurations for pull in one.pulls]
    assert any(len(curve) > 2 for curve in curves)
    assert max(max(t.intermediate_values, default=0) for t in study.trials) > 3, "steps are rounds"
    again = forest_search(**(options | {"resume": True, "max_configurations": 7})).fit(X, Y)
    assert len(again.cv_results_["params"]) == 7
    assert again.best_score_ >= first.best_score_
    check_scores(again, again.best_index_)


def test_a_search_without_growth_is_resumed_without_it(tmp_path):
    options = {"storage": f"sqlite:///{tmp_path}/s.db", "study_name": "s"}
    forest_search(**options, growth=None, max_configurations=2).fit(X, Y)
    again = forest_search(**options, resume=True, max_configurations=4).fit(X, Y)
    assert len(again.cv_results_["params"]) == 4
    assert not again.cv_results_["rounds"].any()


def test_results_report_and_study_agree():
    search = forest_search(n_jobs=2).fit(X, Y)
    written, counted = budget_summary(search.study_), search.budget_
    assert written.n_finished == counted.n_finished
    assert written.finished_seconds == pytest.approx(counted.finished_seconds)
    assert written.n_given_up == counted.n_given_up
    view, results = read_study(search), search.cv_results_
    assert [one.status for one in view.configurations] == list(results["status"])
    assert [one.params for one in view.configurations] == list(results["params"])
    for one, mean in zip(view.configurations, results["mean_test_score"], strict=True):
        assert one.mean == pytest.approx(mean, nan_ok=True)
    assert view.winner.params == search.best_params_


def test_players_in_other_processes():
    with parallel_config("loky"):
        search = forest_search(n_jobs=2, time_budget=25, max_configurations=None).fit(X, Y)
    assert search.cv_results_["status"][search.best_index_] == "complete"
    check_scores(search, search.best_index_)


def test_a_second_search_joins_and_shares_curves(tmp_path):
    options = {
        "storage": f"sqlite:///{tmp_path}/s.db",
        "study_name": "forest",
        "time_budget": 15,
        "max_configurations": None,
    }
    joined = []

    def help_out():
        time.sleep(3)
        joined.append(forest_search(**options).join(X, Y))

    helper = threading.Thread(target=help_out)
    helper.start()
    search = forest_search(**options).fit(X, Y)
    helper.join()
    assert joined[0].n_finished > 0
    check_scores(search, search.best_index_)
    view = read_study(search)
    assert view.winner.params == search.best_params_
