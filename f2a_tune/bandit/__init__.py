"""The Farewell-to-Arms bandit of the paper: games, policies, simulation and theory.

This package must not import Optuna or scikit-learn, start processes or read the clock.
"""

from __future__ import annotations

from f2a_tune.bandit.game import Game, MicroArm
from f2a_tune.bandit.levels import Levels
from f2a_tune.bandit.policies import (
    PAPER_POLICIES,
    POLICIES,
    UCB1,
    UCBBV1,
    BudgetedThompson,
    BudgetUCB,
    ConstantPolicy,
    HazardThompson,
    IndexPolicy,
    OmegaUCB,
    Policy,
    UCBSimplex,
    Uniform,
    WaitUCB,
    WilsonProgramming,
    make_policy,
)
from f2a_tune.bandit.scenarios import PAPER_SCENARIOS, SCENARIOS, scenario
from f2a_tune.bandit.simulator import Simulation, SlowSimulationWarning, simulate
from f2a_tune.bandit.theory import pull_bound, ratio_confidence, regret_bound

__all__ = [
    "PAPER_POLICIES",
    "PAPER_SCENARIOS",
    "POLICIES",
    "SCENARIOS",
    "UCB1",
    "UCBBV1",
    "BudgetUCB",
    "BudgetedThompson",
    "ConstantPolicy",
    "Game",
    "HazardThompson",
    "IndexPolicy",
    "Levels",
    "MicroArm",
    "OmegaUCB",
    "Policy",
    "Simulation",
    "SlowSimulationWarning",
    "UCBSimplex",
    "Uniform",
    "WaitUCB",
    "WilsonProgramming",
    "make_policy",
    "pull_bound",
    "ratio_confidence",
    "regret_bound",
    "scenario",
    "simulate",
]
