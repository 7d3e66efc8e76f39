"""Learning curves: the scores and seconds of all fits at the levels that they have reached.

A level is a share of the effort of a whole fit, such as a number of boosting rounds. A fit is
looked at when it reaches a level; it can be paused there and continued later. Scores are oriented
so that larger is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f2a_tune.racing.pull import Look

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class LevelView:
    """One configuration at one of its levels; arrays have one entry per fold."""

    level: int
    scores: Floats
    """NaN for folds that have not reached the level."""
    seconds: Floats
    """Seconds of the fit until it reached the level; 0 for folds that have not."""


class Curves:
    """Curves of all configurations, with one row per configuration.

    Other modules of `racing` read its arrays but must not write to them.

    Parameters
    ----------
    n_folds : int
        Number of folds of a configuration.
    efforts : sequence of float
        Effort of each level, strictly increasing. Only their ratios matter.
    """

    def __init__(self, n_folds: int, efforts: Sequence[float]) -> None:
        self.efforts: Floats = np.asarray(efforts, dtype=np.float64) / efforts[-1]
        self.n_folds, self.n_levels = n_folds, len(efforts)
        self.n = 0
        self._scores = np.full((64, n_folds, self.n_levels), np.nan)
        self._seconds = np.full((64, n_folds, self.n_levels), np.nan)
        self._reached = np.full((64, n_folds), -1, dtype=np.intp)
        self._spent = np.zeros((64, n_folds))
        self._ended = np.zeros((64, n_folds), dtype=bool)
        self._level = np.full(64, -1, dtype=np.intp)
        self._validated_level = np.full(64, -1, dtype=np.intp)
        self._validated_mean = np.full(64, -np.inf)
        self._whole = np.zeros(64, dtype=bool)

    @property
    def scores(self) -> Floats:
        """Score of every configuration, fold and level; NaN where there was no look."""
        return self._scores[: self.n]

    @property
    def seconds(self) -> Floats:
        """Seconds of every fit until each level, scoring included; NaN without a look."""
        return self._seconds[: self.n]

    @property
    def reached(self) -> Indices:
        """Highest level of every configuration and fold; -1 without a look."""
        return self._reached[: self.n]

    @property
    def spent(self) -> Floats:
        """Seconds that a paused fit has run, and need not run again; 0 if it must restart."""
        return self._spent[: self.n]

    @property
    def ended(self) -> Flags:
        """Whether a fit cannot grow further: it failed, diverged or stopped by itself."""
        return self._ended[: self.n]

    @property
    def level(self) -> Indices:
        """Best level of every configuration by its folds so far; -1 without a look."""
        return self._level[: self.n]

    @property
    def validated_level(self) -> Indices:
        """Best level that all folds of a configuration have reached; -1 without one."""
        return self._validated_level[: self.n]

    @property
    def validated_mean(self) -> Floats:
        """Mean over all folds at the validated level; -inf without one."""
        return self._validated_mean[: self.n]

    @property
    def whole(self) -> Flags:
        """Whether a configuration cannot grow; its only level is the last one."""
        return self._whole[: self.n]

    def cover(self, row: int, *, whole: bool = False) -> None:
        """Make room for a configuration; ``whole`` means that it cannot grow."""
        while row >= len(self._scores):
            self._grow()
        self.n = max(self.n, row + 1)
        self._whole[row] |= whole

    def add(self, row: int, fold: int, looks: Sequence[Look], seconds: float) -> None:
        """Add the looks of one pull of ``seconds``.

        A look whose score is not a finite number ends the curve, and is not kept.
        """
        self.cover(row)
        self._spent[row, fold] += seconds
        for look in looks:
            if not np.isfinite(look.score):
                self._ended[row, fold] = True
                break
            self._scores[row, fold, look.level] = look.score
            self._seconds[row, fold, look.level] = look.seconds
            self._reached[row, fold] = max(self._reached[row, fold], look.level)

    def break_off(self, row: int, fold: int) -> None:
        """Record that a fit failed: nobody can use the levels that it has not reached."""
        self._ended[row, fold] = True

    def settle(self, row: int, fold: int) -> None:
        """Record that a fit stopped by itself: with more effort, it would be the same."""
        last = self._reached[row, fold]
        self._scores[row, fold, last + 1 :] = self._scores[row, fold, last]
        self._seconds[row, fold, last + 1 :] = self._seconds[row, fold, last]
        self._reached[row, fold] = self.n_levels - 1
        self._ended[row, fold] = True

    def restart(self, row: int, fold: int) -> None:
        """Record that a paused fit is gone: growing it further means to start it again."""
        self._spent[row, fold] = 0.0

    def expected_seconds(self, row: int, fold: int, level: int) -> float:
        """Return the expected seconds of a fit until a level that it has not reached.

        It has reached some level. The seconds grow as between its last two looks.
        """
        reached = int(self._reached[row, fold])
        seconds = self._seconds[row, fold]
        rate = seconds[reached] / self.efforts[reached]
        if reached > 0 and np.isfinite(seconds[reached - 1]):
            step = self.efforts[reached] - self.efforts[reached - 1]
            rate = (seconds[reached] - seconds[reached - 1]) / step
        return float(seconds[reached] + rate * (self.efforts[level] - self.efforts[reached]))

    def best(self, row: int) -> LevelView | None:
        """Choose the best level of a configuration again; None if there is none to use."""
        ended = self._ended[row]
        last = int(self._reached[row, ended].min()) if ended.any() else self.n_levels - 1
        scores = self._scores[row, :, : last + 1]
        self._level[row] = self._validated_level[row] = -1
        self._validated_mean[row] = -np.inf
        if np.isnan(scores).all():
            return None
        self._choose_levels(row, scores)
        level = int(self._level[row])
        seconds = np.nan_to_num(self._seconds[row, :, level])
        return LevelView(level, self._scores[row, :, level], seconds)

    def _choose_levels(self, row: int, scores: Floats) -> None:
        self._level[row] = best_level(scores)
        complete = np.flatnonzero(~np.isnan(scores).any(axis=0))
        if len(complete):
            means = scores[:, complete].mean(axis=0)
            best = int(means.argmax())
            self._validated_level[row] = complete[best]
            self._validated_mean[row] = means[best]

    def _grow(self) -> None:
        for name, filler in (
            ("_scores", np.nan),
            ("_seconds", np.nan),
            ("_reached", -1),
            ("_spent", 0.0),
            ("_ended", False),
            ("_level", -1),
            ("_validated_level", -1),
            ("_validated_mean", -np.inf),
            ("_whole", False),
        ):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.full_like(old, filler)]))


def best_level(scores: Floats) -> int:
    """Return the best level of the folds × levels scores of one configuration.

    A higher level is better if the folds that have reached it improved on average. Folds that have
    not reached it say nothing about it.
    """
    known = ~np.isnan(scores)
    levels = np.flatnonzero(known.any(axis=0))
    best = int(levels[0])
    for level in levels[1:]:
        both = known[:, level] & known[:, best]
        if both.any() and scores[both, level].mean() > scores[both, best].mean():
            best = int(level)
    return best
