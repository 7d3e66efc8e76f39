"""Baseline policies that do not learn."""

from __future__ import annotations

import numpy as np

from f2a_tune.bandit.game import MicroArm
from f2a_tune.bandit.policies.base import ArrayPolicy, Choice, Observation, State

UNLIMITED = 1 << 40
# Settings of the constant policy: the pair that it pulls.
ARM, LEVEL = 0, 1


def learn_nothing(state: State, seen: Observation, rng: np.random.Generator) -> bool:
    """Ignore the observation."""
    return False


class ConstantPolicy(ArrayPolicy):
    """Always pull the same pair; regret is measured against the best such policy (Theorem 1).

    Parameters
    ----------
    pull : MicroArm, default=None
        The pair to pull. With None, `simulate` uses the best pair of the game.
    """

    name = "constant"
    learn = staticmethod(learn_nothing)

    def __init__(self, pull: MicroArm | None = None) -> None:
        self.pull = pull

    def new_state(self) -> State:
        """Return the state, after checking that the pair is in the game."""
        pull = self.pull
        if pull is None:
            raise ValueError(
                "ConstantPolicy needs a pair to pull. Use ConstantPolicy(MicroArm(arm, level))."
            )
        if not (0 <= pull.arm < self.n_arms and 0 <= pull.level < self.n_levels):
            raise ValueError(
                f"pull={pull!r} is not in this game, which has {self.n_arms} arms and "
                f"{self.n_levels} levels."
            )
        return self.blank_state(settings=[pull.arm, pull.level])

    @staticmethod
    def decide(state: State, epoch: int, rng: np.random.Generator) -> Choice:
        """Return the pair."""
        return Choice(int(state.settings[ARM]), int(state.settings[LEVEL]), UNLIMITED)


class Uniform(ArrayPolicy):
    """Pull a pair drawn uniformly at random."""

    name = "uniform"
    learn = staticmethod(learn_nothing)

    def new_state(self) -> State:
        """Return an empty state; only the shape of the game is used."""
        return self.blank_state()

    @staticmethod
    def decide(state: State, epoch: int, rng: np.random.Generator) -> Choice:
        """Return a random pair."""
        n_arms, n_levels = state.pairs.shape[0], state.pairs.shape[1]
        pair = int(rng.random() * (n_arms * n_levels))
        return Choice(pair // n_levels, pair % n_levels, 1)
