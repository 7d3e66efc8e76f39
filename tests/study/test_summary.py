"""Best configuration and budget, read from a study."""

import math
from dataclasses import replace

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from f2a_tune import best_configuration, budget_summary, evaluation_of
from f2a_tune.study.attributes import PLAN, SECONDS
from f2a_tune.study.trial_plan import TrialPlan


def study_of(rows, direction="maximize"):
    """Rows are (x, value or state, seconds, plan)."""
    study = optuna.create_study(direction=direction)
    for number, (x, value, seconds, plan) in enumerate(rows):
        finished = not isinstance(value, TrialState)
        plan = plan and replace(plan, number=number)
        study.add_trial(
            create_trial(
                state=TrialState.COMPLETE if finished else value,
                value=value if finished else None,
                params={"x": x},
                distributions={"x": FloatDistribution(0, 1)},
                user_attrs={SECONDS: seconds, **({PLAN: plan.to_attribute()} if plan else {})},
            )
        )
    return study


def test_a_lucky_single_evaluation_does_not_win():
    plan = TrialPlan(evaluations=3)
    rows = [(0.1, value, 1, plan) for value in (0.8, 0.9, 0.85)]
    rows += [(0.2, 2.0, 1, plan), (0.3, 0.7, 1, plan)]
    best = best_configuration(study_of(rows))
    assert best.params == {"x": 0.1}
    assert best.mean == pytest.approx(0.85)
    assert best.spread == pytest.approx(0.05)
    assert best.n_evaluations == 3
    assert best.trial_numbers == (0, 1, 2)


def test_chance_repetitions_do_not_win_either():
    rows = [(0.1, 0.5, 1, None)] * 4 + [(0.2, 0.9, 1, None), (0.3, 0.1, 1, None)]
    assert best_configuration(study_of(rows)).params == {"x": 0.2}


def test_single_evaluations_are_optunas_best_trial():
    rows = [(x / 10, (x - 3) ** 2, 1, None) for x in range(10)]
    study = study_of(rows, direction="minimize")
    best = best_configuration(study)
    assert best.trial_numbers == (study.best_trial.number,)
    assert best.mean == study.best_value


def test_infinite_values_alone():
    best = best_configuration(study_of([(0.1, math.inf, 1, None)]))
    assert best.params == {"x": 0.1}


def test_nothing_finished_or_several_objectives():
    with pytest.raises(ValueError, match="no finished trial"):
        best_configuration(study_of([(0.1, TrialState.FAIL, 1, None)]))
    with pytest.raises(ValueError, match="several objectives"):
        best_configuration(optuna.create_study(directions=["minimize"] * 2))


def test_seconds_by_kind():
    plan = TrialPlan(cutoff_seconds=5.0)
    study = study_of(
        [
            (0.1, 1.0, 2.0, plan),
            (0.2, TrialState.PRUNED, 5.0, plan),
            (0.3, TrialState.PRUNED, 1.0, plan),  # by another pruner
            (0.4, TrialState.FAIL, 0.5, plan),
            (0.5, 1.0, 3.0, None),
        ]
    )
    summary = budget_summary(study)
    assert (summary.n_finished, summary.n_given_up, summary.n_failed) == (2, 1, 1)
    assert summary.n_pruned == 1
    assert summary.finished_seconds == 5.0
    assert summary.given_up_seconds == 5.0
    assert summary.failed_seconds == 0.5
    assert summary.pruned_seconds == 1.0
    assert "5.00 s in 1 given up" in str(summary)


def test_overhead_is_what_runs_took_beyond_their_trials():
    study = study_of([(0.1, 1.0, 2.0, TrialPlan(run="r")), (0.2, 1.0, 3.0, TrialPlan(run="r"))])
    study.set_user_attr("f2a:run:r", {"seconds": 4.0, "players": 2})
    study.set_user_attr("f2a:run:x", "nonsense")
    summary = budget_summary(study)
    assert summary.overhead_seconds == pytest.approx(3.0)
    assert summary.total_seconds == pytest.approx(8.0)


def test_evaluations_of_trials_without_a_plan():
    assert evaluation_of(optuna.trial.FixedTrial({})) == 0


def test_trials_that_a_pruner_ends_are_not_failures():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def objective(trial):
        if trial.suggest_float("x", 0, 1) > 0.5:
            raise optuna.TrialPruned
        return 1.0

    study.optimize(objective, n_trials=20)
    summary = budget_summary(study)
    n_pruned = sum(trial.state is TrialState.PRUNED for trial in study.trials)
    assert 0 < n_pruned == summary.n_pruned
    assert summary.n_failed == 0
    assert summary.n_finished == 20 - n_pruned
    assert f"in {n_pruned} pruned" in str(summary)
