"""`optimize` with real processes that are really killed."""

import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import optuna
import pytest
from optuna.trial import TrialState

import f2a_tune
from f2a_tune import (
    WaitUCBPruner,
    WaitUCBSampler,
    best_configuration,
    budget_summary,
    cutoff_of,
    optimize,
)
from tests.conftest import STORAGES
from tests.optuna_plugin.virtual import needs_constraints

# Machines of continuous integration are slow and busy: only hanging for ever must not pass.
PATIENCE = 60


def states(study):
    return [trial.state for trial in study.trials]


@pytest.mark.parametrize(
    "storage",
    ["memory", "sqlite", *(pytest.param(k, marks=pytest.mark.slow) for k in STORAGES[2:])],
    indirect=True,
)
def test_trials_that_hang_are_killed_and_the_whole_ends_on_time(storage, study_name):
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.report(x, 0)
        if x > 0.6:
            time.sleep(3600)
        return x

    study = optuna.create_study(
        storage=storage(), study_name=study_name, sampler=WaitUCBSampler(seed=1, timeouts=[0.6])
    )
    begin = time.monotonic()
    optimize(study, objective, time_budget=12)
    assert time.monotonic() - begin < PATIENCE
    study = optuna.load_study(storage=storage(), study_name=study_name)
    assert set(states(study)) == {TrialState.COMPLETE, TrialState.PRUNED}
    killed = study.get_trials(states=[TrialState.PRUNED])
    for trial in killed:
        assert trial.user_attrs["f2a:outcome"] == "gave_up"
        if trial.number < len(study.trials) - 1:  # the last one ends with the budget
            assert trial.user_attrs["f2a:seconds"] >= 0.6 * 0.99
    # Kept, though killed; on a busy machine some may be killed before they have said anything.
    kept = [trial for trial in killed if trial.intermediate_values]
    assert kept
    assert all(trial.intermediate_values == {0: trial.params["x"]} for trial in kept)
    summary = budget_summary(study)
    assert summary.n_given_up == states(study).count(TrialState.PRUNED)
    assert summary.total_seconds == pytest.approx(12, abs=PATIENCE)
    assert summary.total_seconds == pytest.approx(
        summary.finished_seconds
        + summary.given_up_seconds
        + summary.failed_seconds
        + summary.overhead_seconds
    )


def test_the_budget_ends_a_trial_of_any_sampler():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    begin = time.monotonic()
    optimize(study, lambda trial: time.sleep(3600), time_budget=10)
    assert time.monotonic() - begin < PATIENCE
    assert states(study) == [TrialState.PRUNED]
    assert 0 < cutoff_of(study.trials[0]) < 10
    assert budget_summary(study).n_given_up == 1


def test_the_full_interface_of_a_trial():
    def objective(trial):
        assert isinstance(trial, optuna.trial.BaseTrial)
        x = trial.suggest_float("x", 0, 1, step=0.25)
        n = trial.suggest_int("n", 1, 64, log=True)
        kind = trial.suggest_categorical("kind", ["a", None, 1.5, True])
        trial.set_user_attr("note", {"x": x})
        trial.report(x, step=1)
        assert trial.params == {"x": x, "n": n, "kind": kind}
        assert set(trial.distributions) == {"x", "n", "kind"}
        assert trial.user_attrs["note"] == {"x": x}
        assert trial.datetime_start is not None
        assert trial.should_prune() is False
        assert cutoff_of(trial) == 20
        return float(trial.number)

    study = optuna.create_study(
        sampler=WaitUCBSampler(seed=0, timeouts=[20]), pruner=optuna.pruners.NopPruner()
    )
    optimize(study, objective, n_trials=8)
    assert [trial.value for trial in study.trials] == list(range(8))
    assert all(trial.user_attrs["note"]["x"] == trial.params["x"] for trial in study.trials)


@needs_constraints
def test_constraints_of_a_trial():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("c", x - 0.5)
        assert trial.constraints == {"c": x - 0.5}
        return x

    study = optuna.create_study()
    optimize(study, objective, n_trials=4)
    assert all(t.constraints == {"c": t.params["x"] - 0.5} for t in study.trials)


def test_what_a_remote_trial_cannot_do_is_said():
    def objective(trial):
        trial.study.enqueue_trial({"x": 1})

    study = optuna.create_study()
    with pytest.raises(AttributeError, match="the objective runs in a worker process"):
        optimize(study, objective, n_trials=1)


