"""scikit-learn: a search that ends on time, and cross-validation with hard cutoffs."""

from __future__ import annotations

from f2a_tune.sklearn_plugin.search import (
    F2ASearchCV,
    PartialValidationWarning,
    SearchInterruptedWarning,
)
from f2a_tune.sklearn_plugin.validation import FitTimeoutWarning, FoldScores, cross_val_score

__all__ = [
    "F2ASearchCV",
    "FitTimeoutWarning",
    "FoldScores",
    "PartialValidationWarning",
    "SearchInterruptedWarning",
    "cross_val_score",
]
