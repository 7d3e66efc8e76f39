"""The values that a race takes and returns: pulls, looks and recommendations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pull:
    """One fit of a configuration on one fold, to be run now."""

    configuration: int
    """Number of the configuration, from 0."""
    fold: int
    """Index of the fold, from 0."""
    cutoff_seconds: float
    """Seconds after which the fit is given up."""
    fresh: bool = False
    """Whether the caller must choose a new configuration, which gets this number.

    New numbers are 0, 1, 2 and so on in a race, and any number below the pool's size with a bandit
    policy.
    """
    reason: str = ""
    """Short explanation of the choice, for logs and reports."""
    number: int = 0
    """Zero-based index of this pull in the race."""
    level: int | None = None
    """Level to grow the fit to, from 0; None for a whole fit."""


@dataclass(frozen=True)
class Look:
    """The score of a growing fit at one level."""

    level: int
    """Index of the level, from 0."""
    score: float
    seconds: float
    """Seconds of the fit until this level, from its start and without pauses."""


@dataclass(frozen=True)
class Recommendation:
    """The configuration to use if the race ended now."""

    configuration: int
    """Number of the configuration."""
    folds_done: int
    """Number of finished folds."""
    mean: float
    """Mean score over the finished folds."""
    spread: float
    """Standard deviation of the scores over the finished folds; 0 for a single fold."""
    fully_validated: bool
    """Whether all folds are finished."""
    level: int | None = None
    """Level to fit it at; None without levels."""