def test_errors_of_suggest_are_raised_in_the_objective():
    def objective(trial):
        with pytest.raises(ValueError, match="low"):
            trial.suggest_float("x", 2, 1)
        return 1.0

    study = optuna.create_study()
    optimize(study, objective, n_trials=1)
    assert states(study) == [TrialState.COMPLETE]


def test_pruning_by_the_objective():
    def objective(trial):
        trial.report(5.0, 0)
        raise optuna.TrialPruned("enough")

    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    optimize(study, objective, n_trials=2)
    assert states(study) == [TrialState.PRUNED] * 2
    assert study.trials[0].value == 5.0
    assert "f2a:error" not in study.trials[0].user_attrs
    assert budget_summary(study).n_pruned == 2


def test_the_pruner_is_asked_from_the_worker():
    def objective(trial):
        while not trial.should_prune():
            time.sleep(0.01)
        raise optuna.TrialPruned

    study = optuna.create_study(
        sampler=WaitUCBSampler(seed=0, timeouts=[0.2]), pruner=WaitUCBPruner()
    )
    optimize(study, objective, n_trials=2)
    assert states(study) == [TrialState.PRUNED] * 2


@pytest.mark.parametrize(
    ("crash", "words"),
    [
        ("import os; os._exit(3)", "exit code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("bytearray(1 << 50)", "MemoryError"),
    ],
)
def test_a_crashed_worker_is_a_failed_trial_and_no_more(crash, words):
    def objective(trial):
        if trial.number == 0:
            exec(crash)
        return 1.0

    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    optimize(study, objective, n_trials=3)
    assert states(study) == [TrialState.FAIL, TrialState.COMPLETE, TrialState.COMPLETE]
    assert words in study.trials[0].user_attrs["f2a:error"]


def test_memory_is_limited():
    def objective(trial):
        return float(len(bytearray(1 << 30)))

    study = optuna.create_study()
    optimize(study, objective, n_trials=1, memory=100 << 20)
    assert states(study) == [TrialState.FAIL]
    assert study.trials[0].user_attrs["f2a:outcome"] == "out_of_memory"


class OwnError(Exception):
    pass


def test_errors_of_the_objective_end_it_unless_caught():
    def objective(trial):
        if trial.number == 1:
            raise OwnError("of mine")
        return 1.0

    study = optuna.create_study()
    with pytest.raises(OwnError, match="of mine"):
        optimize(study, objective, n_trials=4)
    assert states(study) == [TrialState.COMPLETE, TrialState.FAIL]
    study = optuna.create_study()
    optimize(study, objective, n_trials=4, catch=OwnError)
    assert len(study.trials) == 4
    assert "of mine" in study.trials[1].user_attrs["f2a:error"]


@pytest.mark.parametrize("value", [float("nan"), None, "text", [1, 2]])
def test_values_that_are_no_numbers_are_failures(value):
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimize(study, lambda trial: value, n_trials=2)
    assert states(study) == [TrialState.FAIL] * 2


def test_callbacks_stop_and_number_of_trials():
    seen = []

    def callback(study, trial):
        seen.append((trial.number, trial.state))
        if trial.number == 2:
            study.stop()

    study = optuna.create_study()
    optimize(study, lambda trial: 1.0, n_trials=50, callbacks=[callback])
    assert seen == [(number, TrialState.COMPLETE) for number in range(3)]
    optimize(study, lambda trial: 1.0, n_trials=0)
    assert len(study.trials) == 3


def test_several_players():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        time.sleep(0.05)
        return os.getpid() + 0 * x

    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    optimize(study, objective, n_trials=12, n_jobs=3)
    assert states(study) == [TrialState.COMPLETE] * 12
    assert len({trial.value for trial in study.trials}) >= 2
    assert len({trial.params["x"] for trial in study.trials}) == 12
    with pytest.raises(ZeroDivisionError):
        optimize(study, lambda trial: 1 / 0, n_trials=12, n_jobs=3)
    assert TrialState.RUNNING not in states(study)


def test_data_and_settings_reach_the_worker():
    import numpy as np
    import sklearn

    data = np.arange(10_000.0)

    def objective(trial):
        assert sklearn.get_config()["assume_finite"] is True
        return float(data.sum())

    study = optuna.create_study()
    with sklearn.config_context(assume_finite=True):
        optimize(study, objective, n_trials=2)
    assert study.best_value == data.sum()


def test_trials_are_logged_and_shown(capsys):
    def objective(trial):
        if trial.number == 1:
            trial.suggest_float("x", 0, 1)
        if trial.number > 0:
            time.sleep(3600)
        return 1.0

    study = optuna.create_study(sampler=WaitUCBSampler(seed=0, timeouts=[0.5]))
    f2a_tune.logging.set_verbosity(f2a_tune.logging.INFO)
    optimize(study, objective, n_trials=3, show_progress_bar=True)
    shown = capsys.readouterr().err
    assert re.search(r"\[I 20.*\] Trial 0 finished with value: 1.0 and parameters: {}", shown)
    assert "Trial 1 given up at its cutoff, 0.5" in shown
    assert re.search(r"Trial 2 given up after .* s, before it used the trial object", shown)
    assert "best trial 0: 1" in shown


def test_no_process_or_thread_stays():
    study = optuna.create_study()
    threads = threading.active_count()
    optimize(study, lambda trial: 1.0, n_trials=3, n_jobs=2)
    children = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True
    ).stdout
    assert "f2a_tune" not in children
    assert threading.active_count() <= threads + 1


