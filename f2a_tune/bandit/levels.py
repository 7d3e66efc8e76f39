"""The micro-arms of a game: how long one may wait, and what that costs.

A waiting game charges the delay itself: ``min(delay, wait)``. An auction charges a participation
cost, plus the price if the bid wins. Both are a ladder of levels with two costs each, so every
policy and estimator reads only those two columns (paper, section 2.1 and 2.2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f2a_tune.checks import real_number, rising_numbers

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Levels:
    """A ladder of D levels.

    Parameters
    ----------
    finish_costs
        Cost of a pull that finishes inside level i.
    give_up_costs
        Cost of a pull that is given up after level i.

    Examples
    --------
    >>> Levels.waiting([1, 2, 4]).ratios
    array([1., 2., 4.])
    """

    finish_costs: tuple[float, ...]
    give_up_costs: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.finish_costs or len(self.finish_costs) != len(self.give_up_costs):
            raise ValueError(
                "finish_costs and give_up_costs need one entry a level each, "
                f"got {len(self.finish_costs)} and {len(self.give_up_costs)}."
            )
        # Estimates stop looking at longer waits once no reward can make up for the cost so far,
        # which is right only if waiting longer never costs less.
        least = 0.0, 0.0
        for costs in zip(self.finish_costs, self.give_up_costs, strict=True):
            rising = costs[0] >= max(least) and costs[1] >= least[1] and min(costs) > 0
            if not (rising and all(map(math.isfinite, costs))):
                raise ValueError(
                    "costs must be finite, above 0 and must not fall from level to level, got "
                    f"finish_costs={self.finish_costs!r}, give_up_costs={self.give_up_costs!r}."
                )
            least = costs

    @classmethod
    def waiting(cls, waits: Iterable[Any]) -> Levels:
        """Levels of a waiting game: a pull costs its delay, or the wait if it is given up."""
        ladder = rising_numbers("levels", waits)
        return cls(ladder, ladder)

    @classmethod
    def bidding(cls, bids: Iterable[Any], participation_cost: float) -> Levels:
        """Levels of a second-price auction: a won pull costs the entry fee and the price."""
        fee = real_number("participation_cost", participation_cost)
        if not (math.isfinite(fee) and fee > 0):
            raise ValueError(f"participation_cost must be above 0, got {participation_cost!r}.")
        prices = rising_numbers("bids", bids)
        return cls(tuple(fee + price for price in prices), (fee,) * len(prices))

    def __len__(self) -> int:
        return len(self.finish_costs)

    @property
    def smallest_cost(self) -> float:
        """The unit in which the paper's formulas count cost: no pull is cheaper."""
        return min(self.finish_costs[0], self.give_up_costs[0])

    @property
    def largest_cost(self) -> float:
        """No pull is dearer."""
        return max(self.finish_costs[-1], self.give_up_costs[-1])

    @property
    def ratios(self) -> Floats:
        """Largest cost at each level in units of the smallest: the paper's j, its lemma's B."""
        dearest = np.maximum(self.finish_costs, self.give_up_costs)
        return np.asarray(dearest / self.smallest_cost, dtype=np.float64)

    def finish_level(self, cost: float) -> int:
        """The level inside which a finished pull of this cost ended (the last one if beyond)."""
        # Sums of prices are floats: a cost that equals a level but for the last bit belongs to it.
        index = int(np.searchsorted(self.finish_costs, cost * (1 - 1e-12)))
        return min(index, len(self) - 1)
