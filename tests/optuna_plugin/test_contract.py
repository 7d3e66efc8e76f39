"""The points of Optuna's contract that samplers most often get wrong, one test for each."""

import json
import math
import pickle

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler, TPESampler
from optuna.trial import TrialState, create_trial

from f2a_tune import WaitUCBPruner, WaitUCBSampler, cutoff_of, evaluation_of
from f2a_tune.clock import VirtualClock
from f2a_tune.study import trial_clock
from f2a_tune.study.attributes import PLAN, SECONDS
from f2a_tune.study.history import StudyHistory
from f2a_tune.study.limits import STALE_TRIAL_SECONDS
from f2a_tune.study.trial_plan import TrialPlan
from tests.optuna_plugin.virtual import planned, run


def sampler(**options):
    options.setdefault("base_sampler", RandomSampler(seed=0))
    return WaitUCBSampler(**options)


def fast_or_never(params):
    return 0.1 + params["x"] if params["x"] < 0.7 else 1e6


def bowl(params):
    return (params["x"] - 0.3) ** 2


def next_cutoff(study):
    return cutoff_of(study.ask())


def test_01_statistics_are_in_the_storage_not_in_the_sampler(storage, study_name):
    study = optuna.create_study(storage=storage(), study_name=study_name, sampler=sampler())
    run(study, 30, fast_or_never, bowl)
    again = optuna.load_study(storage=storage(), study_name=study_name, sampler=sampler())
    assert next_cutoff(again) == next_cutoff(study) < 20
    assert next_cutoff(optuna.create_study(sampler=sampler())) == math.inf


def test_02_trials_that_skip_after_trial_are_learned_from():
    study = optuna.create_study(sampler=sampler())
    for number in range(10):
        study.add_trial(
            create_trial(
                value=1.0,
                params={"x": number / 10},
                distributions={"x": FloatDistribution(0, 1)},
                user_attrs={SECONDS: 2.0},
            )
        )
    assert next_cutoff(study) == pytest.approx(20.0)
    optuna.copy_study(
        from_study_name=study.study_name,
        from_storage=study._storage,
        to_storage=study._storage,
        to_study_name="copy",
    )
    copied = optuna.load_study(study_name="copy", storage=study._storage, sampler=sampler())
    assert next_cutoff(copied) == pytest.approx(20.0)


def test_03_before_trial_may_come_twice_and_keeps_fixed_parameters():
    study = run(optuna.create_study(sampler=sampler()), 8, fast_or_never, bowl)
    study.enqueue_trial({"x": 0.123})
    trial = study.ask()
    before = trial.user_attrs.get(PLAN), cutoff_of(trial)
    again = optuna.Trial(study, trial._trial_id)
    assert cutoff_of(again) == before[1] == math.inf  # it was told what to run
    assert again.user_attrs[PLAN] == before[0]
    assert again.suggest_float("x", 0, 1) == 0.123


@pytest.mark.parametrize("base", [RandomSampler, TPESampler])
def test_04_a_plan_of_before_trial_reaches_all_hooks(base):
    # TPE samples relatively: a configuration that comes again must not be sampled over.
    chosen = sampler(base_sampler=base(seed=0), evaluations_per_configuration=3)
    study = optuna.create_study(sampler=chosen)
    run(study, 60, lambda _: 1.0, bowl)
    again = [t for t in study.trials if TrialPlan.of(t).again_of is not None]
    assert len(again) >= 5
    for trial in again:
        first = study.trials[TrialPlan.of(trial).again_of]
        assert trial.params == first.params
        assert evaluation_of(trial) > 0


def test_05_nothing_is_suggested_or_only_constants():
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    study.optimize(lambda trial: 1.0, n_trials=15)
    study.optimize(lambda trial: trial.suggest_int("x", 3, 3), n_trials=15)
    assert all(trial.state is TrialState.COMPLETE for trial in study.trials)


@pytest.mark.parametrize(
    "attributes",
    [
        {PLAN: "nonsense"},
        {PLAN: {"cutoff_seconds": "soon", "again_of": -1, "evaluation": None, "run": 3}},
        {PLAN: {"cutoff_seconds": True, "again_of": 99, "arm": 7, "more": [1]}},
        {SECONDS: "long"},
        {SECONDS: -1},
        {SECONDS: None, "other": {}},
    ],
)
def test_06_nothing_in_a_storage_makes_a_hook_raise(attributes):
    study = optuna.create_study(sampler=sampler(evaluations_per_configuration=2))
    for state in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING):
        study.add_trial(
            create_trial(
                state=state,
                value=1.0 if state is TrialState.COMPLETE else None,
                params={"x": 0.5},
                distributions={"x": FloatDistribution(0, 1)},
                user_attrs=attributes,
            )
        )
    run(study, 10, fast_or_never, bowl)
    assert len(study.trials) == 14


def test_07_the_last_report_of_a_pruned_trial_is_no_reward():
    study = optuna.create_study(direction="maximize", sampler=sampler())
    for number in range(20):
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        trial.set_user_attr(SECONDS, 1.0)
        if number % 2:
            trial.report(1e9, 0)
            study.tell(trial, state=TrialState.PRUNED)
        else:
            study.tell(trial, float(number))
    study.ask()
    race = study.sampler._history(study).race
    assert race.recommend().mean == 18.0
    assert race.ledger.n_scored == 10


