"""Studies that version 0.1.0 wrote can be read, reported, resumed and continued."""

import shutil
from pathlib import Path

import optuna
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from f2a_tune import F2ASearchCV, WaitUCBSampler, best_configuration, budget_summary, optimize
from f2a_tune.cli import main
from f2a_tune.report import html_report
from f2a_tune.study.reader import read_study
from f2a_tune.study.storages import journal_storage

WRITTEN = Path(__file__).parent / "data" / "written_by_0.1.0.journal"


@pytest.fixture
def path(tmp_path):
    return shutil.copy(WRITTEN, str(tmp_path / "old.journal"))


def test_a_search_is_read_and_resumed(path, capsys):
    storage = journal_storage(path)
    study = optuna.load_study(study_name="search", storage=storage)
    view = read_study(study)
    assert [one.status for one in view.configurations] == ["complete"] * 4
    assert view.winner.mean == pytest.approx(study.best_value)
    assert best_configuration(study).params == study.best_params
    assert budget_summary(study).n_finished == 12
    assert "complete" in html_report(study)
    assert main(["best", "--storage", path, "--study-name", "search"]) == 0
    assert f"{study.best_value:.4f}" in capsys.readouterr().out
    search = F2ASearchCV(
        LogisticRegression(max_iter=200),
        {"C": optuna.distributions.FloatDistribution(1e-3, 1e3, log=True)},
        time_budget=100,
        max_configurations=6,
        cv=3,
        random_state=0,
        storage=storage,
        study_name="search",
        resume=True,
    ).fit(*load_iris(return_X_y=True))
    assert len(search.cv_results_["params"]) == 6
    assert search.budget_.n_finished <= 6  # only the new configurations
    assert search.best_score_ >= study.trials[0].value


def test_a_study_of_the_sampler_is_read_and_continued(path):
    study = optuna.load_study(
        study_name="sampler", storage=journal_storage(path), sampler=WaitUCBSampler(seed=1)
    )
    view = read_study(study)
    assert budget_summary(study).n_finished == 8
    assert view.n_folds == 2
    assert view.winner.params == best_configuration(study).params
    optimize(study, lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=2)
    assert len(study.trials) == 10
    assert budget_summary(study).n_finished == 10
