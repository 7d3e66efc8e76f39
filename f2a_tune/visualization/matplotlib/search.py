"""Static matplotlib figures of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from f2a_tune.visualization import _charts
from f2a_tune.visualization._charts import Chart, Parallel, Series
from f2a_tune.visualization._panels import missing

if TYPE_CHECKING:
    from optuna import Study

    from f2a_tune.study.view import StudyView

SYMBOLS = {"circle": "o", "x": "x", "square": "s", "diamond": "D", "star": "*"}


def plot_time_account(study: Study | StudyView) -> Any:
    """Plot the seconds of finished, given-up and failed fits, of the refit and of overhead."""
    return figure_of(_charts.time_account(_charts.reading_of(study)))


def plot_best_over_time(study: Study | StudyView) -> Any:
    """Plot the best fully validated mean score over the seconds spent."""
    return figure_of(_charts.best_over_time(_charts.reading_of(study)))


def plot_race(study: Study | StudyView) -> Any:
    """Plot the scores of all folds by configuration, and means of fully validated ones."""
    return figure_of(_charts.race(_charts.reading_of(study)))


def plot_learning_curves(study: Study | StudyView) -> Any:
    """Plot the scores of fits that grow by their number of rounds, one line per configuration."""
    return figure_of(_charts.learning_curves(_charts.reading_of(study)))


def plot_cutoffs(study: Study | StudyView) -> Any:
    """Plot durations of fits and learned cutoffs over time, on a logarithmic scale."""
    return figure_of(_charts.cutoffs(_charts.reading_of(study)))


def plot_reward_per_second(study: Study | StudyView) -> Any:
    """Plot the reward per second of fits as in the paper, with score ranks as rewards."""
    return figure_of(_charts.reward_per_second(_charts.reading_of(study)))


def plot_parallel_coordinates(study: Study | StudyView) -> Any:
    """Plot configurations as lines through their parameter values, coloured by score."""
    return parallel_figure_of(_charts.parallel(_charts.reading_of(study)))


def figure_of(chart: Chart) -> Any:
    """Draw a chart with matplotlib."""
    figure = _figure()
    axes = figure.subplots()
    for series in chart.series:
        _draw(axes, series)
    axes.set(title=chart.title, xlabel=chart.x_title, ylabel=chart.y_title)
    if chart.y_log:
        axes.set_yscale("log")
    if chart.x_log:
        axes.set_xscale("log")
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
    """Draw parallel coordinates with matplotlib."""
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
