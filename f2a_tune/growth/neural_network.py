"""Neural networks of scikit-learn, which are scored between the epochs of a plain fit.

Continuing with ``warm_start`` would lose the state of the optimizer, and ``partial_fit`` shuffles
the rows in another order. So the fit itself calls back after each epoch, through the method with
which it counts epochs without improvement.
"""

from __future__ import annotations

import copy
from typing import Any

from f2a_tune.growth.adapter import Growable, Look, StopGrowing

# Private method of scikit-learn that a fit calls after each epoch.
AFTER_EPOCH = "_update_no_improvement_count"
KINDS = ("MLPClassifier", "MLPRegressor")


def adapted(estimator: Any) -> Growable | None:
    """Return how the estimator grows, or None if it does not."""
    kind = type(estimator)
    if not kind.__module__.startswith("sklearn.neural_network.") or kind.__name__ not in KINDS:
        return None
    # With early stopping, a plain fit returns the best epoch and not the last one.
    if estimator.solver == "lbfgs" or estimator.early_stopping or estimator.warm_start:
        return None
    if not hasattr(estimator, AFTER_EPOCH):
        return None

    def grow(
        X: Any, y: Any, fit_params: dict[str, Any], levels: tuple[int, ...], look: Look
    ) -> Any:
        plain, seen = getattr(estimator, AFTER_EPOCH), 0

        def after_epoch(*arguments: Any) -> Any:
            nonlocal seen
            result = plain(*arguments)
            if estimator.n_iter_ in levels:
                seen = estimator.n_iter_
                look(seen, _model(estimator))
            return result

        estimator.set_params(max_iter=levels[-1])
        setattr(estimator, AFTER_EPOCH, after_epoch)
        try:
            estimator.fit(X, y, **fit_params)
            if seen < estimator.n_iter_:  # it has converged between two levels
                look(estimator.n_iter_, _model(estimator))
        except StopGrowing:
            pass
        finally:
            delattr(estimator, AFTER_EPOCH)
        return estimator

    return Growable("max_iter", int(estimator.max_iter), grow)


def _model(estimator: Any) -> Any:
    """Return a copy that can be scored and pickled; it shares the weights."""
    model = copy.copy(estimator)
    vars(model).pop(AFTER_EPOCH, None)
    return model
