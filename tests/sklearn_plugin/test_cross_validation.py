"""Cross-validation with cutoffs, on real fits."""

import math
import time

import numpy as np
import optuna
import pytest
import sklearn
from optuna.trial import TrialState
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold
from sklearn.model_selection import cross_val_score as sklearn_cross_val_score

from f2a_tune import WaitUCBSampler, cross_val_score, optimize
from f2a_tune.outcome import CutoffExceededError, Kind
from f2a_tune.sklearn_plugin import FitTimeoutWarning

X, Y = load_iris(return_X_y=True)
PATIENCE = 60


class Stuck(ClassifierMixin, BaseEstimator):
    """Hangs, or fails, when it is trained with the first row."""

    def __init__(self, seconds=3600.0, fail=False):
        self.seconds = seconds
        self.fail = fail

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        if (X[0] == FIRST_ROW).all():
            if self.fail:
                raise RuntimeError("no luck")
            time.sleep(self.seconds)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


FIRST_ROW = X[0]
FOLDS = KFold(3)  # unshuffled: only the first fold trains without the first row


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_same_scores_as_scikit_learn(n_jobs):
    estimator = LogisticRegression(max_iter=500)
    ours = cross_val_score(estimator, X, Y, n_jobs=n_jobs, scoring="f1_macro")
    assert np.array_equal(ours, sklearn_cross_val_score(estimator, X, Y, scoring="f1_macro"))
    assert isinstance(ours, np.ndarray)
    assert ours.mean() == pytest.approx(0.97, abs=0.05)
    assert [outcome.kind for outcome in ours.outcomes] == [Kind.FINISHED] * 5


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_folds_that_hang_are_given_up(n_jobs):
    begin = time.monotonic()
    with pytest.warns(FitTimeoutWarning, match="2 of 3 fits were given up"):
        scores = cross_val_score(Stuck(), X, Y, cutoff=1.0, cv=FOLDS, n_jobs=n_jobs)
    assert time.monotonic() - begin < PATIENCE
    assert [o.kind for o in scores.outcomes] == [Kind.FINISHED, Kind.GAVE_UP, Kind.GAVE_UP]
    assert np.isnan(scores[1:]).all()
    assert math.isfinite(scores[0])
    with pytest.raises(CutoffExceededError):
        cross_val_score(Stuck(), X, Y, cutoff=0.5, cv=FOLDS, error_score="raise")


def test_folds_that_fail():
    estimator = Stuck(fail=True)
    with pytest.warns(FitFailedWarning, match=r"2 of 3 fits failed.*no luck.*set to -1"):
        scores = cross_val_score(estimator, X, Y, cv=FOLDS, error_score=-1)
    assert scores[1] == -1
    assert scores.outcomes[1].kind is Kind.FAILED
    with pytest.raises(RuntimeError, match="no luck"):
        cross_val_score(estimator, X, Y, cv=FOLDS, error_score="raise")
    with pytest.raises(ValueError, match=r"all 2 fits failed.*no luck"):
        cross_val_score(estimator, X, Y, cv=[(range(100), range(100, 150))] * 2)


def test_groups_and_weights():
    groups = np.arange(len(X)) % 6
    weights = {"sample_weight": np.where(Y == 0, 0.1, 3.0)}
    estimator = LogisticRegression(max_iter=500)
    options = {"cv": GroupKFold(3), "groups": groups, "params": weights}
    assert np.array_equal(
        cross_val_score(estimator, X, Y, **options),
        sklearn_cross_val_score(estimator, X, Y, **options),
    )
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = LogisticRegression(max_iter=500)
        estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        options = {"cv": GroupKFold(3), "params": {"groups": groups, **weights}}
        assert np.array_equal(
            cross_val_score(estimator, X, Y, **options),
            sklearn_cross_val_score(estimator, X, Y, **options),
        )
        with pytest.raises(ValueError, match="groups must be passed in params"):
            cross_val_score(estimator, X, Y, groups=groups)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_trial_gets_its_folds_and_is_pruned_in_time(n_jobs):
    study = optuna.create_study(
        direction="maximize",
        sampler=WaitUCBSampler(seed=0, timeouts=[5.0]),
        pruner=optuna.pruners.NopPruner(),
    )

    def objective(trial):
        hang = trial.suggest_categorical("hang", [True, False])
        seconds = 3600 if hang else 0.0
        estimator = Stuck(seconds=seconds)
        return cross_val_score(estimator, X, Y, trial=trial, cv=FOLDS, n_jobs=n_jobs).mean()

    study.enqueue_trial({"hang": True})
    study.enqueue_trial({"hang": False})
    begin = time.monotonic()
    study.optimize(objective, n_trials=2)
    assert time.monotonic() - begin < PATIENCE
    hung, done = study.trials
    assert hung.state is TrialState.PRUNED
    assert hung.intermediate_values.keys() == {0}
    assert done.state is TrialState.COMPLETE
    assert done.intermediate_values.keys() == {0, 1, 2}


def test_the_pruner_is_asked_after_every_fold():
    study = optuna.create_study(pruner=optuna.pruners.ThresholdPruner(upper=0.0))

    def objective(trial):
        return cross_val_score(LogisticRegression(), X, Y, trial=trial).mean()

    study.optimize(objective, n_trials=1)
    assert study.trials[0].state is TrialState.PRUNED
    assert study.trials[0].intermediate_values.keys() == {0}


def test_inside_optimize_folds_run_in_the_worker():
    def objective(trial):
        c = trial.suggest_float("C", 0.1, 10, log=True)
        return cross_val_score(LogisticRegression(C=c, max_iter=500), X, Y, trial=trial).mean()

    study = optuna.create_study(
        direction="maximize", sampler=WaitUCBSampler(seed=0), pruner=optuna.pruners.NopPruner()
    )
    optimize(study, objective, n_trials=3)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 3
    assert len(study.trials[0].intermediate_values) == 5
    assert study.best_value > 0.9


def test_fixed_trials_have_no_deadline():
    trial = optuna.trial.FixedTrial({})
    assert len(cross_val_score(LogisticRegression(max_iter=500), X, Y, trial=trial)) == 5


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"cutoff": 0}, ValueError, "cutoff"),
        ({"cutoff": "1"}, TypeError, "cutoff"),
        ({"error_score": "ignore"}, ValueError, "error_score must be a number or 'raise'"),
        ({"scoring": "acuracy"}, ValueError, "acuracy"),
        ({"memory": -1}, ValueError, "memory"),
        ({"cv": 1}, ValueError, "n_splits=1"),
    ],
)
def test_bad_input(options, error, words):
    with pytest.raises(error, match=words):
        cross_val_score(LogisticRegression(), X, Y, **options)
