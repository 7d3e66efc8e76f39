"""A user's search space as the race's: distributions go in, rows and parameters come out.

A dict of lists, scipy distributions or Optuna distributions; or a list of such dicts, which is a
choice between them. Every parameter becomes one dimension of a `racing.Space`, a value is made of
its number there, and the same is put into the study in a form that every storage takes.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from f2a_tune import _compat
from f2a_tune.racing import Parameter, Space

Floats = NDArray[np.float64]

WHICH = "which_space"  # the choice between several dicts
LONGEST_LABEL = 60
# A distribution with infinite tails is not asked for its very ends.
QUANTILE_MARGIN = 1e-4


@dataclass(frozen=True)
class Dimension:
    """One parameter of an estimator, in one of the dicts."""

    name: str
    """As the estimator calls it."""
    parameter: Parameter
    value: Callable[[Any], Any]
    """What the estimator gets for the value of ``parameter``."""
    distribution: BaseDistribution
    stored: Callable[[Any], Any]
    """What the study gets for the value of ``parameter``."""


class CandidateSpace:
    """All configurations of a search."""

    def __init__(self, param_distributions: Any, estimator: Any) -> None:
        dicts = _checked_dicts(param_distributions)
        self._n_dicts = len(dicts)
        self._several = len(dicts) > 1
        dimensions: list[Dimension] = []
        which: tuple[Parameter, ...] = ()
        if self._several:
            which = (Parameter(WHICH, "categorical", choices=tuple(range(len(dicts)))),)
        for place, content in enumerate(dicts):
            _check_names(content, estimator)
            for name, spec in content.items():
                dimensions.append(self._dimension(name, spec, place))
        self._dimensions = {one.parameter.name: one for one in dimensions}
        self.space = Space((*which, *(one.parameter for one in dimensions)))

    @property
    def size(self) -> float:
        """How many configurations there are."""
        return sum(
            math.prod(one.parameter.size for one in self._of_dict(place))
            for place in range(self._n_dicts)
        )

    def params(self, unit: Floats) -> dict[str, Any]:
        """What ``set_params`` gets."""
        found = {}
        for name, value in self.space.configuration(unit).items():
            if name != WHICH:
                one = self._dimensions[name]
                found[one.name] = one.value(value)
        return dict(sorted(found.items()))

    def stored(self, unit: Floats) -> dict[str, tuple[Any, BaseDistribution]]:
        """Values and distributions for the study."""
        found: dict[str, tuple[Any, BaseDistribution]] = {}
        for name, value in self.space.configuration(unit).items():
            if name == WHICH:
                choices = self.space.parameters[0].choices
                found[WHICH] = value, CategoricalDistribution(choices)
            else:
                one = self._dimensions[name]
                found[name] = one.stored(value), one.distribution
        return found

    def drawn(self, suggest: Callable[[str, BaseDistribution], Any]) -> Floats:
        """The row that somebody else draws, who says what `stored` would for every parameter."""
        values: dict[str, Any] = {}
        for parameter in self.space.parameters:
            if any(values.get(parent) not in allowed for parent, allowed in parameter.active_if):
                continue
            if parameter.name == WHICH:
                values[WHICH] = suggest(WHICH, CategoricalDistribution(parameter.choices))
                continue
            distribution = self._dimensions[parameter.name].distribution
            value = suggest(parameter.name, distribution)
            if isinstance(distribution, CategoricalDistribution):
                value = int(distribution.to_internal_repr(value))  # its place in the list
            values[parameter.name] = value
        return self.space.encode(values)

    def encoded(self, params: Mapping[str, Any]) -> Floats:
        """The row of a configuration that the user has written down."""
        for place in range(self._n_dicts):
            mine = self._of_dict(place)
            if {one.name for one in mine} == set(params) and _may_be(mine, params):
                return self._row(place, mine, params)
        raise ValueError(
            f"start has {dict(params)!r}, which is not in the space: give every parameter of one "
            "of its dicts a value that is there."
        )

    def own(self, estimator: Any) -> Floats | None:
        """The row of an estimator as it is; None if its values are not in the space."""
        params = estimator.get_params(deep=True)
        for place in range(self._n_dicts):
            mine = self._of_dict(place)
            if {one.name for one in mine} <= set(params) and _may_be(mine, params):
                return self._row(place, mine, params)
        return None

    def _of_dict(self, place: int) -> list[Dimension]:
        if not self._several:
            return list(self._dimensions.values())
        condition = (WHICH, (place,))
        return [one for one in self._dimensions.values() if condition in one.parameter.active_if]

    def _row(self, place: int, mine: Sequence[Dimension], params: Mapping[str, Any]) -> Floats:
        values: dict[str, Any] = {WHICH: place} if self._several else {}
        for one in mine:
            values[one.parameter.name] = _number_of(one, params[one.name])
        return self.space.encode(values)

    @property
    def fingerprint(self) -> str:
        """The same for the same space, in any process."""
        parts = [
            f"{one.parameter.name}:{one.distribution!r}:{one.parameter.active_if}"
            f":{_name_of_spec(one.value)}"
            for one in self._dimensions.values()
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def _dimension(self, name: str, spec: Any, place: int) -> Dimension:
        label = f"{name}@{place}" if self._several else name
        active_if = ((WHICH, (place,)),) if self._several else ()
        if isinstance(spec, BaseDistribution):
            return _of_optuna(name, label, spec, active_if)
        if hasattr(spec, "rvs"):
            return _of_scipy(name, label, spec, active_if)
        return _of_values(name, label, _checked_values(name, spec), active_if)


def _may_be(dimensions: Sequence[Dimension], params: Mapping[str, Any]) -> bool:
    return all(_number_of(one, params[one.name]) is not None for one in dimensions)


def _number_of(one: Dimension, value: Any) -> Any:
    """What the race calls a value of the user's; None if it is not there."""
    if isinstance(one.value, _Seeded):
        return None  # nobody can tell which seed gives it
    if isinstance(one.value, _Quantile):
        return one.value.quantile_of(value)
    if not isinstance(one.distribution, CategoricalDistribution):
        return value if _compat.contains(one.distribution, value) else None
    for place in range(len(one.distribution.choices)):
        choice = one.value(place)
        if choice is value or (type(choice) is type(value) and repr(choice) == repr(value)):
            return place
    return None


