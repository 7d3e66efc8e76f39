"""Plots of a search as still pictures: a study in, a matplotlib figure out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from f2a_tune.visualization import _charts
from f2a_tune.visualization._charts import Chart, Parallel, Series
from f2a_tune.visualization._panels import missing

if TYPE_CHECKING:
    from optuna import Study

    from f2a_tune.reading import StudyReading

SYMBOLS = {"circle": "o", "x": "x", "square": "s", "diamond": "D", "star": "*"}


def plot_time_account(study: Study | StudyReading) -> Any:
    """Where the time went: fits that finished, were given up or failed, refit and overhead."""
    return figure_of(_charts.time_account(_charts.reading_of(study)))


def plot_best_over_time(study: Study | StudyReading) -> Any:
    """The best fully validated mean over the seconds spent."""
    return figure_of(_charts.best_over_time(_charts.reading_of(study)))


def plot_race(study: Study | StudyReading) -> Any:
    """Scores of all folds by configuration, with the means of the fully validated."""
    return figure_of(_charts.race(_charts.reading_of(study)))


def plot_cutoffs(study: Study | StudyReading) -> Any:
    """Seconds of fits and the learned cutoffs over time, on a logarithmic scale."""
    return figure_of(_charts.cutoffs(_charts.reading_of(study)))


def plot_reward_per_second(study: Study | StudyReading) -> Any:
    """Reward per second of fits, as the paper counts it, with ranks as rewards."""
    return figure_of(_charts.reward_per_second(_charts.reading_of(study)))


def plot_parallel_coordinates(study: Study | StudyReading) -> Any:
    """Configurations as lines through their parameters, coloured by score."""
    return parallel_figure_of(_charts.parallel(_charts.reading_of(study)))


def figure_of(chart: Chart) -> Any:
    """A matplotlib figure of a chart."""
    figure = _figure()
    axes = figure.subplots()
    for series in chart.series:
        _draw(axes, series)
    axes.set(title=chart.title, xlabel=chart.x_title, ylabel=chart.y_title)
    if chart.y_log:
        axes.set_yscale("log")
    if len(chart.series) > 1 and chart.series[0].kind != "bars":
        axes.legend()
    return figure


def _draw(axes: Any, series: Series) -> None:
    if series.kind == "bars":
        axes.bar(series.x, series.y, color=series.colour)
    elif series.kind == "steps":
        axes.step(series.x, series.y, where="post", color=series.colour, label=series.name)
    elif series.kind == "line":
        axes.plot(series.x, series.y, ":", color=series.colour, label=series.name)
    else:
        size = 160 if series.symbol == "star" else 18
        axes.scatter(
            series.x,
            series.y,
            s=size,
            marker=SYMBOLS[series.symbol],
            color=series.colour,
            label=series.name,
        )


def parallel_figure_of(chart: Parallel) -> Any:
    """A matplotlib figure of parallel coordinates."""
    figure = _figure()
    from matplotlib import colormaps

    axes = figure.subplots()
    columns = [_charts.unit(dimension.values) for dimension in chart.dimensions]
    colours = colormaps["viridis"](_charts.unit(chart.colour))
    places = np.arange(len(columns))
    for row, colour in enumerate(colours):
        axes.plot(places, [column[row] for column in columns], color=colour, alpha=0.6)
    axes.set_xticks(places, [one.name for one in chart.dimensions], rotation=30, ha="right")
    for place, one in zip(places, chart.dimensions, strict=True):
        for height, text in one.ticks():
            axes.annotate(text, (place, height), fontsize=7)
    axes.set_yticks([])
    axes.set_title(chart.title)
    return figure


def _figure() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        missing("matplotlib", error)
    return Figure(figsize=(7.5, 4.2), layout="constrained")
