"""Interactive plotly figure of the cumulative regret of simulated games."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from f2a_tune.bandit import Simulation
from f2a_tune.visualization._panels import colours_of, delay_bars, missing, panels_of


def plot_regret(simulations: Simulation | Iterable[Simulation]) -> Any:
    """Plot delay distributions (top) and regret over budget (bottom) of each game with plotly.

    Lines are means over the runs, and bands are one standard deviation. Both axes are logarithmic.
    """
    panels = panels_of(simulations)
    try:
        from plotly import graph_objects
        from plotly.subplots import make_subplots
    except ImportError as error:
        missing("plotly", error)
    figure = make_subplots(
        rows=2,
        cols=len(panels),
        row_heights=[0.3, 0.7],
        subplot_titles=[panel.game.name for panel in panels],
    )
    colours = colours_of(panels)
    for column, panel in enumerate(panels, start=1):
        for arm in range(panel.game.n_arms):
            labels, heights = delay_bars(panel, arm)
            bars = graph_objects.Bar(x=labels, y=heights, name=f"arm {arm}", showlegend=False)
            figure.add_trace(bars, row=1, col=column)
        for result in panel.simulations:
            for trace in _band_and_line(result, colours[result.policy]):
                figure.add_trace(graph_objects.Scatter(trace), row=2, col=column)
        figure.update_xaxes(type="log", title_text="budget spent", row=2, col=column)
        figure.update_yaxes(type="log", row=2, col=column)
    # The legend lists each policy once, even if it is in several panels.
    listed: set[str] = set()
    for trace in figure.select_traces({"mode": "lines"}):
        trace.showlegend = trace.name not in listed
        listed.add(trace.name)
    figure.update_yaxes(title_text="cumulative regret", row=2, col=1)
    figure.update_yaxes(title_text="P(delay)", row=1, col=1)
    return figure


def _band_and_line(result: Simulation, colour: str) -> list[dict[str, Any]]:
    # A logarithmic axis cannot show 0, so values below 0.1 are drawn at 0.1.
    mean, sd = result.mean(), result.sd()
    edge = np.concatenate([mean + sd, (mean - sd)[::-1]])
    common = {"legendgroup": result.policy, "name": result.policy, "showlegend": False}
    band = {
        "x": np.concatenate([result.checkpoints, result.checkpoints[::-1]]),
        "y": np.maximum(edge, 0.1),
        "mode": "none",
        "fill": "toself",
        "fillcolor": colour,
        "opacity": 0.2,
        "hoverinfo": "skip",
    }
    line = {
        "x": result.checkpoints,
        "y": np.maximum(mean, 0.1),
        "mode": "lines",
        "line": {"color": colour},
    }
    return [common | band, common | line]
