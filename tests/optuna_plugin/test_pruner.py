"""When the pruner says that time is up."""

import datetime
import math
import pickle

import optuna
import pytest
from optuna.trial import FixedTrial, TrialState

from f2a_tune import WaitUCBPruner, WaitUCBSampler, clock, cutoff_of
from f2a_tune.clock import VirtualClock


@pytest.fixture
def now(monkeypatch):
    virtual = VirtualClock()
    monkeypatch.setattr(clock, "monotonic_seconds", virtual)
    return virtual


def study_with(pruner, **options):
    return optuna.create_study(sampler=WaitUCBSampler(timeouts=[10], **options), pruner=pruner)


def test_a_trial_is_pruned_past_its_cutoff(now):
    study = study_with(WaitUCBPruner())
    trial = study.ask()
    now.advance(9.9)
    assert not trial.should_prune()
    now.advance(0.2)
    assert trial.should_prune()
    trial.report(float("nan"), 0)
    assert trial.should_prune()


def test_seconds_are_written_down_if_the_wall_clock_disagrees(now):
    study = study_with(WaitUCBPruner())
    trial = study.ask()
    now.advance(10.5)
    assert trial.should_prune()
    study.tell(trial, state=TrialState.PRUNED)
    assert study.trials[0].user_attrs["f2a:seconds"] == 10.5
    study.ask()
    # By the wall clock it took no time at all; as a wait, no more than its cutoff counts.
    assert study.sampler._history(study).race.ledger.waited.tolist()[:1] == [10.0]


def test_a_wall_clock_that_jumps_does_not_matter(now, monkeypatch):
    study = study_with(WaitUCBPruner())
    trial = study.ask()
    later = datetime.datetime.now() + datetime.timedelta(days=1)
    monkeypatch.setattr(clock, "wall_clock", lambda: later)
    assert not trial.should_prune()


def test_a_trial_of_another_process_is_judged_by_the_wall_clock(monkeypatch, tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(
        storage=url, study_name="s", sampler=WaitUCBSampler(timeouts=[10]), pruner=WaitUCBPruner()
    )
    trial = study.ask()
    other = optuna.load_study(storage=url, study_name="s", pruner=WaitUCBPruner())
    seen = other.trials[0]
    assert not other.pruner.prune(other, seen)
    later = datetime.datetime.now() + datetime.timedelta(seconds=11)
    monkeypatch.setattr(clock, "wall_clock", lambda: later)
    assert other.pruner.prune(other, seen)
    assert not trial.should_prune()


def test_another_pruner_is_asked_while_there_is_time(now):
    median = optuna.pruners.MedianPruner(n_startup_trials=0, n_warmup_steps=0)
    study = study_with(WaitUCBPruner(median))
    good = study.ask()
    good.report(0.0, 0)
    study.tell(good, 0.0)
    bad = study.ask()
    bad.report(1.0, 0)
    assert bad.should_prune()


def test_without_our_sampler_there_is_no_cutoff(now):
    study = optuna.create_study(pruner=WaitUCBPruner())
    trial = study.ask()
    now.advance(1e9)
    assert not trial.should_prune()
    assert cutoff_of(trial) == math.inf


def test_fixed_and_frozen_trials():
    study = study_with(WaitUCBPruner())

    def objective(trial):
        if trial.should_prune():
            raise optuna.TrialPruned
        assert cutoff_of(trial) > 0
        return trial.suggest_float("x", 0, 1)

    study.optimize(objective, n_trials=3)
    assert objective(FixedTrial({"x": 0.5})) == 0.5
    assert objective(study.best_trial) == study.best_value
    assert cutoff_of(FixedTrial({})) == math.inf
    assert cutoff_of(study.best_trial) == 10


def test_several_objectives_are_optunas_own_refusal():
    study = optuna.create_study(directions=["minimize"] * 2, pruner=WaitUCBPruner())
    with pytest.raises(NotImplementedError):
        study.ask().should_prune()


def test_threads_and_pickle():
    study = study_with(pickle.loads(pickle.dumps(WaitUCBPruner(optuna.pruners.NopPruner()))))
    study.optimize(lambda trial: float(trial.should_prune()), n_trials=20, n_jobs=2)
    assert study.best_value == 0.0


@pytest.mark.parametrize("pruner", ["median", optuna.pruners.MedianPruner])
def test_bad_input(pruner):
    with pytest.raises(TypeError, match="pruner must be an Optuna pruner"):
        WaitUCBPruner(pruner)
