"""Translates the user's search space to a `racing.Space`, and rows of it to parameters.

The user passes a dict of lists, scipy distributions or Optuna distributions, or a list of such
dicts to choose from. Every parameter becomes one dimension of the space. Its value there is
converted to the estimator's value, and to a value that every storage accepts.
"""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
)
from sklearn.base import clone

from f2a_tune.racing import Parameter, Space
from f2a_tune.sklearn_plugin.dimension import Dimension, dimension_of, nearest, number_of
from f2a_tune.sklearn_plugin.growth_plan import Rounds
from f2a_tune.sklearn_plugin.scipy_values import (
    name_of_distribution,
)
from f2a_tune.study.attributes import WHICH_SPACE

Floats = NDArray[np.float64]


class SearchSpace:
    """All configurations of a search."""

    def __init__(
        self, param_distributions: Any, estimator: Any, rounds: Sequence[Rounds | None] = ()
    ) -> None:
        dicts = checked_dicts(param_distributions)
        self._n_dicts = len(dicts)
        self._rounds = tuple(rounds) or (None,) * len(dicts)
        self._several = len(dicts) > 1
        dimensions: list[Dimension] = []
        which: tuple[Parameter, ...] = ()
        if self._several:
            which = (Parameter(WHICH_SPACE, "categorical", choices=tuple(range(len(dicts)))),)
        for place, content in enumerate(dicts):
            _check_names(content, estimator)
            for name, spec in content.items():
                if name != self._rounds_parameter(place):
                    dimensions.append(self._dimension(name, spec, place))
        self._dimensions = {one.parameter.name: one for one in dimensions}
        named, known = {one.name for one in dimensions}, estimator.get_params(deep=True)
        self.own_params = {name: known[name] for name in sorted(named & set(known))}
        """The estimator's own values of the searched parameters."""
        self.space = Space((*which, *(one.parameter for one in dimensions)))

    @property
    def n_parameters(self) -> int:
        """Number of coordinates of a row."""
        return len(self.space.parameters)

    @property
    def size(self) -> float:
        """Number of configurations."""
        return sum(
            math.prod(one.parameter.size for one in self._of_dict(place))
            for place in range(self._n_dicts)
        )

    @property
    def nothing_set(self) -> Floats:
        """The row of the unchanged estimator, whose values may be outside the space."""
        return np.full(len(self.space.parameters), np.nan)

    def is_in_space(self, unit: Floats) -> bool:
        """Whether a row is a configuration of the space rather than `nothing_set`."""
        return not len(unit) or not bool(np.isnan(unit).all())

    def params(self, unit: Floats) -> dict[str, Any]:
        """Return the arguments of ``set_params`` for a row."""
        if not self.is_in_space(unit):
            return dict(self.own_params)
        found = {}
        for name, value in self.space.configuration(unit).items():
            if name != WHICH_SPACE:
                one = self._dimensions[name]
                found[one.name] = one.value(value)
        rounds = self.rounds_of(unit)
        if rounds is not None:
            found[rounds.parameter] = rounds.whole
        return dict(sorted(found.items()))

    def rounds_of(self, unit: Floats) -> Rounds | None:
        """Return how the configuration of a row grows, or None if it does not."""
        if not self.is_in_space(unit):
            return None
        return self._rounds[int(self._places(unit[None, :])[0])]

    def grows(self, units: Floats) -> NDArray[np.bool_]:
        """Return which of these rows are configurations that grow."""
        growing = np.array([one is not None for one in self._rounds])
        return np.asarray(growing[self._places(units)])

    def _places(self, units: Floats) -> NDArray[np.intp]:
        """Return the dict that each row is drawn from."""
        if not self._several:
            return np.zeros(len(units), dtype=np.intp)
        return self.space.parameters[0].index(units[:, 0])

    def _rounds_parameter(self, place: int) -> str | None:
        rounds = self._rounds[place]
        return None if rounds is None else rounds.parameter

    def stored(self, unit: Floats) -> dict[str, tuple[Any, BaseDistribution]]:
        """Return the values and distributions of a row for the study."""
        found: dict[str, tuple[Any, BaseDistribution]] = {}
        for name, value in self.space.configuration(unit).items():
            if name == WHICH_SPACE:
                choices = self.space.parameters[0].choices
                found[WHICH_SPACE] = value, CategoricalDistribution(choices)
            else:
                one = self._dimensions[name]
                found[name] = one.stored(value), one.distribution
        return found

    def drawn(self, suggest: Callable[[str, BaseDistribution], Any]) -> Floats:
        """Return the row of values that ``suggest`` draws, in the form of `stored`."""
        values: dict[str, Any] = {}
        for parameter in self.space.parameters:
            if any(values.get(parent) not in allowed for parent, allowed in parameter.active_if):
                continue
            if parameter.name == WHICH_SPACE:
                values[WHICH_SPACE] = suggest(
                    WHICH_SPACE, CategoricalDistribution(parameter.choices)
                )
                continue
            distribution = self._dimensions[parameter.name].distribution
            value = suggest(parameter.name, distribution)
            if isinstance(distribution, CategoricalDistribution):
                value = int(distribution.to_internal_repr(value))  # index of the choice
            values[parameter.name] = value
        return self.space.encode(values)

    def encoded(self, params: Mapping[str, Any]) -> Floats:
        """Return the row of a configuration given by the user."""
        for place in range(self._n_dicts):
            mine, names = self._of_dict(place), set(params) - {self._rounds_parameter(place)}
            if {one.name for one in mine} == names and _may_be(mine, params):
                return self._row(place, mine, params)
        raise ValueError(
            f"start contains {dict(params)!r}, which is not in the space. Give every parameter of "
            "one of its dicts a value from the space."
        )

    def own(self, estimator: Any) -> Floats | None:
        """Return the row of an estimator's own values, or None if they are not in the space."""
        params = estimator.get_params(deep=True)
        for place in range(self._n_dicts):
            mine = self._of_dict(place)
            if {one.name for one in mine} <= set(params) and _may_be(mine, params):
                return self._row(place, mine, params)
        return None

    def nearest_to(self, estimator: Any) -> Floats:
        """Return the row nearest to an estimator's own values.

        Numbers outside a range are moved to its end. Other values that are not in the space are
        replaced by the middle of the range or the first choice.
        """
        params = estimator.get_params(deep=True)

        def n_found(place: int) -> int:
            return sum(number_of(one, params.get(one.name)) is not None for one in rows[place])

        rows = [self._of_dict(place) for place in range(self._n_dicts)]
        place = max(range(self._n_dicts), key=n_found)  # the first of several
        values: dict[str, Any] = {WHICH_SPACE: place} if self._several else {}
        for one in rows[place]:
            values[one.parameter.name] = nearest(one, params.get(one.name))
        return self.space.encode(values)

    def _of_dict(self, place: int) -> list[Dimension]:
        if not self._several:
            return list(self._dimensions.values())
        condition = (WHICH_SPACE, (place,))
        return [one for one in self._dimensions.values() if condition in one.parameter.active_if]

    def _row(self, place: int, mine: Sequence[Dimension], params: Mapping[str, Any]) -> Floats:
        values: dict[str, Any] = {WHICH_SPACE: place} if self._several else {}
        for one in mine:
            values[one.parameter.name] = number_of(one, params[one.name])
        return self.space.encode(values)

    @property
    def fingerprint(self) -> str:
        """A hash that equal spaces share in all processes."""
        parts = [
            f"{one.parameter.name}:{one.distribution!r}:{one.parameter.active_if}"
            f":{name_of_distribution(one.value)}"
            for one in self._dimensions.values()
        ]
        parts += [f"{place}:{one}" for place, one in enumerate(self._rounds) if one is not None]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def _dimension(self, name: str, spec: Any, place: int) -> Dimension:
        label = f"{name}@{place}" if self._several else name
        return dimension_of(name, label, spec, ((WHICH_SPACE, (place,)),) if self._several else ())


