"""Static matplotlib figure of cumulative regret, in the layout of the paper's figures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from f2a_tune.bandit import Simulation
from f2a_tune.visualization._panels import Panel, colours_of, delay_bars, missing, panels_of

COLUMNS = 3
ARMS_SHOWN = 3
PANEL_WIDTH, PANEL_HEIGHT = 4.2, 4.6


def plot_regret(simulations: Simulation | Iterable[Simulation]) -> Any:
    """Plot delay distributions and regret over budget with matplotlib, one panel per game.

    Lines are means over the runs, and bands are one standard deviation. Both axes are logarithmic.
    """
    panels = panels_of(simulations)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        missing("matplotlib", error)
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(PANEL_WIDTH * columns, PANEL_HEIGHT * rows), layout="constrained")
    grid = figure.subfigures(rows, columns, squeeze=False)
    colours = colours_of(panels)
    for number, panel in enumerate(panels):
        _draw(grid[divmod(number, columns)], panel, colours)
    handles = [
        figure.axes[-1].plot([], [], color=colour, label=policy)[0]
        for policy, colour in colours.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 5))
    return figure


def _draw(cell: Any, panel: Panel, colours: dict[str, str]) -> None:
    arms = min(panel.game.n_arms, ARMS_SHOWN)
    above, below = cell.subfigures(2, 1, height_ratios=[1, 2.4])
    for arm, axes in enumerate(above.subplots(1, arms, squeeze=False, sharey=True)[0]):
        labels, heights = delay_bars(panel, arm)
        axes.bar(labels, heights, color="0.6")
        axes.tick_params(labelsize=6)
        axes.set_ylim(0, 1)
        if arm == 0:
            axes.set_ylabel("P(delay)", fontsize=8)
    hidden = panel.game.n_arms - arms
    more = f" ({hidden} more arms not drawn)" if hidden else ""
    cell.suptitle(panel.game.name + more, fontsize=11)
    axes = below.subplots()
    for result in panel.simulations:
        mean, sd = result.mean(), result.sd()
        colour = colours[result.policy]
        # A logarithmic axis cannot show 0, so values below 0.1 are drawn at 0.1.
        axes.plot(result.checkpoints, np.maximum(mean, 0.1), color=colour, lw=1.5)
        low, high = np.maximum(mean - sd, 0.1), np.maximum(mean + sd, 0.1)
        axes.fill_between(result.checkpoints, low, high, color=colour, alpha=0.2, lw=0)
    axes.set(xscale="log", yscale="log", xlabel="budget spent", ylabel="cumulative regret")
    axes.set_ylim(bottom=0.1)
    axes.grid(alpha=0.3)
