"""The waiting levels (micro-arms) of a game and their costs (paper, sections 2.1 and 2.2).

A waiting game charges ``min(delay, wait)``. An auction charges a participation cost, plus the
price if the bid wins. Both are stored as a ladder of levels with two costs each (finishing and
giving up); policies and estimators read only these two columns.
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
    """A ladder of D waiting levels with their costs.

    Use `Levels.waiting` or `Levels.bidding` to create one.

    Parameters
    ----------
    finish_costs : tuple of float
        Cost of a pull that finishes in level i.
    give_up_costs : tuple of float
        Cost of a pull that is given up at the end of level i.

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
                "finish_costs and give_up_costs must have the same length of at least 1, "
                f"got {len(self.finish_costs)} and {len(self.give_up_costs)} entries."
            )
        # Policies skip longer waits as soon as no reward could compensate for the cost so far.
        # This is correct only if waiting longer never costs less.
        least = 0.0, 0.0
        for costs in zip(self.finish_costs, self.give_up_costs, strict=True):
            rising = costs[0] >= max(least) and costs[1] >= least[1] and min(costs) > 0
            if not (rising and all(map(math.isfinite, costs))):
                raise ValueError(
                    "costs must be finite and above 0, and must not fall from level to level, got "
                    f"finish_costs={self.finish_costs!r}, give_up_costs={self.give_up_costs!r}."
                )
            least = costs

    @classmethod
    def waiting(cls, waits: Iterable[Any]) -> Levels:
        """Return the levels of a waiting game.

        A pull costs its delay if it finishes, and the wait if it is given up.

        Parameters
        ----------
        waits : iterable of float
            Waiting times in any unit, positive and strictly increasing.
        """
        ladder = rising_numbers("levels", waits)
        return cls(ladder, ladder)

    @classmethod
    def bidding(cls, bids: Iterable[Any], participation_cost: float) -> Levels:
        """Return the levels of a second-price auction, in which a level is a bid.

        Parameters
        ----------
        bids : iterable of float
            Possible bids, positive and strictly increasing.
        participation_cost : float
            Cost of every pull. A pull that wins also costs the price.
        """
        fee = real_number("participation_cost", participation_cost)
        if not (math.isfinite(fee) and fee > 0):
            raise ValueError(f"participation_cost must be above 0, got {participation_cost!r}.")
        prices = rising_numbers("bids", bids)
        return cls(tuple(fee + price for price in prices), (fee,) * len(prices))

    def __len__(self) -> int:
        return len(self.finish_costs)

    @property
    def smallest_cost(self) -> float:
        """Cost of the cheapest possible pull; the paper's formulas use it as the unit of cost."""
        return min(self.finish_costs[0], self.give_up_costs[0])

    @property
    def largest_cost(self) -> float:
        """Cost of the most expensive possible pull."""
        return max(self.finish_costs[-1], self.give_up_costs[-1])

    @property
    def ratios(self) -> Floats:
        """Largest cost at each level over the smallest cost: j in the paper, B in its lemma."""
        dearest = np.maximum(self.finish_costs, self.give_up_costs)
        return np.asarray(dearest / self.smallest_cost, dtype=np.float64)

    def finish_level(self, cost: float) -> int:
        """Return the level in which a pull of this cost finished (at most the last level)."""
        # Costs are sums of floats: a cost that equals a level up to rounding belongs to it.
        index = int(np.searchsorted(self.finish_costs, cost * (1 - 1e-12)))
        return min(index, len(self) - 1)
