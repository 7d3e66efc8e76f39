"""Optuna: a sampler and a pruner that know what time it is, and an `optimize` that ends on time.

All state is in the study's storage, written by the parent process alone.
"""

from __future__ import annotations

from f2a_tune.optuna_plugin.loop import optimize
from f2a_tune.optuna_plugin.pruner import WaitUCBPruner
from f2a_tune.optuna_plugin.sampler import WaitUCBSampler
from f2a_tune.optuna_plugin.summary import (
    BestConfiguration,
    BudgetSummary,
    best_configuration,
    budget_summary,
    cutoff_of,
    evaluation_of,
)

__all__ = [
    "BestConfiguration",
    "BudgetSummary",
    "WaitUCBPruner",
    "WaitUCBSampler",
    "best_configuration",
    "budget_summary",
    "cutoff_of",
    "evaluation_of",
    "optimize",
]
