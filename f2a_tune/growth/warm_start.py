"""Ensembles of scikit-learn that can continue with ``warm_start``."""

from __future__ import annotations

import warnings
from typing import Any

from f2a_tune.growth.adapter import Growable, Look, StopGrowing

# Class of scikit-learn → its parameter that is the number of rounds.
ROUNDS = {
    name + kind: parameter
    for name, parameter in (
        ("RandomForest", "n_estimators"),
        ("ExtraTrees", "n_estimators"),
        ("GradientBoosting", "n_estimators"),
        ("HistGradientBoosting", "max_iter"),
        ("Bagging", "n_estimators"),
    )
    for kind in ("Classifier", "Regressor")
}


def adapted(estimator: Any) -> Growable | None:
    """Return how the estimator grows, or None if it does not."""
    kind = type(estimator)
    # A subclass may fit in another way.
    if not kind.__module__.startswith("sklearn.ensemble.") or kind.__name__ not in ROUNDS:
        return None
    parameter = ROUNDS[kind.__name__]
    # Early stopping of the older gradient boosting cannot be told from the end of a fit.
    stops = (
        parameter == "n_estimators" and getattr(estimator, "n_iter_no_change", None) is not None
    )
    if estimator.warm_start or stops:
        return None

    def grow(
        X: Any, y: Any, fit_params: dict[str, Any], levels: tuple[int, ...], look: Look
    ) -> Any:
        estimator.set_params(warm_start=True)
        try:
            for level in levels:
                estimator.set_params(**{parameter: level})
                _continue(estimator, X, y, fit_params)
                done = int(getattr(estimator, "n_iter_", level))
                look(min(done, level), estimator)
                if done < level:
                    break  # it has stopped by itself, and would add a round if it were continued
        except StopGrowing:
            pass
        return estimator.set_params(warm_start=False)

    bins_again = kind.__name__.startswith("HistGradientBoosting")
    return Growable(parameter, int(getattr(estimator, parameter)), grow, bins_again)


def _continue(estimator: Any, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        # The advice to compute class weights by hand is for data that changes between the fits.
        warnings.filterwarnings("ignore", 'class_weight presets "balanced', UserWarning)
        estimator.fit(X, y, **fit_params)
