"""One parameter of a search space, and its values in the race, in the study and for the estimator.

Parameters are given as lists, scipy distributions or Optuna distributions.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from f2a_tune.racing import Parameter
from f2a_tune.sklearn_plugin.scipy_values import QuantileValue, SeededValue, check_draws
from f2a_tune.study import optuna_private

LONGEST_LABEL = 60

Active = tuple[tuple[str, tuple[Any, ...]], ...]


@dataclass(frozen=True)
class Dimension:
    """One parameter of an estimator, in one of the dicts."""

    name: str
    """The name that the estimator uses."""
    parameter: Parameter
    value: Callable[[Any], Any]
    """Converts a value of ``parameter`` to the value for the estimator."""
    distribution: BaseDistribution
    stored: Callable[[Any], Any]
    """Converts a value of ``parameter`` to the value for the study."""


def dimension_of(name: str, label: str, spec: Any, active_if: Active) -> Dimension:
    """Return the dimension of a parameter, given as a list, an array or a distribution.

    ``label`` is its name in the study.
    """
    if isinstance(spec, BaseDistribution):
        return _of_optuna(name, label, spec, active_if)
    if hasattr(spec, "rvs"):
        return _of_scipy(name, label, spec, active_if)
    return _of_values(name, label, _checked_values(name, spec), active_if)


def number_of(one: Dimension, value: Any) -> Any:
    """Return the value in the race of a user's value, or None if it is not in the space."""
    if isinstance(one.value, SeededValue):
        return None  # the seed that draws it is unknown
    if isinstance(one.value, QuantileValue):
        return one.value.quantile_of(value)
    if not isinstance(one.distribution, CategoricalDistribution):
        return value if optuna_private.contains(one.distribution, value) else None
    for place in range(len(one.distribution.choices)):
        choice = one.value(place)
        if choice is value or (type(choice) is type(value) and repr(choice) == repr(value)):
            return place
    return None


def nearest(one: Dimension, value: Any) -> Any:
    """Return the value in the race that is nearest to a user's value."""
    number = number_of(one, value)
    if number is not None:
        return number
    if isinstance(one.distribution, CategoricalDistribution):
        return 0
    plain = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if plain and not isinstance(one.value, (SeededValue, QuantileValue)) and math.isfinite(value):
        unit = one.parameter.unit(value)  # clipped to the range
        return one.parameter.value(unit)
    return one.parameter.value(0.5)


def _same(value: Any) -> Any:
    return value


def _of_optuna(name: str, label: str, spec: BaseDistribution, active_if: Active) -> Dimension:
    if isinstance(spec, CategoricalDistribution):
        return _of_values(name, label, spec.choices, active_if)
    if isinstance(spec, FloatDistribution):
        parameter = Parameter(
            label, "float", spec.low, spec.high, spec.log, active_if=active_if, step=spec.step
        )
        return Dimension(name, parameter, _same, spec, _same)
    if isinstance(spec, IntDistribution):
        parameter = Parameter(
            label, "int", spec.low, spec.high, spec.log, active_if=active_if, step=spec.step
        )
        return Dimension(name, parameter, _same, spec, _same)
    raise TypeError(
        f"param_distributions[{name!r}]={spec!r} is an outdated Optuna distribution: "
        "use FloatDistribution, IntDistribution or CategoricalDistribution."
    )


def _of_scipy(name: str, label: str, spec: Any, active_if: Active) -> Dimension:
    kind = getattr(getattr(spec, "dist", None), "name", "")
    if kind in ("uniform", "loguniform", "reciprocal"):
        low, high = (float(end) for end in spec.support())
        log = kind != "uniform"
        parameter = Parameter(label, "float", low, high, log, active_if=active_if)
        return Dimension(name, parameter, _same, FloatDistribution(low, high, log=log), _same)
    if kind == "randint":
        low, high = (int(end) for end in spec.support())
        parameter = Parameter(label, "int", low, high, active_if=active_if)
        return Dimension(name, parameter, _same, IntDistribution(low, high), _same)
    parameter = Parameter(label, "float", 0.0, 1.0, active_if=active_if)
    value = QuantileValue(spec) if hasattr(spec, "ppf") else SeededValue(spec)
    check_draws(name, spec, value)
    return Dimension(name, parameter, value, FloatDistribution(0.0, 1.0), _same)


def _of_values(name: str, label: str, values: Sequence[Any], active_if: Active) -> Dimension:
    labels = _labels(values)
    distribution = CategoricalDistribution(labels)
    if _rises_or_falls(values):  # an order that a model can exploit
        parameter = Parameter(label, "int", 0, len(values) - 1, active_if=active_if)
    else:
        places = tuple(range(len(values)))
        parameter = Parameter(label, "categorical", choices=places, active_if=active_if)
    return Dimension(name, parameter, values.__getitem__, distribution, labels.__getitem__)


def _rises_or_falls(values: Sequence[Any]) -> bool:
    numbers = all(
        isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in values
    )
    if not numbers or len(values) < 3:
        return False
    steps = np.diff(np.asarray(values, dtype=np.float64))
    return bool((steps > 0).all() or (steps < 0).all())


def _labels(values: Sequence[Any]) -> list[Any]:
    """Return distinct labels of the values, which every storage accepts."""
    labels: list[Any] = []
    for place, value in enumerate(values):
        label = value.item() if isinstance(value, np.generic) else value
        if callable(value) and hasattr(value, "__qualname__"):
            label = f"{value.__module__}.{value.__qualname__}"[:LONGEST_LABEL]
        elif not isinstance(label, (type(None), bool, int, float, str)) or label != label:
            label = f"{value!r}"[:LONGEST_LABEL]
        if any(type(label) is type(other) and label == other for other in labels):
            label = f"{label} #{place}"
        labels.append(label)
    return labels


def _checked_values(name: str, spec: Any) -> Sequence[Any]:
    if isinstance(spec, np.ndarray):
        if spec.ndim > 1:
            spec = list(spec)  # each row is a value
    elif isinstance(spec, (str, bytes)) or not isinstance(spec, Iterable):
        raise TypeError(
            f"param_distributions[{name!r}] must be a list, an array or a distribution, "
            f"got {spec!r}. Wrap a single value in a list."
        )
    values = list(spec)
    if not values:
        raise ValueError(
            f"param_distributions[{name!r}] must not be empty. Pass at least one value."
        )
    return values
