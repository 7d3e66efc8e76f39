"""Which configurations of a search grow, by which parameter, and at what rounds they are scored.

If all configurations of a dict grow by the same parameter, the parameter is taken out of the
space: every fit may grow to the largest value, and the race finds the best number of rounds.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import CategoricalDistribution, IntDistribution
from sklearn.base import clone

from f2a_tune.growth import growable
from f2a_tune.growth.ladder import Ladder

# Fits with these arguments may stop by their own rule, or continue an earlier model.
UNSUITABLE_FIT_PARAMS = (
    "callbacks",
    "early_stopping_rounds",
    "eval_set",
    "init_model",
    "xgb_model",
    "monitor",
)
# Largest number of combinations of choices that are tried to find out whether a dict grows.
MOST_COMBINATIONS = 64
# With fewer rounds there is nothing to gain.
FEWEST_WHOLE_ROUNDS = 8


@dataclass(frozen=True)
class Rounds:
    """How a configuration grows."""

    parameter: str
    """The parameter of the estimator that is its number of rounds."""
    whole: int
    """Rounds of a whole fit."""


@dataclass(frozen=True)
class GrowthPlan:
    """The levels of a search, and how the configurations of each dict of its space grow."""

    ladder: Ladder
    dicts: tuple[Rounds | None, ...]
    """None for a dict whose configurations do not grow."""
    own_level: int
    """Level of the estimator's own number of rounds."""


def planned_growth(
    estimator: Any, dicts: Sequence[Mapping[str, Any]], fit_params: Iterable[str]
) -> GrowthPlan | None:
    """Return the plan of a search, or None if none of its configurations grows."""
    names = list(fit_params)
    if any(name.rpartition("__")[2] in UNSUITABLE_FIT_PARAMS for name in names):
        return None
    found = tuple(_rounds_of(estimator, content, names) for content in dicts)
    growing = [(one, content) for one, content in zip(found, dicts, strict=True) if one]
    if not growing:
        return None
    most = max(one.whole for one, _ in growing)
    first, content = growing[0]
    own = _own_rounds(estimator, first.parameter)
    ladder = Ladder.of(most, None if own is None or first.whole < most else own)
    if len(found) == 1:
        listed = _listed(content.get(first.parameter))
        ladder = Ladder.through(listed) if listed else ladder
    own_level = ladder.level_of(own, first.whole) if own else len(ladder.shares) - 1
    return GrowthPlan(ladder, found, own_level)


def _rounds_of(estimator: Any, content: Mapping[str, Any], fit_params: list[str]) -> Rounds | None:
    """Return how all configurations of a dict grow, or None if they do not all do so alike."""
    found: set[tuple[str, int]] = set()
    for params in _combinations(content):
        one = _growable(estimator, params)
        # If every look repeats the start of the fit, a whole fit is faster.
        if one is None or one.repeats_start or not _takes_fit_params(one.parameter, fit_params):
            return None
        found.add((one.parameter, one.rounds))
    parameters = {parameter for parameter, _ in found}
    if len(parameters) != 1:
        return None
    parameter = parameters.pop()
    if parameter not in content:
        rounds = {rounds for _, rounds in found}
        return _enough(parameter, rounds.pop()) if len(rounds) == 1 else None
    most = _upper_end(content[parameter])
    # If it is the only parameter, the user wants to compare numbers of rounds.
    return None if most is None or len(content) == 1 else _enough(parameter, most)


def _enough(parameter: str, rounds: int) -> Rounds | None:
    return Rounds(parameter, rounds) if rounds >= FEWEST_WHOLE_ROUNDS else None


def _growable(estimator: Any, params: Mapping[str, Any]) -> Any:
    try:
        return growable(clone(estimator).set_params(**clone(dict(params), safe=False)))
    except Exception:  # a combination that the estimator rejects fails later, with its reason
        return None


def _takes_fit_params(parameter: str, fit_params: list[str]) -> bool:
    """Whether a growing pipeline can pass these arguments to its last step."""
    prefix = parameter.rpartition("__")[0]
    return not prefix or all(name.startswith(f"{prefix}__") for name in fit_params)


def _combinations(content: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Return combinations of the values that may change how a configuration grows.

    Numbers do not; if there are too many combinations, only one value is changed at a time.
    """
    choices = {name: values for name, spec in content.items() if (values := _choices(spec))}
    if math.prod(len(values) for values in choices.values()) <= MOST_COMBINATIONS:
        for combination in itertools.product(*choices.values()):
            yield dict(zip(choices, combination, strict=True))
        return
    first = {name: values[0] for name, values in choices.items()}
    for name, values in choices.items():
        for value in values:
            yield {**first, name: value}


def _choices(spec: Any) -> list[Any]:
    """Return the values of a parameter if it is a list and not all of them are numbers."""
    if isinstance(spec, CategoricalDistribution):
        values = list(spec.choices)
    elif isinstance(spec, (list, tuple)):
        values = list(spec)
    else:
        return []
    return [] if all(_is_number(value) for value in values) else values


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _upper_end(spec: Any) -> int | None:
    """Return the largest number of rounds of a distribution or list; None if unknown."""
    listed = _listed(spec)
    if listed:
        return listed[-1]
    if isinstance(spec, IntDistribution):
        return int(spec.high)
    dist = getattr(getattr(spec, "dist", None), "name", "")
    return int(spec.support()[1]) if dist == "randint" else None


def _listed(spec: Any) -> list[int]:
    """Return the sorted numbers of rounds of a list; empty if it is anything else."""
    values: Any = spec.choices if isinstance(spec, CategoricalDistribution) else spec
    if not isinstance(values, (list, tuple, np.ndarray)):
        return []
    whole = [int(value) for value in values if isinstance(value, (int, np.integer))]
    return sorted(set(whole)) if len(whole) == len(values) and min(whole, default=0) > 0 else []


def _own_rounds(estimator: Any, parameter: str) -> int | None:
    own = _growable(estimator, {})
    return own.rounds if own is not None and own.parameter == parameter else None
