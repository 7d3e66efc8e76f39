"""A configuration of a search as it is kept in memory, and the space that it is drawn from."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from f2a_tune.outcome import FoldResult, Kind
from f2a_tune.study.attributes import finite_or_none, number_or
from f2a_tune.study.fold_levels import chosen_level, chosen_rounds, kind_at
from f2a_tune.study.fold_record import FoldRecord

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial

Floats = NDArray[np.float64]


class ParameterSpace(Protocol):
    """What the store needs to know about a search space."""

    @property
    def own_params(self) -> Mapping[str, Any]:
        """The estimator's own values."""

    @property
    def n_parameters(self) -> int:
        """Number of coordinates of a point."""

    def params(self, unit: Floats) -> dict[str, Any]:
        """Parameters of the estimator at a point of the unit cube."""

    def is_in_space(self, unit: Floats) -> bool:
        """False for the point that stands for the estimator's own values."""

    def rounds_of(self, unit: Floats) -> Any:
        """How the configuration at a point grows; None if it does not."""

    def stored(self, unit: Floats) -> dict[str, tuple[Any, BaseDistribution]]:
        """Values and distributions for Optuna."""


@dataclass
class ConfigurationRecord:
    """One configuration with the records of its folds."""

    unit: Floats
    params: dict[str, Any]
    trial: Trial | None
    """Our open trial; None if it is closed or belongs to another run."""
    owner: str = ""
    """The run that its open trial belongs to."""
    in_space: bool = True
    """False for the estimator's own parameters, if the space does not contain them."""
    folds: dict[int, FoldRecord] = field(default_factory=dict)
    n_folds: int = 1
    metric: str | None = None
    """Which of several scores decides."""
    stored: set[int] = field(default_factory=set)
    """Folds whose last record is in the open trial."""
    completed_mean: float | None = None
    """Mean of its last complete trial; a configuration that grows may have several."""
    reported: set[int] = field(default_factory=set)
    """Steps of the intermediate values of the open trial."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while its trial is written."""

    def finished(self, fold: int) -> FoldResult | None:
        """The result of a fold, if it has finished; of a fit that grows, at the chosen level."""
        record = self.folds.get(fold)
        if record is None or not record.grows:
            return None if record is None else record.result
        reached = record.at(self.level)
        return None if reached is None else reached.result

    @property
    def grows(self) -> bool:
        """Whether its fits can be scored before their end, and continued."""
        return any(record.grows for record in list(self.folds.values()))

    @property
    def level(self) -> int:
        """The level at which the configuration is best, if it grows; else -1."""
        return chosen_level(list(self.folds.values()), self.n_folds, self.metric)

    @property
    def chosen_params(self) -> dict[str, Any]:
        """Its parameters, with the number of rounds at the chosen level."""
        return self.params | chosen_rounds(list(self.folds.values()), self.level)

    def count(self, *kinds: Kind) -> int:
        """Number of folds that ended in one of these ways."""
        level = self.level
        # A copy: another player may add a record meanwhile.
        return sum(kind_at(record, level) in kinds for record in list(self.folds.values()))

    @property
    def seconds(self) -> float:
        """Seconds of all its pulls."""
        return sum(record.total_seconds for record in self.folds.values())


@dataclass(frozen=True)
class News:
    """A fold record that another run wrote."""

    configuration: int
    fold: int
    record: FoldRecord
    missed_seconds: tuple[float, ...] = ()
    """Seconds of earlier pulls of this fold that were given up and not seen by this run."""
    earlier: FoldRecord | None = None
    """What was known of this fold before."""


def plain_value(value: Any) -> Any:
    """A value that JSON can represent, or its text."""
    plain = isinstance(value, (bool, int, float, str, type(None)))
    return value if plain and value == value else repr(value)


def point_to_json(unit: Floats) -> list[float | None]:
    """A point of the unit cube as JSON; `stored_point` reads it back."""
    return [finite_or_none(float(number)) for number in unit]


def stored_point(content: Any, length: int) -> Floats | None:
    """A stored point of the unit cube; None if the content is invalid."""
    if not isinstance(content, list) or len(content) != length:
        return None
    numbers = [math.nan if one is None else number_or(one, -1.0) for one in content]
    inside = all(math.isnan(number) or 0.0 <= number <= 1.0 for number in numbers)
    return np.array(numbers) if inside else None
