"""`optimize`: preludes, enqueued trials, equal trials, small budgets and the last trials."""

import math
import time

import optuna
import pytest
from optuna.trial import TrialState

from f2a_tune import WaitUCBSampler, best_configuration, optimize
from f2a_tune.clock import Budget, VirtualClock
from f2a_tune.cutoff import CutoffPool, warm_pools
from f2a_tune.cutoff.warm_pools import WorkersNotReadyError
from f2a_tune.optuna_plugin import current_run
from f2a_tune.optuna_plugin.optimization import NoTrialWarning
from f2a_tune.optuna_plugin.trial_limits import Preludes, TrialCounter
from f2a_tune.runtime import workers
from f2a_tune.study.attributes import OUTCOME
from f2a_tune.study.trial_plan import TrialPlan

_loaded = False


def objective_that_loads(trial):
    """Loads data on the first call of a process, before it asks for a parameter."""
    global _loaded
    if not _loaded:
        time.sleep(1.0)
        _loaded = True
    x = trial.suggest_float("x", 0, 1)
    time.sleep(0.3 if trial.number == 0 else 0.05)
    return x


def test_loading_is_not_held_against_a_trial():
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    # The first cutoff is 0.6 s: less than what loading takes.
    optimize(study, objective_that_loads, time_budget=60, n_trials=12)
    given_up = [t for t in study.trials if OUTCOME in t.user_attrs]
    assert not given_up
    seconds = [t.user_attrs.get("f2a:seconds", math.nan) for t in study.trials]
    assert seconds[0] < 1.0, "the second of loading does not count"


def hang(trial):
    time.sleep(3600)


def test_an_objective_that_never_asks_is_given_up():
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    begin = time.monotonic()
    optimize(study, hang, time_budget=3)
    assert time.monotonic() - begin < 30
    assert all(trial.state is TrialState.PRUNED for trial in study.trials)


def test_a_call_may_run_as_long_as_its_prelude():
    """Killing it sooner costs the next worker the same prelude again."""
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    optimize(study, objective_that_loads, time_budget=30, n_trials=2)
    assert study.trials[0].state is TrialState.COMPLETE  # 0.3 s with a cutoff of 0.05 s


def test_preludes_are_learned():
    preludes = Preludes()
    assert preludes.cutoff(1.0, remaining=100.0) == 50.0
    preludes.add(2.0)
    assert preludes.cutoff(1.0, remaining=100.0) == 9.0
    assert preludes.cutoff(20.0, remaining=100.0) == 20.0


def test_an_enqueued_trial_may_run_to_the_end_of_the_budget():
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    study.enqueue_trial({"x": 0.5})
    clock = VirtualClock()
    run = current_run.OptimizeRun("run", Budget(100.0, clock))
    clock.advance(10.0)
    with current_run.inside(run):
        enqueued, drawn = study.ask(), study.ask()
    assert TrialPlan.of(enqueued).cutoff_seconds == 90.0
    assert TrialPlan.of(drawn).cutoff_seconds < 2.0


def test_timeouts_of_the_user_hold_for_enqueued_trials_too():
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0, timeouts=[1, 5]))
    study.enqueue_trial({"x": 0.5})
    with current_run.inside(current_run.OptimizeRun("run", Budget(100.0, VirtualClock()))):
        assert TrialPlan.of(study.ask()).cutoff_seconds == 5.0


@pytest.mark.parametrize("seed", range(4))
def test_the_last_trials_complete_the_leader(seed):
    study = optuna.create_study(sampler=WaitUCBSampler(seed=seed, evaluations_per_configuration=3))
    optimize(study, lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=14)
    best = best_configuration(study)
    assert best.n_evaluations == 3
    # What is drawn last cannot be evaluated three times any more.
    assert best.mean == pytest.approx(min(trial.value for trial in study.trials[:-2]))
    assert len(study.trials) == 14


def test_trials_are_counted_down():
    counter = TrialCounter(2)
    assert counter.take()
    assert counter.remaining() == 2
    assert counter.take()
    assert counter.remaining() == 1
    assert not counter.take()
    assert TrialCounter(None).remaining() is None


def test_a_budget_below_the_start_up_time_is_answered_in_time(monkeypatch):
    def never_ready(*args, **options):
        raise WorkersNotReadyError("not ready")

    monkeypatch.setattr(workers, "lent_pool", never_ready)
    study = optuna.create_study()
    with pytest.warns(NoTrialWarning, match=r"time_budget=0\.5 was spent before"):
        optimize(study, hang, time_budget=0.5)
    assert not study.trials


def test_workers_are_started_once(monkeypatch):
    started = []
    original = CutoffPool.__init__

    def counted(self, *args, **kwargs):
        started.append(self)
        original(self, *args, **kwargs)

    monkeypatch.setattr(warm_pools.CutoffPool, "__init__", counted)
    for _ in range(3):
        optimize(optuna.create_study(), lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    assert len(started) <= 1
