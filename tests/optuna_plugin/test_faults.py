"""Faults that a careful reader found: each has its test."""

import inspect
import math
import os
import random
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import GridSampler, RandomSampler
from optuna.trial import TrialState, create_trial

from f2a_tune import (
    WaitUCBPruner,
    WaitUCBSampler,
    best_configuration,
    budget_summary,
    cross_val_score,
    cutoff_of,
    optimize,
)
from f2a_tune.study import stale_trials
from f2a_tune.study.attributes import PLAN, SECONDS
from f2a_tune.study.stale_trials import close_stale_trials
from f2a_tune.study.trial_plan import TrialPlan
from tests.optuna_plugin.virtual import needs_constraints, run


def states(study):
    return [trial.state for trial in study.trials]


def test_trials_added_by_hand_say_nothing_about_waiting():
    study = optuna.create_study(sampler=WaitUCBSampler(base_sampler=RandomSampler(seed=0)))
    for x in range(6):
        study.add_trial(
            create_trial(
                value=1.0, params={"x": x / 10}, distributions={"x": FloatDistribution(0, 1)}
            )
        )
    assert cutoff_of(study.ask()) == math.inf
    assert study.sampler._history(study).race.ledger.n_scored == 6


def test_a_trial_pruned_at_its_cutoff_in_a_worker_counts_as_given_up():
    def objective(trial):
        trial.suggest_float("x", 0, 1)
        while not trial.should_prune():
            time.sleep(0.01)
        raise optuna.TrialPruned

    study = optuna.create_study(
        sampler=WaitUCBSampler(seed=0, timeouts=[0.5]), pruner=WaitUCBPruner()
    )
    optimize(study, objective, n_trials=3)
    assert budget_summary(study).n_given_up == 3
    assert all(trial.user_attrs[SECONDS] >= 0.4 for trial in study.trials)


def test_failures_before_the_first_parameter_do_not_close_the_space():
    study = optuna.create_study(sampler=WaitUCBSampler(base_sampler=RandomSampler(seed=0)))
    for _ in range(15):
        study.tell(study.ask(), state=TrialState.FAIL)
    for _ in range(15):
        study.enqueue_trial({"x": 0.5}, skip_if_exists=False)
    run(study, 15, lambda _: 1.0, lambda p: p["x"])
    run(study, 30, lambda p: 1.0 if p["x"] < 0.8 else 1e6, lambda p: p["x"])
    assert len({trial.params["x"] for trial in study.trials[30:]}) == 30


def test_a_trial_that_somebody_closed_does_not_end_the_search():
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))

    def objective(trial):
        time.sleep(0.5)
        return 1.0

    def meddle(study, trial):
        study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)

    original = study.ask

    def ask():
        trial = original()
        if trial.number == 1:
            meddle(study, trial)
        return trial

    study.ask = ask
    optimize(study, objective, n_trials=3)
    assert states(study) == [TrialState.COMPLETE, TrialState.FAIL, TrialState.COMPLETE]


def test_own_trials_are_never_buried(monkeypatch):
    monkeypatch.setattr("f2a_tune.study.history.STALE_TRIAL_SECONDS", -1e9)
    study = optuna.create_study(sampler=WaitUCBSampler(timeouts=[1]))
    trial = study.ask()
    trial.set_user_attr(PLAN, TrialPlan(cutoff_seconds=1.0, hard=True, number=0).to_attribute())
    assert close_stale_trials(study) == []


class Awkward(Exception):
    """Pickles, but does not unpickle."""

    def __init__(self, code, message):
        super().__init__(message)


class AwkwardPruned(optuna.TrialPruned):
    def __init__(self, code, message):
        super().__init__(message)


def test_exceptions_that_do_not_unpickle_are_still_exceptions():
    def objective(trial):
        raise Awkward(1, "of mine")

    study = optuna.create_study()
    with pytest.raises(Exception, match="of mine"):
        optimize(study, objective, n_trials=5)
    assert states(study) == [TrialState.FAIL]
    study = optuna.create_study()
    optimize(study, objective, n_trials=3, catch=Awkward)
    assert states(study) == [TrialState.FAIL] * 3

    def prune(trial):
        raise AwkwardPruned(1, "enough")

    study = optuna.create_study()
    optimize(study, prune, n_trials=2)
    assert states(study) == [TrialState.PRUNED] * 2


