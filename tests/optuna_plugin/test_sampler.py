"""What the sampler decides, in virtual time."""

import math

import numpy as np
import optuna
import pytest
from optuna.samplers import PartialFixedSampler, RandomSampler
from optuna.trial import TrialState

from f2a_tune import WaitUCBSampler, best_configuration, cutoff_of, evaluation_of
from f2a_tune.bandit import HazardThompson
from f2a_tune.study.attributes import SECONDS
from f2a_tune.study.trial_plan import TrialPlan
from tests.optuna_plugin.virtual import planned, run


def sampler(**options):
    options.setdefault("base_sampler", RandomSampler(seed=0))
    return WaitUCBSampler(**options)


def plans(study):
    return [TrialPlan.from_attributes(trial.user_attrs) for trial in study.trials]


def test_the_cutoff_is_learned(storage, study_name):
    study = optuna.create_study(storage=storage(), study_name=study_name, sampler=sampler())
    run(study, 1, lambda _: 0.2, lambda p: p["x"])  # without a budget the first is waited for
    run(study, 40, lambda p: 0.2 if p["x"] < 0.6 else 3600, lambda p: p["x"])
    cutoffs = [plan.cutoff_seconds for plan in plans(study)]
    assert cutoffs[0] == math.inf
    assert all(0.2 < cutoff <= 4 for cutoff in cutoffs[1:])
    given_up = study.get_trials(states=[TrialState.PRUNED])
    assert len(given_up) > 5
    assert all(trial.params["x"] >= 0.6 for trial in given_up)


def test_without_anybody_who_enforces_cutoffs_durations_are_learned():
    study = optuna.create_study(sampler=sampler())
    for _ in range(10):
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        trial.set_user_attr(SECONDS, 5.0)
        study.tell(trial, 1.0)
    assert cutoff_of(study.ask()) == pytest.approx(50.0)


def test_given_timeouts_are_the_only_cutoffs():
    study = optuna.create_study(sampler=sampler(timeouts=[1, 4, 16]))
    run(study, 60, lambda p: 20 * p["x"], lambda p: p["x"])
    assert {plan.cutoff_seconds for plan in plans(study)} <= {1.0, 4.0, 16.0}


def test_noisy_objectives_are_evaluated_again():
    rng = np.random.default_rng(0)
    study = optuna.create_study(
        direction="maximize", sampler=sampler(evaluations_per_configuration=4)
    )
    run(study, 200, lambda _: 1.0, lambda p: p["x"] + 0.3 * rng.normal())
    counts = {}
    for trial in study.trials:
        counts[trial.params["x"]] = counts.get(trial.params["x"], 0) + 1
    assert 4 in counts.values()
    assert max(counts.values()) <= 4
    best = best_configuration(study)
    assert best.n_evaluations == 4
    assert best.params["x"] > 0.7
    assert best.mean == pytest.approx(
        np.mean([study.trials[number].value for number in best.trial_numbers])
    )


class Onlooker(RandomSampler):
    """Remembers which trials it could see at its last draw."""

    def sample_independent(self, study, trial, name, distribution):
        self.seen = study.get_trials(deepcopy=False)
        return super().sample_independent(study, trial, name, distribution)


