"""f2a_tune: find good configurations inside a wall-clock budget, and learn when to give up.

Names are imported when they are first used, so that ``import f2a_tune`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from f2a_tune.cutoff import CutoffPool, run_with_cutoff
    from f2a_tune.optuna_plugin import (
        WaitUCBPruner,
        WaitUCBSampler,
        best_configuration,
        budget_summary,
        cutoff_of,
        evaluation_of,
        optimize,
    )
    from f2a_tune.outcome import Outcome
    from f2a_tune.sklearn_plugin import F2ASearchCV, cross_val_score

__version__ = "0.1.0"

_HOMES = {
    "CutoffPool": "f2a_tune.cutoff",
    "F2ASearchCV": "f2a_tune.sklearn_plugin",
    "WaitUCBPruner": "f2a_tune.optuna_plugin",
    "WaitUCBSampler": "f2a_tune.optuna_plugin",
    "Outcome": "f2a_tune.outcome",
    "best_configuration": "f2a_tune.optuna_plugin",
    "budget_summary": "f2a_tune.optuna_plugin",
    "cross_val_score": "f2a_tune.sklearn_plugin",
    "cutoff_of": "f2a_tune.optuna_plugin",
    "evaluation_of": "f2a_tune.optuna_plugin",
    "optimize": "f2a_tune.optuna_plugin",
    "run_with_cutoff": "f2a_tune.cutoff",
}
_PACKAGES = ("bandit", "cutoff", "logging", "visualization")

__all__ = [
    "CutoffPool",
    "F2ASearchCV",
    "Outcome",
    "WaitUCBPruner",
    "WaitUCBSampler",
    "__version__",
    "best_configuration",
    "budget_summary",
    "cross_val_score",
    "cutoff_of",
    "evaluation_of",
    "optimize",
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
