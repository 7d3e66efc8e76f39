"""scikit-learn: a search that ends on time, and cross-validation with hard cutoffs.

Names are imported when they are first used: the processes that fit need `fold` alone, and one that
is killed makes room for a fresh one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from f2a_tune.sklearn_plugin.cross_validation import (
        FitTimeoutWarning,
        FoldScores,
        cross_val_score,
    )
    from f2a_tune.sklearn_plugin.failures import NothingFinishedError
    from f2a_tune.sklearn_plugin.refit import RefitWarning
    from f2a_tune.sklearn_plugin.search import (
        F2ASearchCV,
        PartialValidationWarning,
        SearchInterruptedWarning,
    )
    from f2a_tune.sklearn_plugin.search_run import StorageLostWarning

_HOMES = {
    "F2ASearchCV": "search",
    "FitTimeoutWarning": "cross_validation",
    "FoldScores": "cross_validation",
    "NothingFinishedError": "failures",
    "PartialValidationWarning": "search",
    "RefitWarning": "refit",
    "SearchInterruptedWarning": "search",
    "StorageLostWarning": "search_run",
    "cross_val_score": "cross_validation",
}

__all__ = [
    "F2ASearchCV",
    "FitTimeoutWarning",
    "FoldScores",
    "NothingFinishedError",
    "PartialValidationWarning",
    "RefitWarning",
    "SearchInterruptedWarning",
    "StorageLostWarning",
    "cross_val_score",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
