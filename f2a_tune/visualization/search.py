"""Interactive plotly figures of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from f2a_tune.visualization import _charts
from f2a_tune.visualization._charts import Chart, Parallel, Series
from f2a_tune.visualization._panels import missing

if TYPE_CHECKING:
    from optuna import Study

    from f2a_tune.study.view import StudyView

BINS = 8  # number of colours in parallel coordinates


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
    """Draw a chart with plotly."""
    objects = _plotly()
    figure = objects.Figure([_trace(objects, series) for series in chart.series])
    figure.update_layout(
        title=chart.title,
        xaxis_title=chart.x_title,
        yaxis_title=chart.y_title,
        barmode="stack",
        showlegend=len(chart.series) > 1 and chart.series[0].kind != "bars",
        template="plotly_white",
        margin={"l": 60, "r": 20, "t": 50, "b": 50},
    )
    if chart.y_log:
        figure.update_yaxes(type="log")
    if chart.x_log:
        figure.update_xaxes(type="log")
    return figure


def _trace(objects: Any, series: Series) -> Any:
    if series.kind == "bars":
        return objects.Bar(x=series.x, y=series.y, name=series.name, marker_color=series.colour)
    look: dict[str, Any] = {"mode": "markers", "marker": {"symbol": series.symbol, "size": 7}}
    if series.symbol == "star":
        look["marker"]["size"] = 14
    if series.kind == "line":
        look = {"mode": "lines", "line": {"dash": "dot"}}
    elif series.kind == "steps":
        look = {"mode": "lines+markers", "line": {"shape": "hv"}}
    trace = objects.Scatter(x=series.x, y=series.y, name=series.name, **look)
    trace.update(marker_color=series.colour, line_color=series.colour)
    if len(series.texts):
        trace.update(text=list(series.texts), hovertemplate="%{text}<br>(%{x:.4g}, %{y:.4g})")
    return trace


def parallel_figure_of(chart: Parallel) -> Any:
    """Draw parallel coordinates with plotly as plain lines, which need no WebGL."""
    objects = _plotly()
    from plotly.colors import sample_colorscale

    figure = objects.Figure()
    columns = [_charts.unit(dimension.values) for dimension in chart.dimensions]
    shades = [int(BINS * one) for one in 0.999 * _charts.unit(chart.colour)]
    places = list(range(len(columns)))
    for shade in sorted(set(shades)):
        x: list[float | None] = []
        y: list[float | None] = []
        for row in (row for row, mine in enumerate(shades) if mine == shade):
            x += [*places, None]
            y += [*(float(column[row]) for column in columns), None]
        (colour,) = sample_colorscale("Viridis", (shade + 0.5) / BINS)
        line = {"color": colour, "width": 1.5}
        name = f"{chart.colour_title}: {_charts.bin_text(chart.colour, shade, BINS)}"
        figure.add_trace(objects.Scatter(x=x, y=y, mode="lines", line=line, name=name))
    for place, one in zip(places, chart.dimensions, strict=True):
        for height, text in one.ticks():
            figure.add_annotation(
                x=place, y=height, text=text, showarrow=False, xanchor="left", font_size=10
            )
    figure.update_layout(title=chart.title, template="plotly_white", hovermode=False)
    figure.update_layout(margin={"l": 20, "r": 20, "t": 50, "b": 80})
    names = [one.name for one in chart.dimensions]
    figure.update_xaxes(tickvals=places, ticktext=names, tickangle=20)
    figure.update_yaxes(showticklabels=False, range=[-0.05, 1.08])
    return figure


def _plotly() -> Any:
    try:
        from plotly import graph_objects
    except ImportError as error:
        missing("plotly", error)
    return graph_objects
