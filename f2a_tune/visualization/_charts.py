"""The data of all charts of a search, independent of the plotting library.

Each function returns a `Chart` or `Parallel`, which the plotly and matplotlib modules draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f2a_tune.outcome import FAILED, Kind
from f2a_tune.study.reader import read_study, study_of
from f2a_tune.study.view import PullView, StudyView

if TYPE_CHECKING:
    from optuna import Study

Floats = NDArray[np.float64]

# Okabe & Ito's colours, distinguishable with any colour vision, on white and on black.
FINISHED, GIVEN_UP, BROKEN, OVERHEAD, REFIT, BEST = (
    "#0072B2",
    "#E69F00",
    "#D55E00",
    "#999999",
    "#009E73",
    "#CC79A7",
)
DIMENSIONS_SHOWN = 8
LABEL = 18  # maximum number of characters of a tick label
# Largest number of learning curves that are drawn; the best ones come first.
MOST_CURVES = 40


@dataclass(frozen=True)
class Series:
    """One data series of a chart."""

    name: str
    x: Sequence[Any]
    y: Sequence[float]
    colour: str
    kind: str = "points"
    """One of points, line, steps and bars."""
    symbol: str = "circle"
    texts: Sequence[str] = ()


@dataclass(frozen=True)
class Chart:
    """A chart with two axes."""

    title: str
    x_title: str
    y_title: str
    series: list[Series] = field(default_factory=list)
    y_log: bool = False
    x_log: bool = False


@dataclass(frozen=True)
class Axis:
    """One axis of parallel coordinates."""

    name: str
    values: list[float]
    labels: list[str] | None = None
    """Names of the values 0, 1, 2 … of a categorical parameter."""

    def ticks(self) -> list[tuple[float, str]]:
        """Return heights from 0 to 1 with their labels."""
        if self.labels is not None:
            last = max(len(self.labels) - 1, 1)
            return [(place / last, text[:LABEL]) for place, text in enumerate(self.labels)]
        low, high = min(self.values, default=0.0), max(self.values, default=0.0)
        return [(0.0, f"{low:.3g}"), (1.0, f"{high:.3g}")]


@dataclass(frozen=True)
class Parallel:
    """Parallel coordinates, with one line per configuration."""

    title: str
    dimensions: list[Axis]
    colour: list[float]
    colour_title: str


def reading_of(study: Study | StudyView) -> StudyView:
    """Read a study into a `StudyView`; return a `StudyView` as it is."""
    if isinstance(study, StudyView):
        return study
    found = study_of(study)
    if not hasattr(found, "trials") or not hasattr(found, "user_attrs"):
        raise TypeError(
            f"study must be an Optuna study or a fitted F2ASearchCV, got {study!r} "
            f"({type(study).__name__})."
        )
    return read_study(found)


def time_account(view: StudyView) -> Chart:
    """Seconds of fits by outcome, of the refit and of overhead."""
    budget = view.budget
    parts = [
        (f"finished ({budget.n_finished})", budget.finished_seconds, FINISHED),
        (f"given up ({budget.n_given_up})", budget.given_up_seconds, GIVEN_UP),
        (f"failed ({budget.n_failed})", budget.failed_seconds, BROKEN),
        ("refit", budget.refit_seconds, REFIT),
        ("overhead", budget.overhead_seconds, OVERHEAD),
    ]
    if budget.n_pruned:
        parts.insert(2, (f"pruned ({budget.n_pruned})", budget.pruned_seconds, GIVEN_UP))
    series = [Series(name, [name], [seconds], colour, "bars") for name, seconds, colour in parts]
    return Chart("Where the time went", "", "worker-seconds", series)


def best_over_time(view: StudyView) -> Chart:
    """Best fully validated mean score over time."""
    times, values, labels = view.best_so_far()
    if times and not math.isnan(view.wall_seconds):
        times, values = [*times, max(view.wall_seconds, times[-1])], [*values, values[-1]]
        labels = [*labels, labels[-1]]
    series = [Series("best validated mean", times, values, BEST, "steps", texts=labels)]
    return Chart("Best score so far", "seconds spent", "mean score", series)


def learning_curves(view: StudyView) -> Chart:
    """Scores of the first fold by the number of rounds, one line per configuration."""
    curves = [(one, pull.curve) for one in view.configurations for pull in one.pulls
              if pull.fold == 0 and pull.curve]  # fmt: skip
    sign = 1.0 if view.maximize else -1.0
    scored = [
        (one, [point for point in curve if point.score is not None]) for one, curve in curves
    ]
    ranked = sorted(
        ((one, points) for one, points in scored if points),
        key=lambda pair: max(sign * (point.score or 0.0) for point in pair[1]),
    )[-MOST_CURVES:]
    best = None if view.winner is None else view.winner.number
    series = [
        Series(
            f"configuration {one.number}",
            [point.rounds for point in points],
            [float(point.score or 0.0) for point in points],
            BEST if one.number == best else FINISHED,
            "line",
            texts=[f"{point.seconds:.3g} s" for point in points],
        )
        for one, points in ranked
    ]
    return Chart("Learning curves", "rounds", "score of the first fold", series, x_log=True)


def race(view: StudyView) -> Chart:
    """Scores of all folds by configuration, and means of the fully validated ones."""
    scored = [pull for pull in view.pulls if pull.score is not None]
    folds = Series(
        "one fold",
        [pull.configuration for pull in scored],
        [_number(pull.score) for pull in scored],
        FINISHED,
        texts=[f"fold {pull.fold + 1}, {pull.seconds:.3g} s" for pull in scored],
    )
    complete = [o for o in view.configurations if len(o.scores) == view.n_folds]
    means = Series(
        "mean of all folds",
        [one.number for one in complete],
        [one.mean for one in complete],
        REFIT,
        symbol="diamond",
        texts=[f"{one.mean:.4g} ± {one.spread:.2g}" for one in complete],
    )
    series, winner = [folds, means], view.winner
    if winner is not None:
        series.append(Series("winner", [winner.number], [winner.mean], BEST, symbol="star"))
    return Chart("The race", "configuration, in order of creation", "score", series)


def cutoffs(view: StudyView) -> Chart:
    """Durations of fits, and cutoffs of first folds."""
    known = [pull for pull in view.pulls if not math.isnan(pull.at_seconds)]
    fresh = [p for p in known if p.fold == 0 and math.isfinite(p.cutoff_seconds)]
    series = [
        _times("finished", [p for p in known if p.kind == Kind.FINISHED], FINISHED, "circle"),
        _times("given up", [p for p in known if p.kind == Kind.GAVE_UP], GIVEN_UP, "x"),
        _times("failed", [p for p in known if p.kind in FAILED], BROKEN, "square"),
        Series(
            "cutoff of a first fold",
            [pull.at_seconds for pull in fresh],
            [pull.cutoff_seconds for pull in fresh],
            OVERHEAD,
            "line",
        ),
    ]
    return Chart("Learned cutoffs", "seconds spent", "seconds per fit", series, y_log=True)


def _times(name: str, pulls: list[PullView], colour: str, symbol: str) -> Series:
    return Series(
        name,
        [pull.at_seconds for pull in pulls],
        [max(pull.seconds, 1e-4) for pull in pulls],
        colour,
        symbol=symbol,
        texts=[f"configuration {pull.configuration}: {pull.reason}" for pull in pulls],
    )


def reward_per_second(view: StudyView) -> Chart:
    """Cumulative reward per second of fits.

    The reward of a finished fit is the share of all scores that it is at least as good as.
    """
    known = [pull for pull in view.pulls if not math.isnan(pull.at_seconds)]
    sign = 1.0 if view.maximize else -1.0
    ordered = np.sort([sign * _number(p.score) for p in known if p.score is not None])
    times, rates, reward, seconds = [], [], 0.0, 0.0
    for pull in known:
        seconds += pull.seconds
        if pull.score is not None:
            reward += float(np.searchsorted(ordered, sign * pull.score, "right")) / len(ordered)
        if seconds > 0:
            times.append(pull.at_seconds)
            rates.append(reward / seconds)
    series = [Series("reward per second", times, rates, FINISHED, "line")]
    return Chart(
        "Reward per second", "seconds spent", "sum of score ranks per second of fits", series
    )


def parallel(view: StudyView) -> Parallel:
    """Parameters, time and mean score of all configurations with a score."""
    shown = [o for o in view.configurations if o.scores and math.isfinite(o.mean)]
    counts: dict[str, int] = {}
    for one in shown:
        for name in one.params:
            counts[name] = counts.get(name, 0) + 1
    names = sorted(counts, key=lambda name: -counts[name])[:DIMENSIONS_SHOWN]
    dimensions = [_dimension(name, [one.params.get(name) for one in shown]) for name in names]
    seconds = [math.log10(max(one.seconds_per_pull, 1e-4)) for one in shown]
    means = [one.mean for one in shown]
    dimensions.append(Axis("log10 seconds per fit", seconds))
    dimensions.append(Axis("mean score", means))
    return Parallel("Parameters, time and score", dimensions, means, "mean score")


def _dimension(name: str, values: list[Any]) -> Axis:
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(numbers) == sum(value is not None for value in values) and numbers:
        low, high = min(numbers), max(numbers)
        if low > 0 and high / low > 100:
            logs = [math.nan if v is None else math.log10(v) for v in values]
            return Axis(f"log10 {name}", _filled(logs))
        return Axis(name, _filled([math.nan if v is None else float(v) for v in values]))
    labels = sorted({"–" if value is None else str(value) for value in values})
    places = [float(labels.index("–" if v is None else str(v))) for v in values]
    return Axis(name, places, labels)


def _filled(values: list[float]) -> list[float]:
    """Replace NaN, the value of an inactive parameter, by a value below all others."""
    known = [value for value in values if not math.isnan(value)]
    below = min(known) - 0.1 * ((max(known) - min(known)) or 1.0) if known else 0.0
    return [below if math.isnan(value) else value for value in values]


def unit(values: Sequence[float]) -> Floats:
    """Scale values to the range from 0 to 1."""
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        return array
    low, high = array.min(), array.max()
    return (array - low) / (high - low) if high > low else np.full(len(array), 0.5)


def bin_text(values: Sequence[float], place: int, count: int) -> str:
    """Format the range of values of a bin."""
    low, high = min(values), max(values)
    step = (high - low) / count
    return f"{low + place * step:.3g} to {low + (place + 1) * step:.3g}"


def _number(score: float | None) -> float:
    return math.nan if score is None else score
