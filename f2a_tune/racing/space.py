"""The space of configurations as a unit cube: parameters go in, rows of numbers come out.

A row has one number in [0, 1] per parameter, NaN where the parameter is inactive (its parent has
another value). Models see `features`: numbers as they are, one column per choice. Nothing here
knows Optuna or scikit-learn; their spaces are translated where they are used.
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

INACTIVE_FEATURE = 0.5  # the middle, so that an inactive number is far from nothing


@dataclass(frozen=True)
class Parameter:
    """One dimension of a space.

    Parameters
    ----------
    kind
        "float", "int" or "categorical".
    low, high, step, log
        Range of a number, both ends included; a ``step`` makes it a grid.
    choices
        The values of a categorical parameter.
    active_if
        Pairs of (parent's name, values of it): active only if every parent has such a value.
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
                raise ValueError(f"parameter {self.name!r} has no choices: give at least one.")
            return
        if self.low is None or self.high is None or not self.low <= self.high:
            raise ValueError(
                f"parameter {self.name!r} needs low <= high, got {self.low!r} and {self.high!r}."
            )
        if self.log and self.low <= 0:
            raise ValueError(f"parameter {self.name!r} is log, so low > 0, got {self.low!r}.")

    @property
    def grid(self) -> float | None:
        """Distance of neighbouring values, if there are any."""
        return self.step if self.step is not None else (1.0 if self.kind == "int" else None)

    @cached_property
    def size(self) -> float:
        """How many values it has."""
        if self.kind == "categorical":
            return len(self.choices)
        low, high = self._range
        if low == high:
            return 1
        return math.inf if self.grid is None else math.floor((high - low) / self.grid + 1e-9) + 1

    def unit_of_index(self, index: Floats | Indices) -> Floats:
        """The middle of the index-th of equal parts of the unit interval, one for each value."""
        return (np.asarray(index, dtype=np.float64) + 0.5) / self.size

    def index(self, unit: Floats) -> Indices:
        """Which of its values a unit number stands for (choices and grids without a log)."""
        places = np.floor(np.asarray(unit) * self.size)
        return np.clip(places, 0, self.size - 1).astype(np.intp)

    def snapped(self, unit: Floats) -> Floats:
        """The unit number that stands for the same value as this one."""
        if self.size == 1:
            return np.full_like(unit, 0.5)
        if self._by_index:
            return self.unit_of_index(self.index(unit))
        if self.grid is None:
            return unit
        return self._unit_of_number(self._number(unit))

    def value(self, unit: float) -> Any:
        """What a user would write for a unit number."""
        if self.kind == "categorical":
            return self.choices[int(self.index(np.asarray(unit)))]
        number = float(self._number(np.asarray(unit)))
        return round(number) if self.kind == "int" else number

    def unit(self, value: Any) -> float:
        """The unit number of a value."""
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
            # 1 == True and 1 == 1.0 in Python, but a user who lists both means two values.
            if choice is value or (type(choice) is type(value) and choice == value):
                return index
        for index, choice in enumerate(self.choices):
            if choice == value:
                return index
        raise ValueError(f"{value!r} is no choice of {self.name!r}: {self.choices!r}.")


@dataclass(frozen=True)
class Space:
    """Parameters, parents before their children.

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
                raise ValueError(f"parameter {parameter.name!r} is given twice.")
            missing = [parent for parent, _ in parameter.active_if if parent not in seen]
            if missing:
                raise ValueError(
                    f"parameter {parameter.name!r} depends on {missing[0]!r}, "
                    "which must come before it."
                )
            seen.add(parameter.name)

    def sample(self, rng: np.random.Generator, count: int) -> Floats:
        """Rows of configurations drawn at random."""
        return self.repaired(rng.random((count, len(self.parameters))), rng)

    def repaired(self, units: Floats, rng: np.random.Generator) -> Floats:
        """Rows with every number on its grid, and exactly the active ones present."""
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
        """For every row another one that differs in a few of its active parameters."""
        count, width = units.shape
        rows, active = units.copy(), ~np.isnan(units)
        # One parameter always moves, every other one in a fifth of the rows.
        moves = rng.random((count, width)) < 0.2
        moves[np.arange(count), np.where(active, rng.random((count, width)), -1).argmax(1)] = True
        spread = rng.choice([0.05, 0.1, 0.2], (count, 1))
        steps = rng.normal(0.0, 1.0, (count, width)) * spread
        steps = np.sign(steps) * np.maximum(np.abs(steps), self._least_steps)
        moved = np.where(self._categorical, rng.random((count, width)), _reflected(rows + steps))
        return self.repaired(np.where(moves & active, moved, rows), rng)

    def features(self, units: Floats) -> Floats:
        """Rows as a model sees them: numbers, and one column for every choice."""
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
        """Of one row to many: differences of numbers, 1 for another choice or activity."""
        gaps = np.abs(units - unit)
        other = np.isnan(units) != np.isnan(unit)
        gaps = np.where(np.isnan(gaps), other.astype(np.float64), gaps)
        for column, parameter in enumerate(self.parameters):
            if parameter.kind == "categorical":
                gaps[:, column] = gaps[:, column] > 0.25 / len(parameter.choices)
        return np.asarray((gaps**2).sum(axis=1))

    def encode(self, configuration: Mapping[str, Any]) -> Floats:
        """The row of a configuration; what it does not name is inactive."""
        unit = np.full(len(self.parameters), np.nan)
        for column, parameter in enumerate(self.parameters):
            if parameter.name in configuration:
                unit[column] = parameter.unit(configuration[parameter.name])
        return unit

    def configuration(self, unit: Floats) -> dict[str, Any]:
        """The active parameters of a row with their values."""
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
        """What moves a parameter to its next value at least."""
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
    """Numbers beyond an end of [0, 1] turned back from it."""
    return np.asarray(1.0 - np.abs(1.0 - np.abs(values) % 2.0))
