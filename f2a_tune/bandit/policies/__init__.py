"""The bandit policies, and a registry that creates them by name, such as ``"wait-ucb"``."""

from __future__ import annotations

from collections.abc import Callable

from f2a_tune.bandit.policies.base import Policy
from f2a_tune.bandit.policies.index import IndexPolicy
from f2a_tune.bandit.policies.plain import ConstantPolicy, Uniform
from f2a_tune.bandit.policies.rivals import UCB1, UCBBV1, BudgetUCB, OmegaUCB, UCBSimplex
from f2a_tune.bandit.policies.thompson import BudgetedThompson, HazardThompson
from f2a_tune.bandit.policies.wait_ucb import WaitUCB
from f2a_tune.bandit.policies.wilson_programming import WilsonProgramming
from f2a_tune.checks import known_name

POLICIES: dict[str, Callable[[], Policy]] = {
    "wait-ucb": WaitUCB,
    "wait-ucb-side": lambda: WaitUCB(feedback="side"),
    "wait-ucb-full": lambda: WaitUCB(feedback="full"),
    "ucb-simplex": UCBSimplex,
    "budget-ucb": BudgetUCB,
    "ucb-bv1": UCBBV1,
    "ucb1": UCB1,
    "omega-ucb": OmegaUCB,
    "budgeted-thompson": BudgetedThompson,
    "hazard-thompson": HazardThompson,
    "wilson-programming": WilsonProgramming,
    "constant": ConstantPolicy,
    "uniform": Uniform,
}
PAPER_POLICIES = ("wait-ucb", "ucb-simplex", "budget-ucb")


def make_policy(name: str) -> Policy:
    """Return a new policy object with default settings; ``name`` is a key of `POLICIES`."""
    return POLICIES[known_name("policy", name, POLICIES)]()


__all__ = [
    "PAPER_POLICIES",
    "POLICIES",
    "UCB1",
    "UCBBV1",
    "BudgetUCB",
    "BudgetedThompson",
    "ConstantPolicy",
    "HazardThompson",
    "IndexPolicy",
    "OmegaUCB",
    "Policy",
    "UCBSimplex",
    "Uniform",
    "WaitUCB",
    "WilsonProgramming",
    "make_policy",
]
