import sys

import pytest

from f2a_tune import visualization
from f2a_tune.bandit import scenario, simulate
from f2a_tune.visualization import matplotlib


@pytest.fixture
def simulations():
    return [
        simulate(scenario(name), policy, 300, runs=2)
        for name in ("first", "advertising")
        for policy in ("uniform", "wait-ucb")
    ]


def test_the_still_picture_has_a_line_a_policy(simulations):
    figure = matplotlib.plot_regret(simulations)
    curves = [axes for axes in figure.axes if axes.get_ylabel() == "cumulative regret"]
    assert len(curves) == 2
    assert all(len(axes.lines) >= 2 for axes in curves)
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {"uniform", "wait-ucb"}


def test_the_interactive_twin_shows_the_same(simulations):
    figure = visualization.plot_regret(simulations)
    lines = [t for t in figure.data if t.type == "scatter" and t.fill is None]
    assert len(lines) == 4
    assert list(lines[0].y) == pytest.approx(list(simulations[0].mean().clip(0.1)))
    assert [a.text for a in figure.layout.annotations] == ["first", "advertising"]


@pytest.mark.parametrize("draw", [matplotlib.plot_regret, visualization.plot_regret])
def test_bad_input_is_named(draw):
    with pytest.raises(ValueError, match="simulations must not be empty"):
        draw([])
    with pytest.raises(TypeError, match="simulations must be results"):
        draw([1])


@pytest.mark.parametrize(
    ("draw", "library"),
    [(matplotlib.plot_regret, "matplotlib.figure"), (visualization.plot_regret, "plotly")],
)
def test_a_missing_library_names_the_extra(draw, library, simulations, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r"pip install 'f2a_tune\[plot\]'"):
        draw(simulations)
