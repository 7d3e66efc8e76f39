"""Index policies: pull every pair once, then always the pair of the highest index."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from f2a_tune.bandit.levels import Floats, Levels
from f2a_tune.bandit.policies.base import ArrayPolicy, Choice, State
from f2a_tune.bandit.statistics import COSTS, PULLS, REWARDS, add_pull

# Settings: the policy's constant, and the largest cost, which its formula counts as 1.
CONSTANT, LARGEST_COST = 0, 1


class IndexPolicy(ArrayPolicy):
    """A policy given by ``formula(reward, cost, pulls, log_epoch, constant)``, a pair's index.

    Reward and cost are the pair's sums, with costs divided by the largest cost, so that they lie
    in [λ, 1] as the rivals' papers ask; λ is the smallest cost in that unit (1/D in the paper's
    games). Indices differ from the authors' by that factor, which no argmax sees.
    """

    @staticmethod
    @abstractmethod
    def formula(
        reward: float, cost: float, pulls: float, log_epoch: float, constant: float
    ) -> float:
        """The index of one pair; it must use nothing but its arguments and `math`."""

    @abstractmethod
    def constant(self, levels: Levels) -> float:
        """The number that the formula needs to know of the game, or of the user's settings."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.decide = staticmethod(highest_index(cls.formula))

    def new_state(self) -> State:
        """Nothing pulled yet."""
        return self.blank_state(
            pair_columns=3, settings=[self.constant(self.levels), self.levels.largest_cost]
        )

    @staticmethod
    def learn(
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
        """Only the pulled pair learns."""
        add_pull(pairs, arm, level, reward, cost / settings[LARGEST_COST])
        return False


def highest_index(
    formula: Callable[[float, float, float, float, float], float],
) -> Callable[..., Choice]:
    """The ``decide`` of an index policy."""

    def decide(
        pairs: Floats,
        counts: Floats,
        arms: Floats,
        ladder: Floats,
        settings: Floats,
        epoch: int,
        rng: np.random.Generator,
    ) -> Choice:
        n_arms, n_levels = pairs.shape[0], pairs.shape[1]
        log_epoch = math.log(max(epoch, 1))
        best_arm, best_level, highest = 0, 0, -math.inf
        for arm in range(n_arms):
            for level in range(n_levels):
                if pairs[arm, level, PULLS] == 0:
                    return Choice(arm, level, 1)
                index = formula(
                    pairs[arm, level, REWARDS],
                    pairs[arm, level, COSTS],
                    pairs[arm, level, PULLS],
                    log_epoch,
                    settings[CONSTANT],
                )
                if index > highest:
                    best_arm, best_level, highest = arm, level, index
        return Choice(best_arm, best_level, 1)

    return decide
