"""Values of options as people write them: text in, numbers or one clear line out."""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)([smhd]))")


def seconds(option: str, text: str) -> float:
    """``90``, ``90s``, ``5m`` or ``1h30m``.

    Examples
    --------
    >>> seconds("--budget", "1h30m")
    5400.0
    """
    written = text.strip().lower()
    if re.fullmatch(r"\d+(?:\.\d+)?", written):
        found = float(written)
    elif re.fullmatch(rf"(?:{DURATION.pattern})+", written):
        found = sum(float(number) * UNITS[unit] for number, unit in DURATION.findall(written))
    else:
        raise ValueError(f"{option} {text!r} must be a duration such as 90, 90s, 5m or 1h30m.")
    if found <= 0:
        raise ValueError(f"{option} {text!r} must be above zero.")
    return found


def whole_number(option: str, text: str, least: int = 1) -> int:
    """A count."""
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} must be a whole number.") from None
    if number < least:
        raise ValueError(f"{option} {text!r} must be at least {least}.")
    return number


def jobs(option: str, text: str) -> int:
    """How many at a time; -1 is one for every core."""
    return -1 if text.strip() == "-1" else whole_number(option, text)


def share(option: str, text: str) -> float:
    """At least 0 and below 1."""
    try:
        found = float(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} must be a number such as 0.2.") from None
    if not 0 <= found < 1:
        raise ValueError(f"{option} {text!r} must be at least 0 and below 1.")
    return found


def check_writable(option: str, path: str | None) -> None:
    """Before hours of work: whether a file can be written there; None is no file."""
    if path is None:
        return
    if Path(path).is_dir():
        raise ValueError(f"{option} {path!r} is a folder: name a file in it.")
    if Path(path).exists() and not os.access(path, os.W_OK):
        raise ValueError(f"{option} {path!r} is there already, and cannot be written to.")
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ValueError(
            f"{option} {path!r}: there is no such folder, it does not exist: make it first."
        )
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{option}: the folder of {path!r} cannot be written to.")


def imported(option: str, reference: str) -> Any:
    """What ``module:name`` stands for."""
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise ValueError(f"{option} {reference!r} must read module:name.")
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules in the folder one stands in, as python -m finds them
    try:
        found = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(f"{option} {reference!r} cannot be imported: {error}.") from error
    try:
        return getattr(found, name)
    except AttributeError:
        raise ValueError(f"{option} {reference!r}: {module_name} has no {name!r}.") from None
