"""Text about a study: a summary, a table of configurations, and the formats of values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from f2a_tune.study.view import ConfigurationView, StudyView

LONGEST_VALUE = 60


def summary_sentence(view: StudyView) -> str:
    """Summarize the search in one or two sentences."""
    budget, winner = view.budget, view.winner
    time = "" if math.isnan(view.wall_seconds) else f" in {duration(view.wall_seconds)}"
    done = (
        f"{len(view.configurations)} configurations were tried{time}: {budget.n_finished} fits "
        f"finished, {budget.n_given_up} were given up, {budget.n_failed} failed."
    )
    if winner is None:
        return f"{done} No fit has finished, so there is no winner."
    folds = f"{len(winner.scores)} of {view.n_folds} folds"
    if view.n_folds == 1:
        folds = "one evaluation"
    spread = "" if math.isnan(winner.spread) else f" ± {number(winner.spread)}"
    return (
        f"{done} The best is number {winner.number} with {number(winner.mean)}{spread} ({folds})."
    )


def parameters(params: Mapping[str, Any]) -> str:
    """Format the names and values of parameters."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in sorted(params.items()))


def value_text(value: Any) -> str:
    """Format one value with at most `LONGEST_VALUE` characters."""
    text = number(value) if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def number(value: float) -> str:
    """Format a number with four significant digits; NaN becomes a dash."""
    return "–" if math.isnan(value) else f"{value:.4g}"


def duration(seconds: float) -> str:
    """Format a duration, such as ``12.3 s``, ``5 min 10 s`` or ``1 h 30 min``."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def ranked(view: StudyView) -> list[ConfigurationView]:
    """Sort configurations by number of scored folds, then by mean score, best first."""
    sign = 1.0 if view.maximize else -1.0
    scored = [one for one in view.configurations if one.scores]
    rest = [one for one in view.configurations if not one.scores]
    return sorted(scored, key=lambda one: (-len(one.scores), -sign * one.mean)) + rest


def table_of_configurations(view: StudyView, count: int = 10) -> str:
    """Return the best ``count`` configurations as an aligned text table."""
    rows: list[Sequence[str]] = [("number", "mean", "± sd", "folds", "s/fit", "parameters")]
    for one in ranked(view)[:count]:
        rows.append(
            (
                str(one.number),
                number(one.mean),
                number(one.spread),
                f"{len(one.scores)}/{view.n_folds}",
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
