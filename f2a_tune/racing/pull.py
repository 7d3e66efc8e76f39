"""What the race hands out and hears: pulls, and the recommendation at any time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pull:
    """One fold fit to run now.

    ``configuration`` is a number that stands for a configuration. A pull with ``fresh`` asks the
    caller to propose the configuration that gets this number: 0, 1, 2 and so on in a race, any
    number below the pool's size with a bandit policy.
    """

    configuration: int
    fold: int
    cutoff_seconds: float
    fresh: bool = False
    reason: str = ""
    number: int = 0
    """The how-manieth pull of the race this is."""


@dataclass(frozen=True)
class Recommendation:
    """The configuration to use if the race ended now."""

    configuration: int
    folds_done: int
    mean: float
    spread: float
    """Standard deviation over its folds; 0 with a single one."""
    fully_validated: bool
