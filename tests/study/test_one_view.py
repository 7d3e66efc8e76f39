"""Everything that shows a study agrees: ``cv_results_``, report, summary, command and plots."""

import json

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from f2a_tune import (
    F2ASearchCV,
    WaitUCBSampler,
    best_configuration,
    budget_summary,
)
from f2a_tune.cli import main
from f2a_tune.outcome import FoldResult, Kind
from f2a_tune.report import html_report
from f2a_tune.report.text import table_of_configurations
from f2a_tune.sklearn_plugin.cv_results import cv_results
from f2a_tune.sklearn_plugin.search_space import SearchSpace
from f2a_tune.study.attributes import FINGERPRINT, FOLDS, OUTCOME, PLAN, SECONDS, WINNER
from f2a_tune.study.fold_record import FoldRecord
from f2a_tune.study.opening import FORMAT
from f2a_tune.study.reader import read_study
from f2a_tune.study.trial_plan import TrialPlan
from f2a_tune.study.trial_store import TrialStore
from f2a_tune.visualization import plot_race, plot_time_account
from tests.sklearn_plugin.joint_search import Logged

N_FOLDS = 2
STATUSES = ["complete", "complete", "dropped", "given_up", "failed"]


def finished(score):
    return FoldRecord(Kind.FINISHED, 0.5, 1.0, FoldResult(score, 0.4, 0.1), at_seconds=1.0)


GAVE_UP = FoldRecord(Kind.GAVE_UP, 1.0, 1.0, at_seconds=2.0)
FAILED = FoldRecord(Kind.FAILED, 0.25, 1.0, error="ValueError: no", at_seconds=3.0)


def search_study(url, *, close=True):
    """One configuration for each status; the folds are written as a search writes them."""
    study = optuna.create_study(storage=url, study_name="s", direction="maximize")
    study.set_user_attr(FINGERPRINT, {"format": FORMAT})
    study.set_user_attr(FOLDS, N_FOLDS)
    space = SearchSpace({"quality": optuna.distributions.FloatDistribution(0, 1)}, Logged())
    store = TrialStore(study, space, N_FOLDS, None, "me")
    folds = [
        [finished(0.5), finished(0.7)],
        [finished(0.8), finished(0.9)],
        [finished(0.95), GAVE_UP],
        [GAVE_UP, GAVE_UP],
        [finished(0.1), FAILED],
    ]
    for number, records in enumerate(folds):
        index = store.begin(space.encoded({"quality": (number + 1) / 10}))
        for fold, record in enumerate(records):
            store.add(index, fold, record)
            store.store(index, fold)
    store.add(3, 0, GAVE_UP)  # a second attempt
    store.store(3, 0)
    if close:
        store.close()
    return study, store


def test_a_search(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/s.db"
    study, store = search_study(url)
    table = cv_results(store.configurations, N_FOLDS, np.nan, train=False)
    view = read_study(study)
    assert [one.status for one in view.configurations] == STATUSES
    assert list(table["status"]) == STATUSES
    assert [one.seconds for one in view.configurations] == pytest.approx(list(table["seconds"]))
    summary = budget_summary(study)
    assert (summary.n_finished, summary.n_given_up, summary.n_failed) == (6, 4, 1)
    assert summary.n_pruned == 0
    assert summary.given_up_seconds == 4.0
    best = best_configuration(study)
    assert best.params == {"quality": pytest.approx(0.2)}
    assert view.winner.number == int(np.argmax(table["rank_test_score"] == 1)) == 1
    assert study.best_trial.value == pytest.approx(best.mean)
    assert main(["best", "--storage", url, "--study-name", "s", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["number"], shown["params"]) == (1, best.params)
    for status in set(STATUSES):
        assert status.replace("_", " ") in html_report(study)
    assert str(summary.n_given_up) in plot_time_account(study).to_json()
    assert plot_race(study).data[-1].y[0] == pytest.approx(best.mean)
    assert "0.85" in table_of_configurations(view)


def test_a_search_that_is_running(tmp_path):
    study, _ = search_study(f"sqlite:///{tmp_path}/s.db", close=False)
    view = read_study(study)
    assert [one.status for one in view.configurations] == ["complete"] * 2 + ["racing"] * 3
    assert view.winner.number == 1
    assert budget_summary(study).n_given_up == 4


def test_the_winner_that_a_search_recommends():
    space = {"quality": optuna.distributions.FloatDistribution(0, 1)}
    rows = np.arange(60.0)[:, None]
    search = F2ASearchCV(
        Logged(seconds=0.01), space, time_budget=60, max_configurations=4, cv=2, random_state=0
    ).fit(rows, np.arange(60) % 2)
    view = read_study(search)
    assert view.winner.number == search.best_index_
    assert view.winner.params == search.best_params_
    assert view.winner.mean == pytest.approx(search.best_score_)
    assert best_configuration(search.study_).params == search.best_params_
    assert [one.status for one in view.configurations] == list(search.cv_results_["status"])
    assert budget_summary(search.study_).total_seconds == pytest.approx(
        search.budget_.total_seconds
    )


def test_a_second_fit_without_a_winner_does_not_use_the_first_one():
    space = {"quality": optuna.distributions.FloatDistribution(0, 1)}
    rows, target = np.arange(60.0)[:, None], np.arange(60) % 2
    search = F2ASearchCV(
        Logged(seconds=0.0), space, time_budget=60, max_configurations=3, cv=2, random_state=0
    ).fit(rows, target)
    search.best_index_ = 2
    search.set_params(refit=False, scoring=["accuracy", "f1"], max_configurations=1)
    search.fit(rows, target)
    assert WINNER not in search.study_.user_attrs


def trial(number, state, value=None, *, x=0.5, seconds=1.0, **attributes):
    plan = TrialPlan(cutoff_seconds=2.0, number=number, evaluations=N_FOLDS)
    return create_trial(
        state=state,
        value=value,
        params={"x": x},
        distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
        user_attrs={PLAN: plan.to_attribute(), SECONDS: seconds, **attributes},
    )


def test_a_study_of_the_sampler():
    study = optuna.create_study(direction="maximize", sampler=WaitUCBSampler())
    complete, pruned, fail = TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL
    for one in [
        trial(0, complete, 0.5, x=0.1),
        trial(1, complete, 0.7, x=0.1),
        trial(2, complete, 0.9, x=0.2),  # one lucky evaluation of two
        trial(3, pruned, x=0.3, seconds=2.0, **{OUTCOME: "gave_up"}),
        trial(4, pruned, x=0.4, seconds=0.5),  # by a pruner
        trial(5, fail, x=0.6),
    ]:
        study.add_trial(one)
    view = read_study(study)
    statuses = [one.status for one in view.configurations]
    assert statuses == ["complete", "dropped", "given_up", "dropped", "failed"]
    summary = budget_summary(study)
    assert (summary.n_finished, summary.n_given_up, summary.n_failed) == (3, 1, 1)
    assert (summary.n_pruned, summary.pruned_seconds) == (1, 0.5)
    best = best_configuration(study)
    assert best.params == view.winner.params == {"x": 0.1}
    assert best.mean == pytest.approx(0.6)
    assert best.trial_numbers == (0, 1)
    assert "pruned" in html_report(study)
    assert "pruned (1)" in plot_time_account(study).to_json()


def test_a_foreign_study():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=7)
    view = read_study(study)
    assert {one.status for one in view.configurations} == {"complete"}
    assert view.winner.params == best_configuration(study).params == study.best_params
    assert budget_summary(study).n_finished == 7
