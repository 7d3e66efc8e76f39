"""Random games for tests."""

import numpy as np
from hypothesis import strategies as st

from f2a_tune.bandit import Game


def random_game(seed: int, n_arms: int = 2, n_levels: int = 3) -> Game:
    """A random game, often with pulls that never finish."""
    rng = np.random.default_rng(seed)
    delays = rng.dirichlet(np.ones(n_levels + 1) * 0.7, size=n_arms)
    levels = np.cumsum(rng.integers(1, 4, size=n_levels))
    return Game(delays, rng.uniform(0.1, 1.0, size=(n_arms, n_levels)), levels)


games = st.builds(
    random_game, st.integers(0, 10_000), n_arms=st.integers(1, 4), n_levels=st.integers(1, 6)
)
