"""Cumulative regret of simulated games as an interactive plotly figure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from f2a_tune.bandit import Simulation
from f2a_tune.visualization._panels import colours_of, delay_bars, missing, panels_of


def plot_regret(simulations: Simulation | Iterable[Simulation]) -> Any:
    """Draw a plotly ``Figure``: delay distributions above, regret over budget below, per game.

    Lines are means over the runs, bands one standard deviation; both axes are logarithmic.
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
    shown: set[str] = set()
    for column, panel in enumerate(panels, start=1):
        for arm in range(panel.game.n_arms):
            labels, heights = delay_bars(panel, arm)
            bars = graph_objects.Bar(x=labels, y=heights, name=f"arm {arm}", showlegend=False)
            figure.add_trace(bars, row=1, col=column)
        for result in panel.simulations:
            mean, sd = result.mean(), result.sd()
            edge = np.concatenate([mean + sd, np.maximum(mean - sd, 0.1)[::-1]])
            around = np.concatenate([result.checkpoints, result.checkpoints[::-1]])
            common = {"legendgroup": result.policy, "name": result.policy}
            figure.add_trace(
                graph_objects.Scatter(
                    x=around,
                    y=np.maximum(edge, 0.1),
                    fill="toself",
                    line={"width": 0},
                    fillcolor=colours[result.policy],
                    opacity=0.2,
                    hoverinfo="skip",
                    showlegend=False,
                    **common,
                ),
                row=2,
                col=column,
            )
            figure.add_trace(
                graph_objects.Scatter(
                    x=result.checkpoints,
                    y=np.maximum(mean, 0.1),
                    line={"color": colours[result.policy]},
                    showlegend=result.policy not in shown,
                    **common,
                ),
                row=2,
                col=column,
            )
            shown.add(result.policy)
        figure.update_xaxes(type="log", title_text="budget spent", row=2, col=column)
        figure.update_yaxes(type="log", row=2, col=column)
    figure.update_yaxes(title_text="cumulative regret", row=2, col=1)
    figure.update_yaxes(title_text="P(delay)", row=1, col=1)
    return figure