def test_to_the_base_sampler_a_configuration_is_one_trial():
    base = Onlooker(seed=0)
    study = optuna.create_study(
        direction="maximize",
        sampler=sampler(base_sampler=base, evaluations_per_configuration=4),
    )
    rng = np.random.default_rng(0)
    run(study, 100, lambda _: 1.0, lambda p: p["x"] + 0.3 * rng.normal())
    evaluated = {}
    for trial in study.trials[: base.seen[-1].number]:
        evaluated.setdefault(trial.params["x"], []).append(trial.value)
    assert max(map(len, evaluated.values())) == 4
    finished = [trial for trial in base.seen if trial.state.is_finished()]
    assert {t.params["x"]: t.value for t in finished} == {
        x: pytest.approx(np.mean(values)) for x, values in evaluated.items()
    }
    numbers = [trial.number for trial in base.seen]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    "base",
    [optuna.samplers.TPESampler, optuna.samplers.QMCSampler, optuna.samplers.BruteForceSampler],
)
def test_base_samplers_of_all_kinds_read_such_a_study(base):
    study = optuna.create_study(
        sampler=sampler(base_sampler=base(seed=0), evaluations_per_configuration=3)
    )

    def suggest(trial):
        return {"x": trial.suggest_int("x", 0, 1000), "y": trial.suggest_int("y", 0, 3)}

    run(study, 60, lambda _: 1.0, lambda p: (p["x"] - 300.0) ** 2 + p["y"], suggest)
    again = [plan for plan in plans(study) if plan.again_of is not None]
    assert again
    assert all(trial.state is TrialState.COMPLETE for trial in study.trials)


def test_the_evaluation_can_serve_as_the_fold():
    study = optuna.create_study(sampler=sampler(evaluations_per_configuration=3))
    seen = {}
    for _ in range(120):
        trial = study.ask()
        x = trial.suggest_float("x", 0, 1)
        fold = evaluation_of(trial)
        assert fold not in seen.setdefault(x, set())
        seen[x].add(fold)
        trial.set_user_attr(SECONDS, 1.0)
        study.tell(trial, x + 10 * fold)  # folds differ far more than configurations
    raced = [x for x, folds in seen.items() if len(folds) == 3]
    assert raced
    assert min(seen) in raced


def test_one_evaluation_is_never_repeated():
    study = optuna.create_study(sampler=sampler())
    run(study, 60, lambda p: 10 * p["x"], lambda p: p["x"])
    assert len({trial.params["x"] for trial in study.trials}) == 60


def test_what_was_given_up_comes_again_when_nothing_fresh_is_left():
    seconds = {"a": 0.5, "b": 0.6, "c": 0.7, "d": 30.0}

    def suggest(trial):
        return {"kind": trial.suggest_categorical("kind", list(seconds))}

    study = optuna.create_study(sampler=sampler())
    study.enqueue_trial({"kind": "a"})
    run(study, 80, lambda p: seconds[p["kind"]], lambda p: seconds[p["kind"]], suggest=suggest)
    again = [t for t, p in zip(study.trials, plans(study), strict=True) if p.again_of is not None]
    assert {trial.params["kind"] for trial in again} == {"d"}
    waits = [cutoff_of(trial) for trial in again]
    assert waits == sorted(waits)
    assert again[-1].state is TrialState.COMPLETE


def test_conditional_spaces_come_again_whole():
    def suggest(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        if kind == "a":
            return {"kind": kind, "c": trial.suggest_float("c", 1e-3, 1e3, log=True)}
        return {"kind": kind, "depth": trial.suggest_int("depth", 1, 9)}

    study = optuna.create_study(sampler=sampler(evaluations_per_configuration=3))
    run(study, 80, lambda p: 1.0, lambda p: p.get("c", 2000.0), suggest=suggest)
    again = [(t, plan.again_of) for t, plan in zip(study.trials, plans(study), strict=True)]
    again = [(trial, number) for trial, number in again if number is not None]
    assert again
    for trial, number in again:
        assert trial.params == study.trials[number].params


def test_partly_fixed():
    inner = sampler(evaluations_per_configuration=3)
    study = optuna.create_study(sampler=PartialFixedSampler({"x": 0.5}, inner))

    def suggest(trial):
        return {"x": trial.suggest_float("x", 0, 1), "y": trial.suggest_float("y", 0, 1)}

    run(study, 40, lambda _: 1.0, lambda p: p["y"], suggest=suggest)
    assert {trial.params["x"] for trial in study.trials} == {0.5}
    assert any(plan.again_of is not None for plan in plans(study))


def test_enqueued_trials_run_as_told_and_count():
    study = optuna.create_study(sampler=sampler(evaluations_per_configuration=2))
    for x in (0.1, 0.2, 0.1):
        study.enqueue_trial({"x": x}, skip_if_exists=False)
    run(study, 3, lambda _: 1.0, lambda p: p["x"])
    assert [trial.params["x"] for trial in study.trials] == [0.1, 0.2, 0.1]
    assert len(study.sampler._history(study).configurations) <= 2
    study.ask()
    assert len(study.sampler._history(study).configurations) == 2


def test_same_seed_same_trials():
    def once():
        study = optuna.create_study(
            sampler=WaitUCBSampler(seed=7, evaluations_per_configuration=2)
        )
        return planned(run(study, 50, lambda p: 10 * p["x"] + 0.1, lambda p: p["x"]))

    assert once() == once()


def test_threads_share_one_sampler():
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0, evaluations_per_configuration=2))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=60, n_jobs=4)
    assert len(study.trials) == 60
    study.ask()
    assert not study.sampler._history(study).race.ledger.failed.any()


