"""The level at which a growing configuration counts, from the records of its folds.

The rule is that of the race: the level with the best mean if all folds have reached it, else the
level at which the folds that have reached it are best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from f2a_tune.outcome import Kind
from f2a_tune.racing.curves import best_level
from f2a_tune.study.fold_record import FoldRecord, metric_of


def chosen_level(records: Sequence[FoldRecord], n_folds: int, metric: str | None) -> int:
    """Return the level at which a configuration counts; -1 if it does not grow."""
    growing = [record for record in records if record.curve]
    if not growing:
        return -1
    n_levels = 1 + max(record.curve[-1].level for record in growing)
    scores = np.full((max(n_folds, len(growing)), n_levels), np.nan)
    for row, record in enumerate(growing):
        for level in range(n_levels):
            reached = record.at(level)
            if reached is not None:
                scores[row, level] = metric_of(reached.result.test_scores, metric)
    scores[~np.isfinite(scores)] = np.nan
    if np.isnan(scores).all():
        return n_levels - 1
    complete = np.flatnonzero(~np.isnan(scores).any(axis=0))
    if len(complete):
        return int(complete[scores[:, complete].mean(axis=0).argmax()])
    return best_level(scores)


def chosen_rounds(records: Sequence[FoldRecord], level: int) -> dict[str, Any]:
    """Return the parameter that is the number of rounds, with its value at a level."""
    for record in records:
        for reached in record.curve:
            if reached.level == level:
                return {record.rounds_parameter: reached.rounds}
    return {}


def kind_at(record: FoldRecord, level: int) -> Kind | None:
    """Return how a fold ended; None if it grows and has not reached this level."""
    if not record.grows or record.kind is not Kind.FINISHED:
        return record.kind
    return Kind.FINISHED if record.at(level) is not None else None
