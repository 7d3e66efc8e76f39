"""What a caller would draw next, and what it expects of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Offer:
    """A configuration not tried yet.

    Without a forecast (``chance`` is None) the race takes it for an average draw.
    """

    unit: NDArray[np.float64]
    """Its row in the space."""
    chance: float | None = None
    """Chance that it is better than all configurations so far."""
    finish: float | None = None
    """Chance that it finishes by the cutoff of a fresh pull."""
    seconds: float | None = None
    """What its pull is expected to cost."""
    least_share: float = 0.0
    """Of the budget, what it is waited for at least: somebody believes in it."""
