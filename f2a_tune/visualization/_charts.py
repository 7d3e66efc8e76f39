"""Charts of a search, whoever draws them: a study that was read goes in, series of numbers out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f2a_tune.outcome import FAILED, Kind
from f2a_tune.reading import PullLine, StudyReading, read_study

if TYPE_CHECKING:
    from optuna import Study

Floats = NDArray[np.float64]

# Okabe & Ito's colours: told apart with any colour vision, on white and on black.
FINISHED, GIVEN_UP, BROKEN, OVERHEAD, REFIT, BEST = (
    "#0072B2",
    "#E69F00",
    "#D55E00",
    "#999999",
    "#009E73",
    "#CC79A7",
)
DIMENSIONS_SHOWN = 8
LABEL = 18  # characters of a name on an axis
KIND_NAMES = {
    Kind.FINISHED: "finished",
    Kind.GAVE_UP: "given up",
    Kind.FAILED: "failed",
    Kind.OUT_OF_MEMORY: "failed",
}


@dataclass(frozen=True)
class Series:
    """Numbers that belong together."""

    name: str
    x: Sequence[Any]
    y: Sequence[float]
    colour: str
    kind: str = "points"
    """points, line, steps or bars."""
    symbol: str = "circle"
    texts: Sequence[str] = ()


@dataclass(frozen=True)
class Chart:
    """One plot."""

    title: str
    x_title: str
    y_title: str
    series: list[Series] = field(default_factory=list)
    y_log: bool = False


@dataclass(frozen=True)
class Dimension:
    """One axis of parallel coordinates."""

    name: str
    values: list[float]
    labels: list[str] | None = None
    """Of the values 0, 1, 2 …, where they are names."""

    def ticks(self) -> list[tuple[float, str]]:
        """Heights from 0 to 1, with what they stand for."""
        if self.labels is not None:
            last = max(len(self.labels) - 1, 1)
            return [(place / last, text[:LABEL]) for place, text in enumerate(self.labels)]
        low, high = min(self.values, default=0.0), max(self.values, default=0.0)
        return [(0.0, f"{low:.3g}"), (1.0, f"{high:.3g}")]


@dataclass(frozen=True)
class Parallel:
    """Configurations as lines through their parameters."""

    title: str
    dimensions: list[Dimension]
    colour: list[float]
    colour_title: str


def reading_of(study: Study | StudyReading) -> StudyReading:
    """Whatever is given, read."""
    if isinstance(study, StudyReading):
        return study
    if not hasattr(study, "trials") or not hasattr(study, "user_attrs"):
        raise TypeError(
            f"study must be an Optuna study or search.study_, got {study!r} "
            f"({type(study).__name__})."
        )
    return read_study(study)


def time_account(reading: StudyReading) -> Chart:
    """Where the seconds went."""
    use = reading.use
    parts = [
        (f"finished ({use.n_finished})", use.finished_seconds, FINISHED),
        (f"given up ({use.n_given_up})", use.given_up_seconds, GIVEN_UP),
        (f"failed ({use.n_failed})", use.failed_seconds, BROKEN),
        ("refit", use.refit_seconds, REFIT),
        ("overhead", use.overhead_seconds, OVERHEAD),
    ]
    series = [Series(name, [name], [seconds], colour, "bars") for name, seconds, colour in parts]
    return Chart("Where the time went", "", "worker-seconds", series)


def best_over_time(reading: StudyReading) -> Chart:
    """The best fully validated mean so far."""
    times, values, labels = reading.best_so_far()
    if times and not math.isnan(reading.budget_seconds):
        times, values = [*times, max(reading.budget_seconds, times[-1])], [*values, values[-1]]
        labels = [*labels, labels[-1]]
    series = [Series("best validated mean", times, values, BEST, "steps", texts=labels)]
    return Chart("The best so far", "seconds spent", "mean score", series)


def race(reading: StudyReading) -> Chart:
    """Configurations and their folds."""
    scored = [pull for pull in reading.pulls if pull.score is not None]
    folds = Series(
        "one fold",
        [pull.configuration for pull in scored],
        [_number(pull.score) for pull in scored],
        FINISHED,
        texts=[f"fold {pull.fold + 1}, {pull.seconds:.3g} s" for pull in scored],
    )
    complete = [o for o in reading.configurations if len(o.scores) == reading.n_folds]
    means = Series(
        "mean of all folds",
        [one.number for one in complete],
        [one.mean for one in complete],
        REFIT,
        symbol="diamond",
        texts=[f"{one.mean:.4g} ± {one.spread:.2g}" for one in complete],
    )
    series, winner = [folds, means], reading.winner
    if winner is not None:
        series.append(Series("winner", [winner.number], [winner.mean], BEST, symbol="star"))
    return Chart("The race", "configuration, in the order of drawing", "score", series)


def cutoffs(reading: StudyReading) -> Chart:
    """How long fits took, and how long they would have been waited for."""
    known = [pull for pull in reading.pulls if not math.isnan(pull.at_seconds)]
    fresh = [p for p in known if p.fold == 0 and math.isfinite(p.cutoff_seconds)]
    series = [
        _times("finished", [p for p in known if p.kind is Kind.FINISHED], FINISHED, "circle"),
        _times("given up", [p for p in known if p.kind is Kind.GAVE_UP], GIVEN_UP, "x"),
        _times("failed", [p for p in known if p.kind in FAILED], BROKEN, "square"),
        Series(
            "cutoff of a first fold",
            [pull.at_seconds for pull in fresh],
            [pull.cutoff_seconds for pull in fresh],
            OVERHEAD,
            "line",
        ),
    ]
    return Chart("Learned cutoffs", "seconds spent", "seconds of a fit", series, y_log=True)


def _times(name: str, pulls: list[PullLine], colour: str, symbol: str) -> Series:
    return Series(
        name,
        [pull.at_seconds for pull in pulls],
        [max(pull.seconds, 1e-4) for pull in pulls],
        colour,
        symbol=symbol,
        texts=[f"configuration {pull.configuration}: {pull.reason}" for pull in pulls],
    )


def reward_per_second(reading: StudyReading) -> Chart:
    """Reward so far per second of fits: a finished fit pays the share of scores it beats."""
    known = [pull for pull in reading.pulls if not math.isnan(pull.at_seconds)]
    sign = 1.0 if reading.maximize else -1.0
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
    return Chart("Reward per second", "seconds spent", "ranks won per second of fits", series)


def parallel(reading: StudyReading) -> Parallel:
    """Parameters of all configurations with a score, with their time and mean."""
    shown = [o for o in reading.configurations if o.scores and math.isfinite(o.mean)]
    counts: dict[str, int] = {}
    for one in shown:
        for name in one.params:
            counts[name] = counts.get(name, 0) + 1
    names = sorted(counts, key=lambda name: -counts[name])[:DIMENSIONS_SHOWN]
    dimensions = [_dimension(name, [one.params.get(name) for one in shown]) for name in names]
    seconds = [math.log10(max(one.seconds_per_pull, 1e-4)) for one in shown]
    means = [one.mean for one in shown]
    dimensions.append(Dimension("log10 seconds of a fit", seconds))
    dimensions.append(Dimension("mean score", means))
    return Parallel("Parameters, time and score", dimensions, means, "mean score")


def _dimension(name: str, values: list[Any]) -> Dimension:
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(numbers) == sum(value is not None for value in values) and numbers:
        low, high = min(numbers), max(numbers)
        if low > 0 and high / low > 100:
            logs = [math.nan if v is None else math.log10(v) for v in values]
            return Dimension(f"log10 {name}", _filled(logs))
        return Dimension(name, _filled([math.nan if v is None else float(v) for v in values]))
    labels = sorted({"–" if value is None else str(value) for value in values})
    places = [float(labels.index("–" if v is None else str(v))) for v in values]
    return Dimension(name, places, labels)


def _filled(values: list[float]) -> list[float]:
    """A parameter that a configuration does not have is drawn below all others."""
    known = [value for value in values if not math.isnan(value)]
    below = min(known) - 0.1 * ((max(known) - min(known)) or 1.0) if known else 0.0
    return [below if math.isnan(value) else value for value in values]


def unit(values: Sequence[float]) -> Floats:
    """Numbers from 0 to 1."""
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        return array
    low, high = array.min(), array.max()
    return (array - low) / (high - low) if high > low else np.full(len(array), 0.5)


def bin_text(values: Sequence[float], place: int, count: int) -> str:
    """From where to where a bin reaches."""
    low, high = min(values), max(values)
    step = (high - low) / count
    return f"{low + place * step:.3g} to {low + (place + 1) * step:.3g}"


def _number(score: float | None) -> float:
    return math.nan if score is None else score