SCRIPT = """
    import time
    import optuna
    from f2a_tune import WaitUCBSampler, optimize

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        print("begun", trial.number, flush=True)
        if trial.number >= 3:
            time.sleep(3600)
        return x

    study = optuna.create_study(
        storage=STORAGE, study_name="s", sampler=WaitUCBSampler(timeouts=[1000]),
        load_if_exists=True,
    )
    optimize(study, objective, n_trials=50, n_jobs=JOBS)
"""


def started(url, jobs=1):
    code = textwrap.dedent(SCRIPT).replace("STORAGE", repr(url)).replace("JOBS", str(jobs))
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while "begun 3" not in process.stdout.readline():
        assert process.poll() is None, process.stderr.read()
    return process


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_closes_the_open_trials(tmp_path, jobs):
    url = f"sqlite:///{tmp_path}/study.db"
    process = started(url, jobs)
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)
    assert "KeyboardInterrupt" in process.stderr.read()
    study = optuna.load_study(storage=url, study_name="s")
    assert TrialState.RUNNING not in states(study)
    assert states(study).count(TrialState.COMPLETE) >= 4 - jobs
    assert states(study)[3] is TrialState.FAIL


def test_sigkill_loses_the_open_trial_only(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    process = started(url)
    process.kill()
    process.wait(PATIENCE)
    study = optuna.load_study(storage=url, study_name="s", sampler=WaitUCBSampler(seed=5))
    assert states(study) == [TrialState.COMPLETE] * 3 + [TrialState.RUNNING]
    optimize(study, lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    assert len({t.params["x"] for t in study.get_trials(states=[TrialState.COMPLETE])}) == 6
    assert best_configuration(study).n_evaluations == 1


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"time_budget": 0}, ValueError, "time_budget must be a finite number above 0, got 0"),
        ({"time_budget": -3}, ValueError, "time_budget"),
        ({"time_budget": "soon"}, ValueError, "time_budget must be a number of seconds or a du"),
        ({"time_budget": math.nan}, ValueError, "time_budget"),
        ({"n_trials": -1}, ValueError, "n_trials"),
        ({"n_trials": 1.5}, ValueError, "n_trials"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"catch": (1,)}, TypeError, "catch must be exception classes"),
        ({"memory": 0}, ValueError, "memory"),
    ],
)
def test_bad_input(options, error, words):
    study = optuna.create_study()
    with pytest.raises(error, match=words):
        optimize(study, lambda trial: 1.0, **options)
    assert study.trials == []


def test_an_objective_that_cannot_be_sent():
    lock = threading.Lock()

    def objective(trial):
        with lock:
            return 1.0

    study = optuna.create_study()
    with pytest.raises(TypeError, match=r"objective=.*open files, locks and connections inside"):
        optimize(study, objective, n_trials=1)
    with pytest.raises(TypeError, match="objective must be callable"):
        optimize(study, 3, n_trials=1)
    assert study.trials == []


def test_several_objectives_are_refused():
    study = optuna.create_study(directions=["minimize"] * 2)
    with pytest.raises(ValueError, match="several objectives"):
        optimize(study, lambda trial: (1.0, 2.0), n_trials=1)
