"""Validation of user arguments.

Every check returns the converted value or raises ``TypeError`` (wrong type) or ``ValueError``
(wrong value). Messages name the argument, the value received and what is expected instead.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Iterable
from typing import Any


def positive_number(argument: str, value: Any, *, endless: bool = False) -> float:
    """Return ``value`` as a float above zero, or raise; ``endless`` also allows infinity."""
    number = real_number(argument, value)
    if not (number > 0 and (endless or math.isfinite(number))):
        finite = "" if endless else "finite "
        raise ValueError(f"{argument} must be a {finite}number above 0, got {value!r}.")
    return number


UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)([smhd]))")


def duration(argument: str, value: Any) -> float:
    """Return a duration in seconds, from a number or a string such as ``"90s"`` or ``"1h30m"``.

    A string is a plain number of seconds or a series of numbers with the units s, m, h or d.

    Examples
    --------
    >>> duration("time_budget", "1h30m"), duration("time_budget", 2)
    (5400.0, 2.0)
    """
    if not isinstance(value, str):
        return positive_number(argument, value)
    written = value.strip().lower()
    if re.fullmatch(r"\d+(?:\.\d+)?", written):
        found = float(written)
    elif re.fullmatch(rf"(?:{DURATION.pattern})+", written):
        found = sum(float(number) * UNITS[unit] for number, unit in DURATION.findall(written))
    else:
        raise ValueError(
            f"{argument} must be a number of seconds or a duration such as '90s', '5m' or "
            f"'1h30m', got {value!r}."
        )
    return positive_number(argument, found)


def real_number(argument: str, value: Any) -> float:
    """Return ``value`` as a float, or raise ``TypeError`` if it is not a number."""
    if isinstance(value, (bool, str, bytes)):
        raise TypeError(f"{argument} must be a number, got {value!r} ({type(value).__name__}).")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{argument} must be a number, got {value!r} ({type(value).__name__})."
        ) from None


def positive_integer(argument: str, value: Any) -> int:
    """Return ``value`` as an int, or raise if it is not an integer of at least 1."""
    number = real_number(argument, value)
    if not math.isfinite(number) or number != int(number) or number < 1:
        raise ValueError(f"{argument} must be a whole number of at least 1, got {value!r}.")
    return int(number)


def rising_numbers(argument: str, values: Any) -> tuple[float, ...]:
    """Return ``values`` as a tuple, or raise if they are not finite, positive and increasing."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{argument} must be a sequence of numbers, got {values!r}.")
    numbers = tuple(real_number(argument, value) for value in values)
    if not numbers:
        raise ValueError(f"{argument} must not be empty. Pass at least one number.")
    for number in numbers:
        if not (math.isfinite(number) and number > 0):
            raise ValueError(
                f"{argument} must be finite and above 0, got {number!r} in {numbers}."
            )
    if any(low >= high for low, high in itertools.pairwise(numbers)):
        raise ValueError(
            f"{argument} must be strictly increasing, got {numbers}. Sort the values and remove "
            "duplicates."
        )
    return numbers


def known_name(argument: str, value: Any, names: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``names``, or raise and suggest the most similar name."""
    known = list(names)
    if not isinstance(value, str):
        raise TypeError(f"{argument} must be a name (one of {', '.join(known)}), got {value!r}.")
    if value in known:
        return value
    nearest = difflib.get_close_matches(value, known, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise ValueError(f"{argument}={value!r} is unknown: {hint}Known: {', '.join(known)}.")
