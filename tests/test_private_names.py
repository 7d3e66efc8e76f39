"""Tests each private name of Optuna and scikit-learn that we use: a moved one fails here."""

import threading

import joblib
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from f2a_tune.runtime import joblib_backend
from f2a_tune.sklearn_plugin import sklearn_private
from f2a_tune.study import optuna_private
from tests.optuna_plugin.virtual import needs_constraints


@pytest.fixture
def study():
    return optuna.create_study()


def test_storage_and_numbers(study):
    trial = study.ask()
    storage = optuna_private.storage_of(study)
    assert storage.get_study_name_from_id(optuna_private.study_id_of(study)) == study.study_name
    assert storage.get_trial(optuna_private.trial_id_of(trial)).number == trial.number
    frozen = storage.get_trial(optuna_private.trial_id_of(trial))
    assert optuna_private.trial_id_of(frozen) == optuna_private.trial_id_of(trial)


def test_trials(study):
    study.ask()
    study.tell(study.ask(), 1.0)
    assert [trial.number for trial in optuna_private.all_trials(study)] == [0, 1]
    assert [trial.number for trial in optuna_private.open_trials(study)] == [0]


@pytest.mark.parametrize(
    ("distribution", "inside", "outside"),
    [
        (FloatDistribution(0, 1), 0.5, 1.5),
        (FloatDistribution(0, 1), 1, "a"),
        (IntDistribution(1, 9, step=2), 3, 4),
        (CategoricalDistribution(["a", None, 1.5]), None, "b"),
    ],
)
def test_contains(distribution, inside, outside):
    assert optuna_private.contains(distribution, inside)
    assert not optuna_private.contains(distribution, outside)


def test_a_study_with_other_trials(study):
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=12)
    other = optuna_private.study_with_trials(study, lambda trials: trials[:4])
    assert [trial.number for trial in other.trials] == [0, 1, 2, 3]
    assert other.get_trials(states=(TrialState.FAIL,)) == []
    assert other.direction is study.direction
    sampler = optuna.samplers.TPESampler(n_startup_trials=2, multivariate=True, seed=0)
    trial = study.ask()
    space = sampler.infer_relative_search_space(other, study.trials[-1])
    assert "x" in sampler.sample_relative(other, study.trials[-1], space)
    study.tell(trial, state=TrialState.FAIL)


def test_multi_objective(study):
    assert not optuna_private.is_multi_objective(study)
    several = optuna.create_study(directions=["minimize"] * 2)
    assert optuna_private.is_multi_objective(several)
    sampler = optuna.samplers.RandomSampler()
    optuna_private.check_one_objective(sampler, study)
    with pytest.raises(ValueError, match="multi-objective"):
        optuna_private.check_one_objective(sampler, several)


def test_fixed_params(study):
    study.enqueue_trial({"x": 3})
    storage = optuna_private.storage_of(study)
    frozen = storage.get_trial(optuna_private.trial_id_of(study.ask()))
    assert optuna_private.fixed_params_of(frozen) == {"x": 3}
    frozen = storage.get_trial(optuna_private.trial_id_of(study.ask()))
    assert optuna_private.fixed_params_of(frozen) == {}


def test_stop_works_inside_a_loop_only(study):
    with pytest.raises(RuntimeError):
        study.stop()
    with optuna_private.optimize_loop(study):
        study.stop()
        assert optuna_private.stop_requested(study)
        with pytest.raises(RuntimeError, match="Nested"):
            study.optimize(lambda trial: 1.0, n_trials=1)
        with pytest.raises(RuntimeError, match="Nested"), optuna_private.optimize_loop(study):
            pass
    optuna_private.forget_stop(study)
    assert not optuna_private.stop_requested(study)
    study.optimize(lambda trial: 1.0, n_trials=1)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_heartbeat(tmp_path):
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/study.db", heartbeat_interval=1)
    study = optuna.create_study(storage=storage)
    before = threading.active_count()
    with optuna_private.optimize_loop(study):
        trial = study.ask()
        with optuna_private.heartbeat(study, trial):
            assert threading.active_count() == before + 1
    memory = optuna.create_study()
    with optuna_private.heartbeat(memory, memory.ask()):
        assert threading.active_count() == before
    study.tell(trial, state=TrialState.FAIL)


def test_release_session(tmp_path):
    study = optuna.create_study(storage=f"sqlite:///{tmp_path}/study.db")
    optuna_private.release_session(study)
    study.tell(study.ask(), 1.0)
    optuna_private.release_session(optuna.create_study())


def test_fit_and_score():
    import numpy as np
    from sklearn.dummy import DummyClassifier
    from sklearn.metrics import check_scoring

    X, y = np.zeros((10, 1)), np.array([0, 1] * 5)
    estimator = DummyClassifier()
    options = {
        "scorer": check_scoring(estimator),
        "train": np.arange(8),
        "test": np.arange(8, 10),
        "fit_params": {"sample_weight": np.ones(10)},
        "score_params": {},
    }
    found = sklearn_private.fit_and_score(
        estimator, X, y, parameters={"strategy": "prior"}, **options
    )
    assert found["test_scores"] == 0.5
    assert found["n_test_samples"] == 2
    assert found["fit_time"] >= 0
    found = sklearn_private.fit_and_score(
        estimator, X, y, parameters=None, return_train_score=True, **options
    )
    assert found["train_scores"] == 0.5
    with pytest.raises(ValueError, match="strategy"):
        sklearn_private.fit_and_score(estimator, X, y, parameters={"strategy": "none"}, **options)


