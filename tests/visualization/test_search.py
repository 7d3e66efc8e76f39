"""Plots of a search: the same charts from both libraries."""

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from scipy.stats import uniform
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from f2a_tune import F2ASearchCV, visualization
from tests.sklearn_plugin.test_search import Toy, X, Y

PLOTS = [
    "plot_best_over_time",
    "plot_cutoffs",
    "plot_parallel_coordinates",
    "plot_race",
    "plot_reward_per_second",
    "plot_time_account",
]


@pytest.fixture(scope="module")
def study():
    space = [{"quality": uniform(0, 1), "seconds": [0.001, 3600.0]}, {"quality": [0.2, 0.3]}]
    search = F2ASearchCV(Toy(), space, time_budget=8, cv=3, random_state=0, timeouts=[0.05, 0.5])
    return search.fit(X, Y).study_


@pytest.fixture(scope="module")
def growing_study():
    space = {"n_estimators": IntDistribution(2, 32), "max_features": FloatDistribution(0.1, 1)}
    search = F2ASearchCV(
        RandomForestClassifier(random_state=0), space, time_budget=60, max_configurations=3, cv=3
    )
    return search.fit(*load_iris(return_X_y=True)).study_


def test_learning_curves(growing_study, tmp_path):
    import f2a_tune.visualization.matplotlib as still

    figure = visualization.plot_learning_curves(growing_study)
    assert len(figure.data) == 3
    assert any(len(line.x) > 1 for line in figure.data)
    assert all(list(line.x) == sorted(line.x) for line in figure.data)
    still.plot_learning_curves(growing_study).savefig(tmp_path / "plot.png")
    assert not visualization.plot_learning_curves(optuna.create_study()).data


@pytest.mark.parametrize("name", PLOTS)
def test_both_draw_every_plot(study, name, tmp_path):
    import f2a_tune.visualization.matplotlib as still

    figure = getattr(visualization, name)(study)
    assert figure.layout.title.text
    assert len(figure.data) > 0
    picture = getattr(still, name)(study)
    picture.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 3000
    assert picture.axes[0].get_title() == figure.layout.title.text


@pytest.mark.parametrize("name", PLOTS)
def test_an_empty_study_is_drawn_too(name):
    import f2a_tune.visualization.matplotlib as still

    getattr(visualization, name)(optuna.create_study())
    getattr(still, name)(optuna.create_study())


def test_the_account_adds_up(study):
    figure = visualization.plot_time_account(study)
    total = sum(trace.y[0] for trace in figure.data)
    assert total == pytest.approx(study.user_attrs["f2a:use"]["finished_seconds"] + sum(
        study.user_attrs["f2a:use"][f"{part}_seconds"]
        for part in ("given_up", "failed", "overhead", "refit")
    ), rel=0.02)  # fmt: skip


def test_what_is_no_study_is_refused():
    with pytest.raises(TypeError, match="study must be an Optuna study"):
        visualization.plot_race([1, 2])