@pytest.mark.parametrize("policy", ["wait-ucb", HazardThompson()])
def test_bandit_policies_play_over_a_pool(policy):
    study = optuna.create_study(sampler=sampler(policy=policy, timeouts=[1, 4]))
    run(study, 200, lambda p: 0.5 + 5 * p["x"], lambda p: p["x"])
    assert 10 <= len({trial.params["x"] for trial in study.trials}) <= 20
    assert {plan.cutoff_seconds for plan in plans(study)} <= {1.0, 4.0}


def test_a_resumed_pool_goes_on_with_its_arms():
    study = optuna.create_study(sampler=sampler(policy="wait-ucb", timeouts=[1, 4]))
    run(study, 50, lambda p: 0.5 + 5 * p["x"], lambda p: p["x"])
    study.sampler = sampler(policy="wait-ucb", timeouts=[1, 4], base_sampler=RandomSampler(seed=9))
    run(study, 100, lambda p: 0.5 + 5 * p["x"], lambda p: p["x"])
    assert len({trial.params["x"] for trial in study.trials}) == 20


@pytest.mark.parametrize("value", [float("nan"), None, float("inf"), -float("inf")])
def test_values_that_are_no_numbers(value):
    study = optuna.create_study(sampler=sampler(evaluations_per_configuration=2))

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        return value if x < 0.5 else x

    study.optimize(objective, n_trials=40)
    race = study.sampler._history(study).race
    assert race.recommend().mean >= 0.5
    if value is None or math.isnan(value):
        assert TrialState.FAIL in {trial.state for trial in study.trials}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"timeouts": [4, 1]}, ValueError, "timeouts must be strictly increasing"),
        ({"timeouts": [-1, 1]}, ValueError, "timeouts must be finite and above 0"),
        ({"timeouts": []}, ValueError, "timeouts must not be empty"),
        ({"timeouts": 5}, TypeError, "timeouts must be a sequence"),
        ({"timeouts": "1,2"}, TypeError, "timeouts must be a sequence"),
        ({"evaluations_per_configuration": 0}, ValueError, "evaluations_per_configuration"),
        ({"evaluations_per_configuration": 1.5}, ValueError, "evaluations_per_configuration"),
        ({"base_sampler": "tpe"}, TypeError, "base_sampler must be an Optuna sampler"),
        ({"base_sampler": RandomSampler}, TypeError, "give an instance"),
        ({"policy": "wait-ubc"}, ValueError, "did you mean 'wait-ucb'"),
        ({"policy": "wait-ucb"}, ValueError, "requires timeouts="),
        ({"exploration": -1}, ValueError, "exploration"),
    ],
)
def test_bad_input(options, error, words):
    with pytest.raises(error, match=words):
        WaitUCBSampler(**options)
