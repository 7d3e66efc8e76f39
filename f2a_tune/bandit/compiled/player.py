"""The compiled loop of a simulation run, shared by all policies.

The policy's own ``decide`` and ``learn`` are inlined into it (see `ArrayPolicy`). Budget and
reward are local variables, and arrays are passed one by one instead of in tuples: otherwise
reference counting and register spilling would take longer than the rest of a pull.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numba
from numba.extending import register_jitable

from f2a_tune.bandit import environment
from f2a_tune.bandit.policies.base import Choice, Observation

draw_outcome = register_jitable(environment.draw_outcome)
pass_checkpoints = register_jitable(environment.pass_checkpoints)


Run = Callable[..., None]


def compile_player(decide: Callable[..., Choice], learn: Callable[..., bool]) -> Run:
    """Return the compiled ``run(tables, ledger, state, rng, policy_rng)`` of a policy."""
    inlined = numba.njit(forceinline=True)
    decide, learn = inlined(decide), inlined(learn)

    @numba.njit(nogil=True)
    def run(tables, ledger, state, rng, policy_rng):  # type: ignore[no-untyped-def]
        cumulative, finish_levels, rewards, finish_costs, give_up_costs, partial_rewards = tables
        pulls, looks = ledger.pulls, state.looks
        has_looks = partial_rewards.max() > 0.0  # copying them takes time
        spent, earned, limit, epoch = 0.0, 0.0, ledger.checkpoints[0], 0
        while True:
            arm, level, stands_for = decide(state, epoch, policy_rng)
            for _ in range(stands_for):
                outcome = draw_outcome(cumulative, arm, rng)
                finish_level = finish_levels[arm, outcome]
                if finish_level <= level:
                    cost, reward = finish_costs[finish_level], rewards[arm, outcome]
                else:
                    cost, reward = give_up_costs[level], partial_rewards[arm, level]
                if spent + cost > limit:
                    limit = pass_checkpoints(ledger, spent + cost, earned)
                    if limit < 0:
                        return
                spent += cost
                earned += reward
                pulls[arm, level] += 1
                epoch += 1
                if has_looks:
                    for passed in range(min(finish_level, level + 1)):
                        looks[arm, passed] = partial_rewards[arm, passed]
                if learn(state, Observation(arm, level, finish_level, reward, cost), policy_rng):
                    break

    return cast(Run, run)
