"""`optimize` while the storage fails at times: nothing is lost, and errors keep their cause."""

import time

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from f2a_tune import WaitUCBSampler, optimize
from f2a_tune.optuna_plugin.remote_trial import SLOW_ANSWER_SECONDS, TrialAnswers
from f2a_tune.study.attributes import ERROR, PLAN
from f2a_tune.study.storage_retry import StorageLostError, StorageRetry, retried_storage
from f2a_tune.study.storages import journal_storage


def parabola(trial):
    return trial.suggest_float("x", -1, 1) ** 2


@pytest.fixture
def storage(tmp_path):
    return journal_storage(str(tmp_path / "s.journal"))


def failing_once(storage, method, applies=lambda *args: True):
    """Make a method of a storage fail the first time it applies; returns the failures so far."""
    original, failed = getattr(type(storage), method), []

    def flaky(self, *args, **kwargs):
        if not failed and applies(*args):
            failed.append(method)
            raise OSError("the disk is away")
        return original(self, *args, **kwargs)

    return flaky, failed


@pytest.mark.parametrize("method", ["create_new_trial", "set_trial_param", "get_all_trials"])
def test_a_call_that_fails_once_is_repeated(storage, monkeypatch, method):
    flaky, failed = failing_once(storage, method)
    study = optuna.create_study(storage=storage, sampler=WaitUCBSampler(seed=0))
    monkeypatch.setattr(type(storage), method, flaky)
    optimize(study, parabola, n_trials=3)
    assert failed
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 3


def test_an_enqueued_trial_survives(storage, monkeypatch):
    flaky, failed = failing_once(storage, "set_trial_user_attr", lambda _, key, *rest: key == PLAN)
    study = optuna.create_study(storage=storage, sampler=WaitUCBSampler(seed=0))
    study.enqueue_trial({"x": 0.5})
    monkeypatch.setattr(type(storage), "set_trial_user_attr", flaky)
    optimize(study, parabola, n_trials=2)
    assert failed
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 2
    assert study.trials[0].params == {"x": 0.5}


class Broken(RandomSampler):
    def infer_relative_search_space(self, study, trial):
        raise FileNotFoundError("warmstart.csv")


def test_an_error_of_the_sampler_is_not_taken_for_an_outage(storage):
    study = optuna.create_study(storage=storage, sampler=Broken())
    with pytest.raises(FileNotFoundError, match=r"warmstart\.csv"):
        optimize(study, parabola, n_trials=1, time_budget=60)


class InterruptedInAsk(WaitUCBSampler):
    def before_trial(self, study, trial):
        super().before_trial(study, trial)
        raise KeyboardInterrupt


class InterruptedInSuggest(WaitUCBSampler):
    def sample_independent(self, study, trial, param_name, param_distribution):
        raise KeyboardInterrupt


@pytest.mark.parametrize("sampler", [InterruptedInAsk, InterruptedInSuggest])
def test_a_trial_that_was_opened_when_interrupted_is_closed(storage, sampler):
    study = optuna.create_study(storage=storage, sampler=sampler(seed=0))
    with pytest.raises(KeyboardInterrupt):
        optimize(study, parabola, n_trials=1, time_budget=60)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL]
    assert study.trials[0].user_attrs[ERROR].endswith("the study was interrupted")


def test_nobody_waits_after_an_interrupt():
    def gone():
        raise OSError("gone")

    retry = StorageRetry()
    retry.stop()
    with pytest.raises(StorageLostError, match="gone"):
        retry(gone)


def test_the_storage_is_left_as_it_was(storage):
    study = optuna.create_study(storage=storage)
    before = dict(vars(storage))
    with retried_storage(study, StorageRetry()), retried_storage(study, StorageRetry()):
        assert vars(storage).keys() > before.keys()
    assert vars(storage) == before


class SlowTrial:
    def report(self, value, step):
        time.sleep(2 * SLOW_ANSWER_SECONDS)


def test_a_trial_is_not_charged_for_slow_answers():
    answers = TrialAnswers(SlowTrial())
    assert answers.more_seconds() == 0.0
    answers(("report", (1.0, 0), {}))
    assert answers.more_seconds() >= 2 * SLOW_ANSWER_SECONDS
    assert answers.more_seconds() == 0.0
