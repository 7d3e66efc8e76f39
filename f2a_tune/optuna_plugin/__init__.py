"""Optuna: a sampler and a pruner that take time into account, and an `optimize` with a budget."""

from __future__ import annotations

from f2a_tune.optuna_plugin.optimization import NoTrialWarning, optimize
from f2a_tune.optuna_plugin.pruner import WaitUCBPruner
from f2a_tune.optuna_plugin.sampler import WaitUCBSampler

__all__ = ["NoTrialWarning", "WaitUCBPruner", "WaitUCBSampler", "optimize"]