def test_a_running_trial_is_created_from_a_template(study):
    template = optuna.trial.create_trial(
        state=optuna.trial.TrialState.RUNNING,
        params={"x": 0.25},
        distributions={"x": FloatDistribution(0, 1)},
        user_attrs={"a": 1},
        intermediate_values={0: 1.0},
    )
    begun = optuna_private.begin_trial(study, template)
    assert begun.number == 0
    (seen,) = study.trials
    assert (seen.params, seen.user_attrs) == ({"x": 0.25}, {"a": 1})
    assert seen.state is optuna.trial.TrialState.RUNNING
    begun.report(1.0, 1)
    study.tell(begun, 2.0)
    assert study.trials[0].intermediate_values == {0: 1.0, 1: 1.0}


def test_a_trial_is_closed_once_in_one_write(tmp_path):
    study = optuna.create_study(storage=f"sqlite:///{tmp_path}/study.db")
    pruned, complete = study.ask(), study.ask()
    pruned.report(0.5, 0)
    optuna_private.close_trial(study, pruned, optuna.trial.TrialState.PRUNED, 0.5)
    optuna_private.close_trial(study, complete, optuna.trial.TrialState.COMPLETE, 0.7)
    optuna_private.close_trial(study, complete, optuna.trial.TrialState.FAIL, None)  # too late
    assert [trial.state.name for trial in study.trials] == ["PRUNED", "COMPLETE"]
    assert [trial.value for trial in study.trials] == [0.5, 0.7]
    assert all(trial.datetime_complete is not None for trial in study.trials)
    assert study.best_value == 0.7


def test_the_backend_that_somebody_chose():
    assert joblib_backend.chosen_backend() is None
    with joblib.parallel_config(backend="threading"):
        assert joblib_backend.chosen_backend() is None
    with joblib.parallel_config(backend="loky"):
        assert joblib_backend.chosen_backend() == "LokyBackend"


def test_storages_without_their_cache(tmp_path):
    storage = optuna.storages.get_storage(f"sqlite:///{tmp_path}/study.db")
    assert isinstance(optuna_private.shared_storage(storage), optuna.storages.RDBStorage)
    memory = optuna.storages.InMemoryStorage()
    assert optuna_private.shared_storage(memory) is memory


def test_journal_files_and_their_locks(tmp_path):
    path = str(tmp_path / "study.journal")
    journal = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))
    assert optuna_private.journal_path(journal) == path
    assert optuna_private.journal_path(optuna.storages.InMemoryStorage()) is None
    with optuna_private.journal_lock(journal):
        assert (tmp_path / "study.journal.lock").is_symlink()


@needs_constraints
def test_constraints(study):
    feasible, not_feasible, free = study.ask(), study.ask(), study.ask()
    feasible.set_constraint("a", -1.0)
    not_feasible.set_constraint("a", -1.0)
    not_feasible.set_constraint("b", 0.5)
    for trial in (feasible, not_feasible, free):
        study.tell(trial, 1.0)
    assert [optuna_private.is_feasible(trial) for trial in study.trials] == [True, False, True]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_has_heartbeat(study, tmp_path):
    assert not optuna_private.has_heartbeat(study)
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/study.db", heartbeat_interval=1)
    assert optuna_private.has_heartbeat(optuna.create_study(storage=storage))


def test_what_a_search_needs_of_its_base_class():
    from sklearn.dummy import DummyClassifier
    from sklearn.model_selection import GridSearchCV

    assert issubclass(GridSearchCV, sklearn_private.base_search_cv())
    search = GridSearchCV(DummyClassifier(), {}, scoring=["accuracy", "f1"], refit="f1")
    scorers, metric = sklearn_private.scorers_of(search)
    assert metric == "f1"
    assert set(sklearn_private.scorers_by_name(scorers)) == {"accuracy", "f1"}
    single, metric = sklearn_private.scorers_of(GridSearchCV(DummyClassifier(), {}))
    assert metric == "score"
    assert sklearn_private.scorers_by_name(single) is single
    params = sklearn_private.checked_params(
        [[0], [1]], {"sample_weight": [1, 2], "groups": [0, 1]}
    )
    routed = sklearn_private.routed_for_fit(GridSearchCV(DummyClassifier(), {}), params)
    assert list(routed.estimator.fit) == ["sample_weight"]
    assert routed.splitter.split == {"groups": [0, 1]}
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        sklearn_private.check_refit_for_multimetric(search, {"other": 1})
    table = {"rank_test_f1": __import__("numpy").array([2, 1]), "params": [{}, {}]}
    assert sklearn_private.best_index_of(search, "f1", table) == 1
    root = sklearn_private.callback_root(search, 2)
    assert root is None or hasattr(root, "subcontext")


def test_fit_context_checks_parameters():
    from sklearn.base import BaseEstimator

    class Checked(BaseEstimator):
        _parameter_constraints = {"depth": [int]}  # noqa: RUF012

        def __init__(self, depth=1):
            self.depth = depth

        @sklearn_private.fit_context()
        def fit(self, X, y=None):
            return self

    assert Checked().fit([[0]]).depth == 1
    with pytest.raises(ValueError, match="depth"):
        Checked("deep").fit([[0]])
