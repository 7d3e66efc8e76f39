"""Policies that learn nothing: the yardsticks."""

from __future__ import annotations

import numpy as np

from f2a_tune.bandit.game import Pull
from f2a_tune.bandit.levels import Floats
from f2a_tune.bandit.policies.base import ArrayPolicy, Choice, State

FOR_EVER = 1 << 40
# Settings of the constant policy.
ARM, LEVEL = 0, 1


def learn_nothing(
    pairs: Floats,
    counts: Floats,
    arms: Floats,
    ladder: Floats,
    settings: Floats,
    arm: int,
    level: int,
    finish_level: int,
    reward: float,
    cost: float,
    rng: np.random.Generator,
) -> bool:
    """Whatever was seen changes nothing."""
    return False


class ConstantPolicy(ArrayPolicy):
    """Always the same pair: what regret is measured against (Theorem 1).

    Without a pair, `simulate` gives it the best pair of the game.
    """

    name = "constant"
    learn = staticmethod(learn_nothing)

    def __init__(self, pull: Pull | None = None) -> None:
        self.pull = pull

    def new_state(self) -> State:
        """Check that the pair is in the game."""
        pull = self.pull
        if pull is None:
            raise ValueError("ConstantPolicy needs a pair: ConstantPolicy(Pull(arm, level)).")
        if not (0 <= pull.arm < self.n_arms and 0 <= pull.level < self.n_levels):
            raise ValueError(
                f"pull={pull!r} is not in this game of {self.n_arms} arms, {self.n_levels} levels."
            )
        return self.blank_state(settings=[pull.arm, pull.level])

    @staticmethod
    def decide(
        pairs: Floats,
        counts: Floats,
        arms: Floats,
        ladder: Floats,
        settings: Floats,
        epoch: int,
        rng: np.random.Generator,
    ) -> Choice:
        """The pair."""
        return Choice(int(settings[ARM]), int(settings[LEVEL]), FOR_EVER)


class Uniform(ArrayPolicy):
    """A pair at random, every epoch anew."""

    name = "uniform"
    learn = staticmethod(learn_nothing)

    def new_state(self) -> State:
        """Only the shape of the game matters."""
        return self.blank_state()

    @staticmethod
    def decide(
        pairs: Floats,
        counts: Floats,
        arms: Floats,
        ladder: Floats,
        settings: Floats,
        epoch: int,
        rng: np.random.Generator,
    ) -> Choice:
        """Any pair."""
        n_arms, n_levels = pairs.shape[0], pairs.shape[1]
        pair = int(rng.random() * (n_arms * n_levels))
        return Choice(pair // n_levels, pair % n_levels, 1)
