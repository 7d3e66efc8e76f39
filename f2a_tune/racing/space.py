"""The search space, which maps configurations to rows of the unit cube and back.

A row has one number in [0, 1] per parameter, and NaN where the parameter is inactive because its
parent has another value. Models use `Space.features`, which has one column per numeric parameter
and one per choice of a categorical one. This module must not import Optuna or scikit-learn; the
adapters translate their spaces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

# Feature value of an inactive number: the middle, so that it is not far from any active value.
INACTIVE_FEATURE = 0.5


@dataclass(frozen=True)
class Parameter:
    """One parameter of a search space.

    Parameters
    ----------
    name : str
        Name of the parameter.
    kind : {"float", "int", "categorical"}
        Type of the parameter.
    low, high : float, default=None
        Smallest and largest value of a numeric parameter, both included.
    log : bool, default=False
        Whether a numeric parameter is sampled on a logarithmic scale.
    choices : tuple, default=()
        Values of a categorical parameter.
    active_if : tuple of (str, tuple), default=()
        Pairs of a parent's name and its allowed values. The parameter is active only if every
        parent has one of its allowed values.
    step : float, default=None
        Distance between the values of a numeric parameter. None means 1 for "int" and a
        continuous range for "float".
    """

    name: str
    kind: Literal["float", "int", "categorical"]
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Any, ...] = ()
    active_if: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    step: float | None = None

    def __post_init__(self) -> None:
        if self.kind == "categorical":
            if not self.choices:
                raise ValueError(
                    f"parameter {self.name!r} is categorical and has no choices. Pass at least "
                    "one."
                )
            return
        if self.low is None or self.high is None or not self.low <= self.high:
            raise ValueError(
                f"parameter {self.name!r} requires low <= high, got low={self.low!r} and "
                f"high={self.high!r}."
            )
        if self.log and self.low <= 0:
            raise ValueError(
                f"parameter {self.name!r} with log=True requires low > 0, got low={self.low!r}."
            )

    @property
    def grid(self) -> float | None:
        """Distance between neighbouring values; None for a continuous or categorical one."""
        return self.step if self.step is not None else (1.0 if self.kind == "int" else None)

    @cached_property
    def size(self) -> float:
        """Number of different values; infinite for a continuous parameter."""
        if self.kind == "categorical":
            return len(self.choices)
        low, high = self._range
        if low == high:
            return 1
        return math.inf if self.grid is None else math.floor((high - low) / self.grid + 1e-9) + 1

    def unit_of_index(self, index: Floats | Indices) -> Floats:
        """Return the unit number of a value's index.

        The unit interval is divided into equal parts, one per value; the result is the middle of
        the part.
        """
        return (np.asarray(index, dtype=np.float64) + 0.5) / self.size

    def index(self, unit: Floats) -> Indices:
        """Return the index of the value of a unit number (for choices and non-log grids)."""
        places = np.floor(np.asarray(unit) * self.size)
        return np.clip(places, 0, self.size - 1).astype(np.intp)

    def snapped(self, unit: Floats) -> Floats:
        """Return the canonical unit number of the value that this unit number represents."""
        if self.size == 1:
            return np.full_like(unit, 0.5)
        if self._by_index:
            return self.unit_of_index(self.index(unit))
        if self.grid is None:
            return unit
        return self._unit_of_number(self._number(unit))

    def value(self, unit: float) -> Any:
        """Return the parameter value of a unit number."""
        if self.kind == "categorical":
            return self.choices[int(self.index(np.asarray(unit)))]
        number = float(self._number(np.asarray(unit)))
        return round(number) if self.kind == "int" else number

    def unit(self, value: Any) -> float:
        """Return the unit number of a parameter value."""
        if self.kind == "categorical":
            return float(self.unit_of_index(np.asarray(self._choice_index(value))))
        return float(self._unit_of_number(np.asarray(float(value))))

    @property
    def _by_index(self) -> bool:
        return self.kind == "categorical" or (self.grid is not None and not self.log)

    @property
    def _range(self) -> tuple[float, float]:
        assert self.low is not None
        assert self.high is not None
        return float(self.low), float(self.high)

    @cached_property
    def _log_range(self) -> tuple[float, float]:
        low, high = self._range
        half = 0.0 if self.grid is None else 0.5 * self.grid
        return math.log(low - half if low > half else low / 2), math.log(high + half)

    def _number(self, unit: Floats) -> Floats:
        low, high = self._range
        if self._by_index:
            assert self.grid is not None
            return np.asarray(low + self.grid * self.index(unit))
        if self.log:
            start, end = self._log_range
            number = np.exp(start + np.asarray(unit) * (end - start))
        else:
            number = low + np.asarray(unit) * (high - low)
        if self.grid is not None:
            number = low + self.grid * np.round((number - low) / self.grid)
        return np.clip(number, low, high)

    def _unit_of_number(self, number: Floats) -> Floats:
        low, high = self._range
        if low == high:
            return np.full_like(number, 0.5)
        if self._by_index:
            assert self.grid is not None
            return self.unit_of_index(np.clip(np.round((number - low) / self.grid), 0, None))
        if self.log:
            start, end = self._log_range
            unit = (np.log(np.maximum(number, math.exp(start))) - start) / (end - start)
        else:
            unit = (number - low) / (high - low)
        return np.clip(unit, 0.0, 1.0)

    def _choice_index(self, value: Any) -> int:
        for index, choice in enumerate(self.choices):
            # In Python, 1 == True and 1 == 1.0, but a user who lists both means two values.
            if choice is value or (type(choice) is type(value) and choice == value):
                return index
        for index, choice in enumerate(self.choices):
            if choice == value:
                return index
        raise ValueError(
            f"{value!r} is not one of the choices of parameter {self.name!r}: {self.choices!r}."
        )


@dataclass(frozen=True)
class Space:
    """A search space of numeric, categorical and conditional parameters.

    Parameters
    ----------
    parameters : tuple of Parameter
        The parameters. A parent must come before the parameters that depend on it.

    Examples
    --------
    >>> space = Space((Parameter("kernel", "categorical", choices=("rbf", "linear")),
    ...                Parameter("gamma", "float", 0.01, 10, log=True,
    ...                          active_if=(("kernel", ("rbf",)),))))
    >>> space.configuration(space.encode({"kernel": "linear"}))
    {'kernel': 'linear'}
    """

    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for parameter in self.parameters:
            if parameter.name in seen:
                raise ValueError(
                    f"parameter {parameter.name!r} is given twice. Names must be unique."
                )
            missing = [parent for parent, _ in parameter.active_if if parent not in seen]
            if missing:
                raise ValueError(
                    f"parameter {parameter.name!r} depends on parameter {missing[0]!r}, "
                    "which must come before it in the space."
                )
            seen.add(parameter.name)

    def sample(self, rng: np.random.Generator, count: int) -> Floats:
        """Return rows of random configurations."""
        return self.repaired(rng.random((count, len(self.parameters))), rng)

    def repaired(self, units: Floats, rng: np.random.Generator) -> Floats:
        """Return valid rows: every number on its grid, and NaN exactly at inactive parameters."""
        repaired = np.array(units, dtype=np.float64)
        for column, parameter in enumerate(self.parameters):
            values = repaired[:, column]
            absent = np.isnan(values)
            if absent.any():
                values[absent] = rng.random(int(absent.sum()))
            values[:] = parameter.snapped(values)
            if parameter.active_if:
                values[~self._active(parameter, repaired)] = np.nan
        return repaired

    def neighbours(self, units: Floats, rng: np.random.Generator) -> Floats:
        """Return for every row a new row that differs in a few of its active parameters."""
        count, width = units.shape
        rows, active = units.copy(), ~np.isnan(units)
        # One random parameter always changes, and every other one with probability 0.2.
        moves = rng.random((count, width)) < 0.2
        moves[np.arange(count), np.where(active, rng.random((count, width)), -1).argmax(1)] = True
        spread = rng.choice([0.05, 0.1, 0.2], (count, 1))
        steps = rng.normal(0.0, 1.0, (count, width)) * spread
        steps = np.sign(steps) * np.maximum(np.abs(steps), self._least_steps)
        moved = np.where(self._categorical, rng.random((count, width)), _reflected(rows + steps))
        return self.repaired(np.where(moves & active, moved, rows), rng)

    def features(self, units: Floats) -> Floats:
        """Return the features of rows for a model, with categorical parameters one-hot encoded."""
        columns: list[Floats] = []
        for column, parameter in enumerate(self.parameters):
            values = units[:, column]
            present = ~np.isnan(values)
            if parameter.kind != "categorical":
                columns.append(np.where(present, values, INACTIVE_FEATURE)[:, None])
            elif parameter.size > 1:
                index = parameter.index(np.where(present, values, 0.0))
                table = np.eye(len(parameter.choices))
                columns.append(np.where(present[:, None], table[index], 0.0))
        return np.hstack(columns) if columns else np.zeros((len(units), 1))

    def distances(self, unit: Floats, units: Floats) -> Floats:
        """Return the squared distances of one row to many.

        A numeric parameter contributes its squared difference; a different choice, or a parameter
        that is active in only one of the two rows, contributes 1.
        """
        gaps = np.abs(units - unit)
        other = np.isnan(units) != np.isnan(unit)
        gaps = np.where(np.isnan(gaps), other.astype(np.float64), gaps)
        for column, parameter in enumerate(self.parameters):
            if parameter.kind == "categorical":
                gaps[:, column] = gaps[:, column] > 0.25 / len(parameter.choices)
        return np.asarray((gaps**2).sum(axis=1))

    def encode(self, configuration: Mapping[str, Any]) -> Floats:
        """Return the row of a configuration; parameters that it does not contain are inactive."""
        unit = np.full(len(self.parameters), np.nan)
        for column, parameter in enumerate(self.parameters):
            if parameter.name in configuration:
                unit[column] = parameter.unit(configuration[parameter.name])
        return unit

    def configuration(self, unit: Floats) -> dict[str, Any]:
        """Return the configuration of a row: its active parameters and their values."""
        return {
            parameter.name: parameter.value(float(value))
            for parameter, value in zip(self.parameters, unit, strict=True)
            if not math.isnan(value)
        }

    @cached_property
    def _categorical(self) -> Flags:
        return np.array([parameter.kind == "categorical" for parameter in self.parameters])

    @cached_property
    def _least_steps(self) -> Floats:
        """Smallest steps in the unit cube that change the value of each parameter."""
        return np.array([1.0 / parameter.size for parameter in self.parameters])

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {parameter.name: column for column, parameter in enumerate(self.parameters)}

    def _active(self, parameter: Parameter, units: Floats) -> Flags:
        active = np.ones(len(units), dtype=bool)
        for parent_name, allowed in parameter.active_if:
            parent = self.parameters[self._columns[parent_name]]
            values = units[:, self._columns[parent_name]]
            wanted = np.array([parent.unit(value) for value in allowed])
            gaps = np.abs(values[:, None] - wanted[None, :])  # NaN if the parent is inactive
            active &= (gaps < 0.25 / parent.size).any(axis=1)
        return active


def _reflected(values: Floats) -> Floats:
    """Return the numbers reflected at the ends of [0, 1]."""
    return np.asarray(1.0 - np.abs(1.0 - np.abs(values) % 2.0))
