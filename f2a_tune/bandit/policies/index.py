"""Index policies: pull every pair once, then always pull the pair with the highest index."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from f2a_tune.bandit.levels import Levels
from f2a_tune.bandit.policies.base import ArrayPolicy, Choice, Observation, State
from f2a_tune.bandit.statistics import COSTS, PULLS, REWARDS, add_pull

# Settings: the policy's constant, and the largest cost, by which all costs are divided.
CONSTANT, LARGEST_COST = 0, 1


class IndexPolicy(ArrayPolicy):
    """Base class of policies defined by an index ``formula(reward, cost, pulls, log_epoch, ...)``.

    Reward and cost are the sums over the pair's pulls. Costs are divided by the largest cost, so
    that they lie in [λ, 1] as the original papers require; λ is the smallest cost in that unit
    (1/D in the paper's games). Indices therefore differ from those of the original papers by this
    constant factor, which does not change the argmax.
    """

    @staticmethod
    @abstractmethod
    def formula(
        reward: float, cost: float, pulls: float, log_epoch: float, constant: float
    ) -> float:
        """Return the index of one pair; it may use only its arguments and `math`."""

    @abstractmethod
    def constant(self, levels: Levels) -> float:
        """Return the constant of the formula, which depends on the game or a user setting."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.decide = staticmethod(highest_index(cls.formula))

    def new_state(self) -> State:
        """Return the state before the first pull."""
        return self.blank_state(
            pair_columns=3, settings=[self.constant(self.levels), self.levels.largest_cost]
        )

    @staticmethod
    def learn(state: State, seen: Observation, rng: np.random.Generator) -> bool:
        """Add the pull to the sums of the pulled pair."""
        add_pull(
            state.pairs,
            seen.arm,
            seen.level,
            seen.reward,
            seen.cost / state.settings[LARGEST_COST],
        )
        return False


def highest_index(
    formula: Callable[[float, float, float, float, float], float],
) -> Callable[..., Choice]:
    """Return the ``decide`` function of an index policy."""

    def decide(state: State, epoch: int, rng: np.random.Generator) -> Choice:
        n_arms, n_levels = state.pairs.shape[0], state.pairs.shape[1]
        log_epoch = math.log(max(epoch, 1))
        best_arm, best_level, highest = 0, 0, -math.inf
        for arm in range(n_arms):
            for level in range(n_levels):
                if state.pairs[arm, level, PULLS] == 0:
                    return Choice(arm, level, 1)
                index = formula(
                    state.pairs[arm, level, REWARDS],
                    state.pairs[arm, level, COSTS],
                    state.pairs[arm, level, PULLS],
                    log_epoch,
                    state.settings[CONSTANT],
                )
                if index > highest:
                    best_arm, best_level, highest = arm, level, index
        return Choice(best_arm, best_level, 1)

    return decide
