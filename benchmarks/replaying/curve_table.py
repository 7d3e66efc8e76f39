"""Reads tables of recorded learning curves.

A table has n configurations, k folds and L levels of effort (epochs, rounds or trees). It has the
cumulative seconds and the score of every fit at every level, NaN where a fit did not get that far,
and the true score of every configuration and level by which a recommendation is judged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from f2a_tune.racing import Space
from replaying.table import Floats, parameter_of, row_key

# What a tuner recommends: a configuration and the level at which it was best.
Choice = tuple[int, int]


@dataclass(frozen=True)
class CurveTable:
    """One tuning problem with learning curves."""

    name: str
    space: Space
    units: Floats
    """n × p: every configuration in the space's unit cube, NaN where a parameter is inactive."""
    efforts: Floats
    """L: epochs, rounds or trees of each level, increasing."""
    seconds: Floats
    """n × k × L, cumulative."""
    scores: Floats
    truths: Floats
    """n × L: the score by which a recommendation is judged; NaN if no fit got there."""

    @property
    def n_folds(self) -> int:
        return int(self.scores.shape[1])

    @property
    def n_levels(self) -> int:
        return len(self.efforts)

    @cached_property
    def truth(self) -> Floats:
        """n: the truth of every configuration at its best level."""
        filled = np.where(np.isnan(self.truths), -np.inf, self.truths)
        return np.asarray(filled.max(axis=1))

    @cached_property
    def last_level(self) -> np.ndarray:
        """n: the highest level that every fold of a configuration has reached; -1 without any."""
        known = ~np.isnan(self.scores).any(axis=1)
        levels = np.arange(self.n_levels)
        return np.asarray(np.where(known, levels, -1).max(axis=1))

    @cached_property
    def mean_full_seconds(self) -> float:
        """Mean cost of a full evaluation, which is the unit of the budget."""
        return float(np.nanmax(self.seconds, axis=2).sum(axis=1).mean())

    def regret_of(self, choice: Choice | int) -> float:
        """(best − truth)/(best − median), with the median of the configurations' best levels."""
        finite = self.truth[np.isfinite(self.truth)]
        best, middle = finite.max(), float(np.median(self.truth))
        if not np.isfinite(middle) or middle >= best:
            middle = finite.min() if finite.min() < best else best - 1.0
        return float((best - self._truth_of(choice, finite.min())) / (best - middle))

    def better_share_of(self, choice: Choice | int) -> float:
        """Share of the configurations whose best level is truly better."""
        truth = self._truth_of(choice, -np.inf)
        return float((self.truth > truth).mean())

    def _truth_of(self, choice: Choice | int, missing: float) -> float:
        row, level = choice if isinstance(choice, tuple) else (choice, self.last_level[choice])
        found = self.truths[row, level]
        return missing if np.isnan(found) else float(found)

    @cached_property
    def row_of(self) -> dict[bytes, int]:
        """Row of each configuration by `row_key`."""
        return {row_key(unit): row for row, unit in enumerate(self.units)}

    @cached_property
    def rank_scores(self) -> Floats:
        """Rank of every configuration's last score in its fold, in [0, 1]."""
        last = np.take_along_axis(
            self.scores, np.maximum(self.last_level, 0)[:, None, None], axis=2
        )[:, :, 0]
        filled = np.where(np.isnan(last), -np.inf, last)
        ranks = filled.argsort(axis=0).argsort(axis=0) + 1.0
        return np.asarray(ranks / len(ranks))


def curve_tables(folder: Path) -> list[CurveTable]:
    """Read all tables of a folder, sorted by name."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise SystemExit(f"--curves {folder}: no .npz file there.")
    return [_read(path) for path in paths]


def _read(path: Path) -> CurveTable:
    with np.load(path, allow_pickle=False) as stored:
        space = Space(tuple(map(parameter_of, json.loads(str(stored["space"])))))
        configurations = json.loads(str(stored["configurations"]))
        scores = np.asarray(stored["scores"], dtype=float)
        seconds = np.asarray(stored["seconds"], dtype=float)
        if scores.ndim == 2:  # one curve per configuration, without noise: it is the truth itself
            truths, scores, seconds = scores, scores[:, None, :], seconds[:, None, :]
        else:
            truths = np.asarray(stored["test"], dtype=float).mean(axis=1)
        efforts = np.arange(1, scores.shape[2] + 1)
        if "levels" in stored:
            efforts = np.asarray(stored["levels"])
    units = np.array([space.encode(configuration) for configuration in configurations])
    return CurveTable(path.stem, space, units, efforts.astype(float), seconds, scores, truths)
