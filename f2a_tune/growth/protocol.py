"""The protocol for a user's own estimator.

Such an estimator has an attribute ``growth_parameter``, the name of the parameter that is its
number of rounds, and a method ``grow(X, y, rounds, **fit_params)``. The method continues training
until ``rounds`` rounds are done in total and returns the estimator. It may stop earlier by itself;
then the attribute ``rounds_done_`` must say so.
"""

from __future__ import annotations

from typing import Any

from f2a_tune.growth.adapter import Growable, Look, StopGrowing


def is_growing(estimator: Any) -> bool:
    """Return whether an estimator has the attributes of the protocol."""
    return hasattr(estimator, "growth_parameter") and callable(getattr(estimator, "grow", None))


def adapted(estimator: Any) -> Growable:
    """Return how the estimator grows."""
    parameter = estimator.growth_parameter
    parameters = estimator.get_params(deep=False)
    if not isinstance(parameter, str) or parameter not in parameters:
        raise ValueError(
            f"growth_parameter of {type(estimator).__name__} must be one of its parameters, got "
            f"{parameter!r}."
        )

    def grow(
        X: Any, y: Any, fit_params: dict[str, Any], levels: tuple[int, ...], look: Look
    ) -> Any:
        model = estimator
        for level in levels:
            model = model.grow(X, y, level, **fit_params)
            done = getattr(model, "rounds_done_", level)
            try:
                look(min(level, done), model)
            except StopGrowing:
                break
            if done < level:
                break
        return model

    return Growable(parameter, int(parameters[parameter]), grow)
