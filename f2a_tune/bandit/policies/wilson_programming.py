"""A policy that bounds every arm's best rate from above by dynamic programming over levels."""

from __future__ import annotations

import math

import numpy as np

from f2a_tune.bandit.levels import Floats
from f2a_tune.bandit.policies.base import ArrayPolicy, Choice, Observation, State
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

# Bisection steps: 34 give the bound to ten digits of the largest possible rate.
BISECTIONS = 34
# A bound is reused until the epoch, or the number of pulls behind it, has grown by this share.
GROWTH = 0.01
# With fewer observations, the variance estimate is too unreliable to narrow the interval.
VARIANCE_MINIMUM = 30.0
NO_LIMIT = float(1 << 52)
# Columns of arms: the bound, the level to wait until, the epoch until which both are valid, and
# whether new pulls have already made them invalid.
RATE, WAIT, LIMIT, STALE = 0, 1, 2, 3
# Column of pairs: number of pulls that may still end at a level before the bound becomes invalid.
ALLOWANCE = 0
# Setting: ρ, the width of the Wilson intervals.
RHO = 0


class WilsonProgramming(ArrayPolicy):
    r"""Optimism by dynamic programming with Wilson intervals.

    This policy is our own, and no regret bound has been proved for it.

    The index G_k of an arm is the largest g for which optimal waiting, at a price of g per unit of
    cost, still breaks even: W_1(g) ≥ 0. Here W_i(g) = U_i − g·(cost of level i) is the value of
    waiting through level i. U_i is a Wilson upper bound (z² = 2ρ·ln(s+1), n = Y_i pulls that
    entered the level) on the mean of a variable that equals the reward if the pull finishes in
    level i, and max(W_{i+1}, 0) otherwise. With at least 30 pulls, the interval is narrowed by
    their variance.

    The policy pulls the arm with the highest G_k and waits until the level after which waiting is
    no longer worth its price. The first pull of every arm waits until the last level. To save
    time, a bound is reused until the epoch has grown by 1 %, or more pulls have ended at some
    level than 1 % of Y_i.

    Parameters
    ----------
    rho : float, default=0.25
        Width of the Wilson intervals. A larger value explores more.
    """

    name = "wilson-programming"

    def __init__(self, rho: float = 0.25) -> None:
        self.rho = positive_number("rho", rho)

    def new_state(self) -> State:
        """Return the initial state, in which every arm is due for a pull to the last level."""
        state = self.blank_state(pair_columns=1, arm_columns=4, settings=[self.rho])
        state.arms[:, RATE] = np.inf
        state.arms[:, WAIT] = self.n_levels - 1
        state.arms[:, LIMIT] = NO_LIMIT
        return state

    @staticmethod
    def decide(state: State, epoch: int, rng: np.random.Generator) -> Choice:
        """Recompute the bounds that are no longer valid and return the best arm's pair."""
        best, limit = 0, NO_LIMIT
        for arm in range(len(state.arms)):
            if state.arms[arm, STALE] > 0 or epoch >= state.arms[arm, LIMIT]:
                z_squared = 2.0 * state.settings[RHO] * math.log(epoch + 1.0)
                rate, level = optimistic_rate(state.counts, arm, state.ladder, z_squared)
                state.arms[arm, RATE] = rate
                state.arms[arm, WAIT] = level
                state.arms[arm, LIMIT] = epoch + 1 + math.floor(GROWTH * epoch)
                state.arms[arm, STALE] = 0.0
                for later in range(len(state.ladder)):
                    state.pairs[arm, later, ALLOWANCE] = math.floor(
                        GROWTH * entered(state.counts, arm, later)
                    )
            limit = min(limit, state.arms[arm, LIMIT])
            if state.arms[arm, RATE] > state.arms[best, RATE]:
                best = arm
        return Choice(best, int(state.arms[best, WAIT]), int(limit - epoch))

    @staticmethod
    def learn(state: State, seen: Observation, rng: np.random.Generator) -> bool:
        """Count the pull; return True if the arm's bound must be recomputed."""
        count_pull(state.counts, seen.arm, seen.level, seen.finish_level, seen.reward)
        ended = min(seen.finish_level, seen.level)
        state.pairs[seen.arm, ended, ALLOWANCE] -= 1.0
        if state.pairs[seen.arm, ended, ALLOWANCE] < 0:
            state.arms[seen.arm, STALE] = 1.0
            return True
        return False


def optimistic_rate(
    counts: Floats, arm: int, ladder: Floats, z_squared: float
) -> tuple[float, int]:
    """Return G_k and the level to wait until."""
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
    """Return W_1 at this price and the level to wait until."""
    value, wait, running = 0.0, len(ladder) - 1, 0.0
    for level in range(len(ladder) - 1, -1, -1):
        # In an auction, a won pull costs more than a lost one. In a waiting game this is 0.
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
    """Return the upper end of the Wilson interval of a mean in [0, 1].

    With enough observations, the interval is narrowed by the estimated variance.
    """
    spread = mean * (1.0 - mean)
    if count >= VARIANCE_MINIMUM and spread > 0:
        z_squared *= min(1.0, max((square - mean * mean) / spread, 2.0 / count))
    share = z_squared / count
    root = math.sqrt(share * max(spread, 0.0) + 0.25 * share * share)
    return min((mean + 0.5 * share + root) / (1.0 + share), 1.0)
