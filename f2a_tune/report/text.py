"""A study in words: what was read goes in, sentences and tables of text come out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from f2a_tune.reading import ConfigurationLine, StudyReading

LONGEST_VALUE = 60


def summary_sentence(reading: StudyReading) -> str:
    """What happened, in a sentence or two."""
    use, winner = reading.use, reading.winner
    time = "" if math.isnan(reading.budget_seconds) else f" in {duration(reading.budget_seconds)}"
    done = (
        f"{len(reading.configurations)} configurations were tried{time}: {use.n_finished} fits "
        f"finished, {use.n_given_up} were given up, {use.n_failed} failed."
    )
    if winner is None:
        return f"{done} Nothing has finished, so there is no winner."
    folds = f"{len(winner.scores)} of {reading.n_folds} folds"
    if reading.n_folds == 1:
        folds = "one evaluation"
    spread = "" if math.isnan(winner.spread) else f" ± {number(winner.spread)}"
    return (
        f"{done} The best is number {winner.number} with {number(winner.mean)}{spread} ({folds})."
    )


def parameters(params: Mapping[str, Any]) -> str:
    """Names and values, short enough to read."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in sorted(params.items()))


def value_text(value: Any) -> str:
    """One value."""
    text = number(value) if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def number(value: float) -> str:
    """As many digits as tell something."""
    return "–" if math.isnan(value) else f"{value:.4g}"


def duration(seconds: float) -> str:
    """As people say it."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def ranked(reading: StudyReading) -> list[ConfigurationLine]:
    """The best first: those with more folds before those with fewer."""
    sign = 1.0 if reading.maximize else -1.0
    scored = [one for one in reading.configurations if one.scores]
    rest = [one for one in reading.configurations if not one.scores]
    return sorted(scored, key=lambda one: (-len(one.scores), -sign * one.mean)) + rest


def table_of_configurations(reading: StudyReading, count: int = 10) -> str:
    """The best few, as aligned text."""
    rows: list[Sequence[str]] = [("number", "mean", "± sd", "folds", "s/fit", "parameters")]
    for one in ranked(reading)[:count]:
        rows.append(
            (
                str(one.number),
                number(one.mean),
                number(one.spread),
                f"{len(one.scores)}/{reading.n_folds}",
                number(one.seconds_per_pull),
                parameters(one.params),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[:5], widths, strict=True)]
        lines.append("  ".join([*cells, row[5]]))
    return "\n".join(lines)