def test_08_minimising_is_maximising_of_the_negative():
    plans = []
    for sign in (1, -1):
        study = optuna.create_study(
            direction="minimize" if sign == 1 else "maximize",
            sampler=sampler(evaluations_per_configuration=3),
        )
        run(study, 60, fast_or_never, lambda params, sign=sign: sign * bowl(params))
        plans.append(planned(study))
    assert plans[0] == plans[1]


def test_09_ask_and_tell_never_stops_the_study():
    study = optuna.create_study(sampler=WaitUCBSampler(timeouts=[1, 4], policy="wait-ucb"))
    run(study, 100, fast_or_never, bowl)
    assert len(study.trials) == 100


def test_10_hyperband_brackets():
    pruner = optuna.pruners.HyperbandPruner(1, 9, reduction_factor=3)
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0), pruner=WaitUCBPruner(pruner))
    bracketed = optuna.create_study(sampler=WaitUCBSampler(seed=0), pruner=pruner)

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        for step in range(9):
            trial.report(x, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x

    for one in (study, bracketed):
        one.optimize(objective, n_trials=40)
        history = one.sampler._history(one)
        history.follow(one, one.trials)
        assert len(history.configurations) == 40


def test_11_no_counters_in_the_study():
    study = run(optuna.create_study(sampler=sampler()), 10, fast_or_never, bowl)
    assert study.user_attrs == {}
    assert study._storage.get_study_system_attrs(study._study_id) == {}


def test_12_everything_stored_is_json(storage, study_name):
    study = optuna.create_study(
        storage=storage(),
        study_name=study_name,
        sampler=sampler(timeouts=np.array([0.5, 2.0]), evaluations_per_configuration=np.int64(2)),
    )
    run(study, 12, fast_or_never, bowl)
    for trial in optuna.load_study(storage=storage(), study_name=study_name).trials:
        json.dumps([trial.user_attrs, trial.system_attrs, trial.params])
        assert cutoff_of(trial) in (0.5, 2.0)


def test_13_attributes_are_small_and_have_our_prefix():
    study = optuna.create_study(sampler=sampler(evaluations_per_configuration=3))
    run(study, 60, fast_or_never, bowl)
    for trial in study.trials:
        assert all(key.startswith("f2a:") for key in trial.user_attrs)
        assert len(json.dumps(trial.user_attrs)) < 500


def test_14_values_that_do_not_fit_any_more_are_not_replayed():
    study = optuna.create_study(sampler=sampler(evaluations_per_configuration=5))
    run(study, 20, lambda _: 1.0, bowl)

    def shifted(trial):
        return {"x": trial.suggest_float("x", 20, 30)}

    run(study, 30, lambda _: 1.0, lambda params: params["x"], suggest=shifted)
    assert all(20 <= trial.params["x"] <= 30 for trial in study.trials[20:])


def test_15_several_objectives_are_refused_in_every_hook():
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler())
    trial = study.ask()
    frozen = study._storage.get_trial(trial._trial_id)
    for hook in (
        lambda: study.sampler.infer_relative_search_space(study, frozen),
        lambda: study.sampler.sample_relative(study, frozen, {}),
        lambda: study.sampler.sample_independent(study, frozen, "x", FloatDistribution(0, 1)),
    ):
        with pytest.raises(ValueError, match="multi-objective"):
            hook()


def test_16_every_trial_is_read_once(monkeypatch):
    finished, reads = [], []
    original = StudyHistory._finish

    def counted(self, trial):
        finished.append(trial.number)
        original(self, trial)

    monkeypatch.setattr(StudyHistory, "_finish", counted)
    study = optuna.create_study(sampler=sampler())
    get_all = study._storage.get_all_trials

    def counted_read(*args, **kwargs):
        if kwargs.get("states") is None:
            reads.append(kwargs.get("deepcopy", True))
        return get_all(*args, **kwargs)

    monkeypatch.setattr(study._storage, "get_all_trials", counted_read)
    run(study, 200, fast_or_never, bowl)
    assert finished == list(range(199))
    assert reads == [False] * 200


def test_17_a_trial_that_runs_for_too_long_is_not_pending(monkeypatch):
    now = VirtualClock()
    monkeypatch.setattr("f2a_tune.clock.monotonic_seconds", now)
    study = run(optuna.create_study(sampler=sampler()), 10, fast_or_never, bowl)
    ours = study.ask()
    lost = study.ask()
    trial_clock.stop(study, lost)  # as in another process
    study.ask()
    race = study.sampler._history(study).race
    assert {ours.number, lost.number} <= set(race.in_flight)
    now.advance(cutoff_of(lost) + STALE_TRIAL_SECONDS + 1)
    study.ask()
    assert lost.number not in race.in_flight
    assert ours.number in race.in_flight  # it is ours, and we would know


def test_17_running_trials_of_others_never_stall():
    study = optuna.create_study(sampler=sampler())
    for _ in range(50):
        study._storage.create_new_trial(study._study_id)
    run(study, 20, fast_or_never, bowl)
    assert len(study.get_trials(states=[TrialState.COMPLETE, TrialState.PRUNED])) == 20


def test_samplers_and_studies_pickle():
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0, timeouts=[1, 2]))
    run(study, 12, fast_or_never, bowl)
    again = pickle.loads(pickle.dumps(study))
    assert again.sampler._player != study.sampler._player
    run(again, 5, fast_or_never, bowl)
    assert len(again.trials) == 17