def _may_be(dimensions: Sequence[Dimension], params: Mapping[str, Any]) -> bool:
    return all(number_of(one, params[one.name]) is not None for one in dimensions)


def checked_dicts(given: Any) -> list[Mapping[str, Any]]:
    """Return ``param_distributions`` as a list of dicts."""
    dicts = [given] if isinstance(given, Mapping) else given
    if not isinstance(dicts, Sequence) or isinstance(dicts, (str, bytes)):
        raise TypeError(
            f"param_distributions must be a dict or a list of dicts, got {given!r} "
            f"({type(given).__name__})."
        )
    if not dicts:
        raise ValueError("param_distributions must not be an empty list. Pass at least one dict.")
    for content in dicts:
        if not isinstance(content, Mapping):
            raise TypeError(
                f"param_distributions must contain dicts, got {content!r} "
                f"({type(content).__name__})."
            )
    return list(dicts)


def _check_names(content: Mapping[str, Any], estimator: Any) -> None:
    known = set(estimator.get_params(deep=True))
    for name, spec in content.items():
        parents = {name.rsplit("__", depth)[0] for depth in range(1, name.count("__") + 1)}
        if name in known or parents & set(content):
            continue  # or it belongs to an estimator that is searched, too
        if _takes(estimator, name, spec):
            continue  # boosting libraries accept more parameters than they list
        nearest = difflib.get_close_matches(str(name), known, n=1, cutoff=0.4)
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        raise ValueError(
            f"param_distributions contains {name!r}, which is not a parameter of {estimator!r}: "
            f"{hint}Known: {', '.join(sorted(known))}."
        )


def _takes(estimator: Any, name: str, spec: Any) -> bool:
    """Whether ``set_params`` accepts a parameter that ``get_params`` does not list."""
    values = spec if isinstance(spec, (list, tuple)) else getattr(spec, "choices", ())
    value = values[0] if len(values) else getattr(spec, "low", 1)
    try:
        clone(estimator).set_params(**{name: value})
    except Exception:  # any error means that the name or its value is rejected
        return False
    return True
