"""An upper bound on an arm's best rate, by dynamic programming over its levels."""

from __future__ import annotations

import math

import numpy as np

from f2a_tune.bandit.levels import Floats
from f2a_tune.bandit.policies.base import ArrayPolicy, Choice, State
from f2a_tune.bandit.statistics import (
    FINISH_COST,
    FINISHED,
    GIVE_UP_COST,
    GIVEN_UP,
    REWARD,
    SQUARE,
    count_pull,
    entered,
)
from f2a_tune.checks import positive_number

# Bisection steps: the bound is known to ten digits of the largest possible rate.
BISECTIONS = 34
# A bound is kept until the epoch, or the pulls behind it, have grown by this share.
GROWTH = 0.01
# From so many observations on, the variance is estimated well enough to narrow the interval.
VARIANCE_MINIMUM = 30.0
NO_LIMIT = float(1 << 52)
# Columns of arms: the bound, the level to wait to, the epoch until which both hold, and whether
# they are out of date already.
RATE, WAIT, LIMIT, STALE = 0, 1, 2, 3
# Column of pairs: how many pulls may still end at a level before its arm's bound is out of date.
ALLOWANCE = 0
# Setting.
RHO = 0


class WilsonProgramming(ArrayPolicy):
    r"""Optimism by dynamic programming with Wilson intervals (ours; no regret bound is proved).

    G_k is the largest g for which waiting optimally, at a price of g per unit of cost, still
    breaks even: W_1(g) ≥ 0, where going on into level i is worth W_i(g) = U_i − g·(its cost) and
    U_i is a Wilson upper bound (z² = 2ρ·ln(s+1), n = Y_i pulls seen there) of the mean of: the
    reward if the pull finishes there, else max(W_{i+1}, 0). Where at least 30 pulls were seen the
    interval is narrowed by their variance. The arm of the highest G_k is pulled, waiting to the
    last level before going on stops being worth it; the first pull of every arm waits to the end.
    A bound is kept until the epoch has grown by 1 %, or at some level more pulls have ended than
    1 % of Y_i.
    """

    name = "wilson-programming"

    def __init__(self, rho: float = 0.25) -> None:
        self.rho = positive_number("rho", rho)

    def new_state(self) -> State:
        """Before the first pull every arm is worth one pull to the last level."""
        state = self.blank_state(pair_columns=1, arm_columns=4, settings=[self.rho])
        state.arms[:, RATE] = np.inf
        state.arms[:, WAIT] = self.n_levels - 1
        state.arms[:, LIMIT] = NO_LIMIT
        return state

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
        """Renew the bounds that are out of date and return the best arm's pair."""
        best, limit = 0, NO_LIMIT
        for arm in range(len(arms)):
            if arms[arm, STALE] > 0 or epoch >= arms[arm, LIMIT]:
                z_squared = 2.0 * settings[RHO] * math.log(epoch + 1.0)
                rate, level = optimistic_rate(counts, arm, ladder, z_squared)
                arms[arm, RATE] = rate
                arms[arm, WAIT] = level
                arms[arm, LIMIT] = epoch + 1 + math.floor(GROWTH * epoch)
                arms[arm, STALE] = 0.0
                for later in range(len(ladder)):
                    pairs[arm, later, ALLOWANCE] = math.floor(GROWTH * entered(counts, arm, later))
            limit = min(limit, arms[arm, LIMIT])
            if arms[arm, RATE] > arms[best, RATE]:
                best = arm
        return Choice(best, int(arms[best, WAIT]), int(limit - epoch))

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
        """Count the pull; True if the level where it ended has seen more than the bound allows."""
        count_pull(counts, arm, level, finish_level, reward)
        ended = min(finish_level, level)
        pairs[arm, ended, ALLOWANCE] -= 1.0
        if pairs[arm, ended, ALLOWANCE] < 0:
            arms[arm, STALE] = 1.0
            return True
        return False


def optimistic_rate(
    counts: Floats, arm: int, ladder: Floats, z_squared: float
) -> tuple[float, int]:
    """G_k and the level to wait to."""
    low, high = 0.0, 1.0 / min(ladder[0, FINISH_COST], ladder[0, GIVE_UP_COST])
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if value_of_going_on(counts, arm, ladder, z_squared, middle)[0] >= 0:
            low = middle
        else:
            high = middle
    level = value_of_going_on(counts, arm, ladder, z_squared, low)[1]
    return low, level


def value_of_going_on(
    counts: Floats, arm: int, ladder: Floats, z_squared: float, price: float
) -> tuple[float, int]:
    """W_1 at this price, and the level to wait to."""
    value, wait, running = 0.0, len(ladder) - 1, 0.0
    for level in range(len(ladder) - 1, -1, -1):
        # In an auction a won pull costs more than a lost one; in a waiting game this is 0.
        paid = price * (ladder[level, FINISH_COST] - ladder[level, GIVE_UP_COST])
        other = max(value, 0.0) + paid
        finished = counts[arm, level, FINISHED]
        running += finished + counts[arm, level, GIVEN_UP]
        upper = max(1.0, other)
        if running > 0:
            remaining = running - finished
            mean = (counts[arm, level, REWARD] + remaining * other) / running
            square = (counts[arm, level, SQUARE] + remaining * other * other) / running
            upper *= wilson_upper(mean / upper, square / (upper * upper), running, z_squared)
        earlier = ladder[level - 1, GIVE_UP_COST] if level > 0 else 0.0
        value = upper - paid - price * (ladder[level, GIVE_UP_COST] - earlier)
        if level > 0 and value <= 0:
            wait = level - 1
    return value, wait


def wilson_upper(mean: float, square: float, count: float, z_squared: float) -> float:
    """Upper end of the Wilson interval of a mean in [0, 1], narrowed by the variance if known."""
    spread = mean * (1.0 - mean)
    if count >= VARIANCE_MINIMUM and spread > 0:
        z_squared *= min(1.0, max((square - mean * mean) / spread, 2.0 / count))
    share = z_squared / count
    root = math.sqrt(share * max(spread, 0.0) + 0.25 * share * share)
    return min((mean + 0.5 * share + root) / (1.0 + share), 1.0)
