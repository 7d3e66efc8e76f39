"""Checks of what users hand in: errors name the argument, the value received and the fix."""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Iterable
from typing import Any


def positive_number(argument: str, value: Any, *, endless: bool = False) -> float:
    """Return ``value`` as a float above zero, or raise; infinity passes only if ``endless``."""
    number = real_number(argument, value)
    if not (number > 0 and (endless or math.isfinite(number))):
        finite = "" if endless else "finite "
        raise ValueError(f"{argument} must be a {finite}number above 0, got {value!r}.")
    return number


def real_number(argument: str, value: Any) -> float:
    """Return ``value`` as a float, or raise ``TypeError`` for what is not a number at all."""
    if isinstance(value, (bool, str, bytes)):
        raise TypeError(f"{argument} must be a number, got {value!r} ({type(value).__name__}).")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{argument} must be a number, got {value!r} ({type(value).__name__})."
        ) from None


def positive_integer(argument: str, value: Any) -> int:
    """Return ``value`` as an int, or raise if it is not a whole number of at least one."""
    number = real_number(argument, value)
    if not math.isfinite(number) or number != int(number) or number < 1:
        raise ValueError(f"{argument} must be a whole number of at least 1, got {value!r}.")
    return int(number)


def rising_numbers(argument: str, values: Any) -> tuple[float, ...]:
    """Return ``values`` as a tuple of at least one finite number above 0, each above the last."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{argument} must be a sequence of numbers, got {values!r}.")
    numbers = tuple(real_number(argument, value) for value in values)
    if not numbers:
        raise ValueError(f"{argument} must not be empty: give at least one number.")
    for number in numbers:
        if not (math.isfinite(number) and number > 0):
            raise ValueError(
                f"{argument} must be finite and above 0, got {number!r} in {numbers}."
            )
    if any(low >= high for low, high in itertools.pairwise(numbers)):
        raise ValueError(f"{argument} must rise strictly, got {numbers}: sort it, drop repeats.")
    return numbers


def known_name(argument: str, value: Any, names: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``names``, or raise and suggest the nearest one."""
    known = list(names)
    if not isinstance(value, str):
        raise TypeError(f"{argument} must be a name (one of {', '.join(known)}), got {value!r}.")
    if value in known:
        return value
    nearest = difflib.get_close_matches(value, known, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise ValueError(f"{argument}={value!r} is unknown: {hint}Known: {', '.join(known)}.")