Active = tuple[tuple[str, tuple[Any, ...]], ...]


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
    value = _Quantile(spec) if hasattr(spec, "ppf") else _Seeded(spec)
    return Dimension(name, parameter, value, FloatDistribution(0.0, 1.0), _same)


@dataclass(frozen=True)
class _Quantile:
    """A distribution by its quantile function: what is near in quantiles is near in value."""

    spec: Any

    def __call__(self, quantile: float) -> Any:
        inner = min(max(quantile, QUANTILE_MARGIN), 1 - QUANTILE_MARGIN)
        value = self.spec.ppf(inner)
        discrete = hasattr(getattr(self.spec, "dist", None), "pmf")
        return int(value) if discrete else float(value)

    def quantile_of(self, value: Any) -> float | None:
        """Where a value is; None if it is none of this distribution's, or far out in its tail."""
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not hasattr(self.spec, "cdf"):
            return None
        try:
            quantile = float(self.spec.cdf(value))
            found = self(quantile)
        except (ValueError, TypeError, OverflowError):  # a distribution of the user's own
            return None
        close = math.isclose(found, float(value), rel_tol=1e-6, abs_tol=1e-12)
        return quantile if close else None


@dataclass(frozen=True)
class _Seeded:
    """Anything with ``rvs``: a number stands for a seed, so it gives the same value again."""

    spec: Any

    def __call__(self, quantile: float) -> Any:
        return self.spec.rvs(random_state=int(quantile * (2**31 - 1)))


def _name_of_spec(value: Any) -> str:
    """A scipy distribution behind a dimension of quantiles, with its arguments."""
    spec = getattr(value, "spec", None)
    if spec is None:
        return ""
    kind = getattr(getattr(spec, "dist", None), "name", type(spec).__qualname__)
    return f"{kind}{getattr(spec, 'args', ())}{getattr(spec, 'kwds', {})}"


def _of_values(name: str, label: str, values: Sequence[Any], active_if: Active) -> Dimension:
    labels = _labels(values)
    distribution = CategoricalDistribution(labels)
    if _rises_or_falls(values):  # an order that a model can use
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
    """Values that every storage takes, all different."""
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


def _checked_dicts(given: Any) -> list[Mapping[str, Any]]:
    dicts = [given] if isinstance(given, Mapping) else given
    if not isinstance(dicts, Sequence) or isinstance(dicts, (str, bytes)):
        raise TypeError(
            f"param_distributions must be a dict or a list of dicts, got {given!r} "
            f"({type(given).__name__})."
        )
    if not dicts:
        raise ValueError("param_distributions must not be an empty list: give one dict at least.")
    for content in dicts:
        if not isinstance(content, Mapping):
            raise TypeError(
                f"param_distributions must hold dicts, got {content!r} ({type(content).__name__})."
            )
    return list(dicts)


def _checked_values(name: str, spec: Any) -> Sequence[Any]:
    if isinstance(spec, np.ndarray):
        if spec.ndim > 1:
            spec = list(spec)  # rows are values
    elif isinstance(spec, (str, bytes)) or not isinstance(spec, Iterable):
        raise TypeError(
            f"param_distributions[{name!r}] must be a list, an array or a distribution, "
            f"got {spec!r}: a single value is a list of one."
        )
    values = list(spec)
    if not values:
        raise ValueError(
            f"param_distributions[{name!r}] must not be empty: give one value at least."
        )
    return values


def _check_names(content: Mapping[str, Any], estimator: Any) -> None:
    known = set(estimator.get_params(deep=True))
    for name in content:
        parents = {name.rsplit("__", depth)[0] for depth in range(1, name.count("__") + 1)}
        if name in known or parents & set(content):
            continue  # or its owner is searched for as well, and knows
        nearest = difflib.get_close_matches(str(name), known, n=1, cutoff=0.4)
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        raise ValueError(
            f"param_distributions has {name!r}, which is no parameter of {estimator!r}: "
            f"{hint}Known: {', '.join(sorted(known))}."
        )