def test_a_rebuilt_ledger_has_evaluations_where_they_were():
    study = optuna.create_study(
        sampler=WaitUCBSampler(
            base_sampler=RandomSampler(seed=0), evaluations_per_configuration=4, timeouts=[1, 8]
        )
    )
    turn = iter(range(1000))
    run(study, 60, lambda p: 100.0 if next(turn) % 3 == 1 else 0.5, lambda p: p["x"])
    study.ask()
    live = study.sampler._history(study).race.ledger
    again = WaitUCBSampler(evaluations_per_configuration=4, timeouts=[1, 8])
    study.sampler = again
    study.ask()
    rebuilt = again._history(study).race.ledger
    rows = min(live.n, rebuilt.n)
    first, second = live.scores[:rows], rebuilt.scores[:rows]
    assert sorted(map(str, first.tolist())) == sorted(map(str, second.tolist()))


def test_grid_sampler_as_base():
    for n_cells in (4, 9, 16):
        grid = GridSampler({"x": [i / n_cells for i in range(n_cells)]}, seed=0)
        study = optuna.create_study(
            sampler=WaitUCBSampler(base_sampler=grid, evaluations_per_configuration=3)
        )
        study.optimize(lambda t: t.suggest_float("x", 0, 1) + 0.1 * (t.number % 3), n_trials=60)


def test_copied_attributes_are_not_a_plan():
    study = optuna.create_study(sampler=WaitUCBSampler(timeouts=[0.5, 1000]))
    run(study, 10, lambda _: 100.0, lambda p: p["x"])
    old = study.trials[-1]
    copied = {**old.user_attrs, PLAN: {**old.user_attrs[PLAN], "cutoff_seconds": 0.05}}
    study.enqueue_trial(old.params, user_attrs=copied, skip_if_exists=False)
    trial = study.ask()
    assert cutoff_of(trial) in (0.5, 1000)
    trial.suggest_float("x", 0, 1)
    study.tell(trial, 1.0)
    assert study.trials[-1].user_attrs[SECONDS] != old.user_attrs[SECONDS]


@needs_constraints
def test_constraints_are_kept():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("at least a half", 0.5 - x)
        return x

    study = optuna.create_study(sampler=WaitUCBSampler(base_sampler=RandomSampler(seed=0)))
    study.optimize(objective, n_trials=30)
    assert best_configuration(study).trial_numbers == (study.best_trial.number,)


def test_an_interrupted_question_does_not_shift_the_answers():
    def objective(trial):
        armed = []

        def alarm(number, frame):
            if armed:
                raise TimeoutError

        signal.signal(signal.SIGALRM, alarm)
        moments = random.Random(trial.number)
        for step in range(2000):
            with suppress(TimeoutError):
                try:
                    armed.append(True)
                    signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-5, 4e-4))
                    trial.report(float(step), step)
                finally:
                    armed.clear()
            armed.clear()
        return trial.suggest_float("x", 5, 6)

    study = optuna.create_study()
    optimize(study, objective, n_trials=2)
    assert all(5 <= trial.value <= 6 for trial in study.trials)


def relu():
    return "relu"


def tanh():
    return "tanh"


def test_choices_may_be_functions():
    class Marker:
        pass

    markers = [Marker(), Marker()]

    def objective(trial):
        function = trial.suggest_categorical("function", [relu, tanh])
        assert trial.suggest_categorical("marker", markers) in markers
        return float(len(function()))

    study = optuna.create_study(sampler=RandomSampler(seed=0))
    optimize(study, objective, n_trials=6)
    assert states(study) == [TrialState.COMPLETE] * 6
    assert {trial.params["function"] for trial in study.trials} == {"relu #0", "tanh #1"}


@pytest.mark.parametrize("value", ["5", 10**400])
def test_values_that_optuna_chokes_on_are_failures(value):
    study = optuna.create_study()
    optimize(study, lambda trial: value, n_trials=2)
    assert states(study) == [TrialState.FAIL] * 2


