"""Simulation kernels compiled with numba (extra ``[sim]``), one per policy class.

A kernel plays a whole run and records it in the ledger. It is compiled from the policy's own
``decide`` and ``learn``, so that both engines make the same pulls. Every helper function that
these two call must be registered below.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numba
import numba.extending
import numpy as np

from f2a_tune.bandit import statistics
from f2a_tune.bandit.compiled.player import Run, compile_player
from f2a_tune.bandit.environment import GameLedger
from f2a_tune.bandit.game import Tables
from f2a_tune.bandit.policies import IndexPolicy, Policy, wait_ucb, wilson_programming
from f2a_tune.bandit.policies.base import ArrayPolicy

Kernel = Callable[[Tables, GameLedger, np.random.Generator], None]

for _helper in (
    statistics.add_pull,
    statistics.count_pull,
    statistics.entered,
    statistics.kaplan_meier,
    wait_ucb.set_index,
    wilson_programming.wilson_upper,
    wilson_programming.value_of_going_on,
    wilson_programming.optimistic_rate,
):
    numba.extending.register_jitable(_helper)


def is_compilable(policy: Policy) -> bool:
    """Return whether a policy has a kernel: true for the policies of this package only."""
    return isinstance(policy, ArrayPolicy) and type(policy).__module__.startswith("f2a_tune.")


def kernel_of(policy: ArrayPolicy) -> Kernel:
    """Return a function that plays one run with this policy, which must have been reset."""
    run = _player(type(policy))
    return lambda tables, ledger, rng: run(tables, ledger, policy.state, rng, policy.rng)


@functools.cache
def _player(policy_class: type[ArrayPolicy]) -> Run:
    if issubclass(policy_class, IndexPolicy):
        numba.extending.register_jitable(policy_class.formula)
    return compile_player(policy_class.decide, policy_class.learn)
