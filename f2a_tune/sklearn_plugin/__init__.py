"""scikit-learn: fold fits with hard cutoffs."""

from __future__ import annotations

from f2a_tune.sklearn_plugin.validation import FitTimeoutWarning, FoldScores, cross_val_score

__all__ = ["FitTimeoutWarning", "FoldScores", "cross_val_score"]
