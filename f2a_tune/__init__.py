"""f2a_tune: find good configurations inside a wall-clock budget, and learn when to give up.

Names are imported when they are first used, so that ``import f2a_tune`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from f2a_tune.cutoff import CutoffPool, report_result, run_with_cutoff
    from f2a_tune.optuna_plugin import NoTrialWarning, WaitUCBPruner, WaitUCBSampler, optimize
    from f2a_tune.outcome import Outcome
    from f2a_tune.runtime.event import Event
    from f2a_tune.sklearn_plugin import (
        F2ASearchCV,
        FitTimeoutWarning,
        NothingFinishedError,
        PartialValidationWarning,
        RefitWarning,
        SearchInterruptedWarning,
        StorageLostWarning,
        cross_val_score,
    )
    from f2a_tune.study.accounting import BudgetSummary
    from f2a_tune.study.storage_retry import StorageLostError
    from f2a_tune.study.summary import BestConfiguration, best_configuration, budget_summary
    from f2a_tune.study.trial_plan import cutoff_of, evaluation_of

__version__ = "0.1.0"

_HOMES = {
    "BestConfiguration": "f2a_tune.study.summary",
    "BudgetSummary": "f2a_tune.study.accounting",
    "CutoffPool": "f2a_tune.cutoff",
    "Event": "f2a_tune.runtime.event",
    "F2ASearchCV": "f2a_tune.sklearn_plugin",
    "FitTimeoutWarning": "f2a_tune.sklearn_plugin",
    "NoTrialWarning": "f2a_tune.optuna_plugin",
    "NothingFinishedError": "f2a_tune.sklearn_plugin",
    "Outcome": "f2a_tune.outcome",
    "PartialValidationWarning": "f2a_tune.sklearn_plugin",
    "RefitWarning": "f2a_tune.sklearn_plugin",
    "SearchInterruptedWarning": "f2a_tune.sklearn_plugin",
    "StorageLostError": "f2a_tune.study.storage_retry",
    "StorageLostWarning": "f2a_tune.sklearn_plugin",
    "WaitUCBPruner": "f2a_tune.optuna_plugin",
    "WaitUCBSampler": "f2a_tune.optuna_plugin",
    "best_configuration": "f2a_tune.study.summary",
    "budget_summary": "f2a_tune.study.summary",
    "cross_val_score": "f2a_tune.sklearn_plugin",
    "cutoff_of": "f2a_tune.study.trial_plan",
    "evaluation_of": "f2a_tune.study.trial_plan",
    "optimize": "f2a_tune.optuna_plugin",
    "report_result": "f2a_tune.cutoff",
    "run_with_cutoff": "f2a_tune.cutoff",
}
_PACKAGES = ("bandit", "cutoff", "growth", "logging", "racing", "report", "visualization")

__all__ = [
    "BestConfiguration",
    "BudgetSummary",
    "CutoffPool",
    "Event",
    "F2ASearchCV",
    "FitTimeoutWarning",
    "NoTrialWarning",
    "NothingFinishedError",
    "Outcome",
    "PartialValidationWarning",
    "RefitWarning",
    "SearchInterruptedWarning",
    "StorageLostError",
    "StorageLostWarning",
    "WaitUCBPruner",
    "WaitUCBSampler",
    "__version__",
    "best_configuration",
    "budget_summary",
    "cross_val_score",
    "cutoff_of",
    "evaluation_of",
    "optimize",
    "report_result",
    "run_with_cutoff",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"f2a_tune.{name}")
    raise AttributeError(f"module 'f2a_tune' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_PACKAGES])