def test_an_objective_that_takes_long_to_unpickle_is_bound_by_the_budget():
    class Slow:
        def __reduce__(self):
            return time.sleep, (3600,)

    slow = Slow()
    study = optuna.create_study()
    begin = time.monotonic()
    optimize(study, lambda trial: slow, time_budget=8)
    assert time.monotonic() - begin < 60
    assert set(states(study)) <= {TrialState.PRUNED}


def test_a_pool_is_not_overfilled_by_trials_at_the_same_time():
    study = optuna.create_study(
        sampler=WaitUCBSampler(
            base_sampler=RandomSampler(seed=0), policy="wait-ucb", timeouts=[1, 4]
        )
    )
    for _ in range(50):
        trials = [study.ask() for _ in range(4)]
        for trial in trials:
            x = trial.suggest_float("x", 0, 1)
            trial.set_user_attr(SECONDS, 0.5)
            study.tell(trial, x)
    assert len({trial.params["x"] for trial in study.trials}) <= 23


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"callbacks": print}, TypeError, "callbacks must be a list of functions"),
        ({"callbacks": [3]}, TypeError, "callbacks must be a list of functions"),
        ({"n_trials": math.inf}, ValueError, "n_trials"),
        ({"n_trials": math.nan}, ValueError, "n_trials"),
    ],
)
def test_bad_input(options, error, words):
    with pytest.raises(error, match=words):
        optimize(optuna.create_study(), lambda trial: 1.0, **options)


def test_no_callbacks_at_all():
    study = optuna.create_study()
    optimize(study, lambda trial: 1.0, n_trials=1, callbacks=None)
    assert states(study) == [TrialState.COMPLETE]


def test_a_memory_limit_is_kept_where_the_whole_objective_runs_in_a_worker():
    from sklearn.dummy import DummyClassifier

    class Greedy(DummyClassifier):
        def fit(self, X, y):
            self.all_ = np.ones(2**29, dtype=np.uint8)
            return super().fit(X, y)

    def objective(trial):
        X, y = np.zeros((20, 1)), np.arange(20) % 2
        return cross_val_score(Greedy(), X, y, cv=2, memory=2**27).mean()

    with pytest.raises(ValueError, match=r"all 2 fits failed.*MemoryError"):
        optimize(optuna.create_study(), objective, n_trials=1)


def test_a_trial_without_a_plan_is_closed_where_all_others_have_one(monkeypatch):
    """A process that is killed right after it created a trial leaves it open."""
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    study.add_trial(create_trial(state=TrialState.RUNNING))
    assert close_stale_trials(study) == []  # it may be about to get its plan
    monkeypatch.setattr(stale_trials, "STALE_TRIAL_SECONDS", 0.0)
    assert close_stale_trials(study) == [2]
    assert study.trials[2].state is TrialState.FAIL


def test_a_trial_of_another_sampler_is_left_alone(monkeypatch):
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    study.add_trial(create_trial(state=TrialState.RUNNING))
    monkeypatch.setattr(stale_trials, "STALE_TRIAL_SECONDS", 0.0)
    assert close_stale_trials(study) == []


def test_a_storage_hears_of_trials_whose_worker_is_gone(tmp_path, monkeypatch):
    heard = []

    def callback(study, trial):
        heard.append((trial.number, trial.state))

    name = "heartbeat_stale_trial_callback"
    if name not in inspect.signature(optuna.storages.RDBStorage).parameters:
        name = "failed_trial_callback"  # before Optuna 4.9
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/s.db", **{name: callback})
    study = optuna.create_study(storage=storage, sampler=WaitUCBSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    study.add_trial(create_trial(state=TrialState.RUNNING))
    monkeypatch.setattr(stale_trials, "STALE_TRIAL_SECONDS", 0.0)
    close_stale_trials(study)
    assert heard == [(1, TrialState.FAIL)]


def sleeping(trial):
    trial.suggest_float("x", 0, 1)
    time.sleep(3600)


def test_ctrl_c_says_so_in_the_trials_it_ends():
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))

    def press():
        while len(study.trials) < 2 or not all(trial.params for trial in study.trials):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        optimize(study, sleeping, n_jobs=2)
    errors = [trial.user_attrs["f2a:error"] for trial in study.trials]
    assert len(errors) == 2
    assert all("interrupted" in error for error in errors), errors
