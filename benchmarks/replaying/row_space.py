"""A space whose candidates are the rows of a table.

A model-based tuner draws candidates and predicts each of them. In a real search it then gets the
candidate that it chose. With a table it would get the nearest row instead, which in seven
dimensions and with some hundred rows is another configuration. So the candidates are rows: random
ones in place of random points of the space, and the nearest rows in place of neighbours.
"""

from __future__ import annotations

import numpy as np

from f2a_tune.racing import Space
from replaying.table import Floats


class RowSpace(Space):
    """The space of a table, restricted to its rows."""

    def __init__(self, space: Space, units: Floats) -> None:
        super().__init__(space.parameters)
        object.__setattr__(self, "units", units)
        object.__setattr__(self, "unit_features", super().features(units))

    def sample(self, rng: np.random.Generator, count: int) -> Floats:
        """Return random rows of the table."""
        return self.units[rng.choice(len(self.units), min(count, len(self.units)), replace=False)]

    def neighbours(self, units: Floats, rng: np.random.Generator) -> Floats:
        """Return for every row the row of the table that is nearest to a neighbour of it."""
        features = super().features(super().neighbours(units, rng))
        apart = (features**2).sum(axis=1)[:, None] + (self.unit_features**2).sum(axis=1)
        apart = apart - 2.0 * features @ self.unit_features.T
        return np.unique(self.units[apart.argmin(axis=1)], axis=0)
