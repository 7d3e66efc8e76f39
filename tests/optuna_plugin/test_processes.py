"""Several processes on one study in PostgreSQL, one of which is killed."""

import os
import subprocess
import sys
import textwrap
import time

import optuna
import pytest
from optuna.trial import TrialState

from f2a_tune import WaitUCBSampler, cutoff_of, optimize
from f2a_tune.study import history, trial_clock
from f2a_tune.study.stale_trials import close_stale_trials
from f2a_tune.study.trial_plan import TrialPlan
from tests.postgres import PostgresServer, program_folder

pytestmark = pytest.mark.slow

PATIENCE = 90

WORKER = """
    import sys, time
    import optuna
    from f2a_tune import WaitUCBSampler, optimize

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        print("begun", trial.number, flush=True)
        time.sleep(SECONDS)
        return x

    study = optuna.load_study(
        storage=URL, study_name=NAME, sampler=WaitUCBSampler(seed=0, timeouts=[TIMEOUT])
    )
    optimize(study, objective, n_trials=TRIALS)
"""


def worker(url, name, *, seconds, timeout, trials):
    code = textwrap.dedent(WORKER)
    for key, value in {
        "URL": url, "NAME": name, "SECONDS": seconds, "TIMEOUT": timeout, "TRIALS": trials
    }.items():  # fmt: skip
        code = code.replace(key, repr(value))
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def plans(study):
    return [TrialPlan.from_attributes(trial.user_attrs) for trial in study.trials]


def test_workers_with_the_same_seed_never_draw_the_same(postgres, study_name):
    study = optuna.create_study(storage=postgres.url, study_name=study_name)
    both = [
        worker(postgres.url, study_name, seconds=0.05, timeout=20, trials=12) for _ in range(2)
    ]
    for process in both:
        assert process.wait(PATIENCE) == 0
        process.stdout.close()
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 24
    assert len({trial.params["x"] for trial in study.trials}) >= 23
    assert len({plan.player for plan in plans(study)}) == 2


def test_running_trials_of_others_are_pending(postgres, study_name):
    options = {"storage": postgres.url, "study_name": study_name}
    ours = optuna.create_study(**options, sampler=WaitUCBSampler(seed=0))
    theirs = optuna.load_study(**options, sampler=WaitUCBSampler(seed=0))
    first = theirs.ask()
    first.suggest_float("x", 0, 1)
    second = ours.ask()
    assert second.suggest_float("x", 0, 1) != first.params["x"]
    race = ours.sampler._history(ours).race
    assert set(race.in_flight) == {first.number, second.number}
    theirs.tell(first, 1.0)
    third = ours.ask()
    assert set(race.in_flight) == {second.number, third.number}


def test_the_trial_of_a_killed_worker_is_declared_dead(postgres, study_name, monkeypatch):
    monkeypatch.setattr(history, "STALE_TRIAL_SECONDS", 1.0)
    study = optuna.create_study(storage=postgres.url, study_name=study_name)
    process = worker(postgres.url, study_name, seconds=3600, timeout=3.0, trials=1)
    assert "begun 0" in process.stdout.readline()
    process.kill()
    process.wait(PATIENCE)
    process.stdout.close()
    (lost,) = study.trials
    assert lost.state is TrialState.RUNNING
    assert cutoff_of(lost) == 3.0
    found, begin = [], time.monotonic()
    while not found and time.monotonic() - begin < PATIENCE:
        found = close_stale_trials(study)
        time.sleep(0.2)
    assert found == [0]
    (lost,) = study.trials
    assert lost.state is TrialState.FAIL
    assert lost.user_attrs["f2a:error"] == "its worker crashed"
    assert (lost.datetime_complete - lost.datetime_start).total_seconds() >= 4.0
    assert lost.user_attrs["f2a:seconds"] == 3.0


def test_optimize_buries_the_dead_of_others(postgres, study_name, monkeypatch):
    study = optuna.create_study(
        storage=postgres.url, study_name=study_name, sampler=WaitUCBSampler(timeouts=[5])
    )
    hard, soft = study.ask(), study.ask()
    for trial in (hard, soft):  # as in another process
        trial_clock.stop(study, trial)
    plan = TrialPlan(cutoff_seconds=5.0, hard=True, number=hard.number)
    hard.set_user_attr("f2a:pull", plan.to_attribute())
    monkeypatch.setattr(history, "STALE_TRIAL_SECONDS", 1e9)
    optimize(study, lambda trial: 1.0, n_trials=1)
    assert study.trials[0].state is TrialState.RUNNING
    monkeypatch.setattr(history, "STALE_TRIAL_SECONDS", -1e9)
    optimize(study, lambda trial: 1.0, n_trials=1)
    assert study.trials[hard.number].state is TrialState.FAIL
    # Without a hard cutoff its process may be alive and well.
    assert study.trials[soft.number].state is TrialState.RUNNING


@pytest.mark.parametrize("kind", ["journal"])
def test_kills_leave_a_journal_whole(tmp_path, kind):
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    path = str(tmp_path / kind)
    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(path)),
        study_name="s",
        sampler=WaitUCBSampler(seed=0, timeouts=[0.2]),
    )

    def objective(trial):
        step = 0
        while True:
            trial.report(float(step), step)
            step += 1

    optimize(study, objective, n_trials=8)
    again = optuna.load_study(storage=JournalStorage(JournalFileBackend(path)), study_name="s")
    assert [trial.state for trial in again.trials] == [TrialState.PRUNED] * 8
    assert all(trial.intermediate_values for trial in again.trials)


def test_a_database_that_is_gone_for_seconds():
    """PostgreSQL is stopped in the middle of `optimize`, and started again."""
    if program_folder() is None and not os.environ.get("CI"):
        pytest.skip("no PostgreSQL server is installed here")
    server = PostgresServer()
    try:
        optuna.create_study(storage=server.url, study_name="s")
        process = worker(server.url, "s", seconds=0.1, timeout=20, trials=60)
        for _ in range(5):
            process.stdout.readline()
        server.stop()
        time.sleep(3)
        server.start()
        process.stdout.read()
        assert process.wait(PATIENCE) == 0
        process.stdout.close()
        study = optuna.load_study(storage=server.url, study_name="s")  # a new connection
        states = [trial.state for trial in study.trials]
        # A trial that was being created when the database stopped may be left without an owner.
        assert states.count(TrialState.COMPLETE) >= 58
        assert len(states) <= 62
    finally:
        server.close()
