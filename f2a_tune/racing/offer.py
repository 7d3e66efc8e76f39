"""The configuration that a caller would try next, with a forecast of its quality and time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Growth:
    """A paused configuration that may be continued."""

    configuration: int
    worth: float
    """Expected improvement per second, over the best level to stop at."""
    level: int
    """The level to grow it to next."""
    seconds: float
    """Expected seconds until then."""


@dataclass(frozen=True, eq=False)
class Offer:
    """A configuration that has not been tried yet.

    Without a forecast (``chance`` is None), the race treats it as an average draw.
    """

    unit: NDArray[np.float64]
    """Its coordinates in the unit cube of the space; empty if no new configuration is left."""
    chance: float | None = None
    """Probability that it is better than all configurations so far."""
    finish: float | None = None
    """Probability that it finishes by the cutoff of a fresh pull."""
    seconds: float | None = None
    """Expected seconds of its first pull."""
    least_share: float = 0.0
    """Smallest cutoff as a share of all workers' seconds, for configurations known to be good.

    With 1 the configuration is a last resort and gets all of the remaining time.
    """
    worth: float = 0.0
    """Expected improvement per second if fits grow, over the best level to stop at."""
    level: int | None = None
    """The level to grow it to first; None if it cannot grow."""
    explores: bool = False
    """Whether it is to be tried no matter what the model expects of it."""
    grown: tuple[Growth, ...] = ()
    """Paused configurations that may be continued instead, best first."""
    score_unit: float = 0.0
    """Improvement, in the unit of ``worth``, that a difference of 1 between scores is worth."""
