"""Parsing and checks of option values; every error is one line that names the option."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from f2a_tune.checks import duration


def seconds(option: str, text: str) -> float:
    """Parse a duration such as ``90``, ``90s``, ``5m`` or ``1h30m``.

    Examples
    --------
    >>> seconds("--budget", "1h30m")
    5400.0
    """
    return duration(option, text)


def whole_number(option: str, text: str, least: int = 1) -> int:
    """Parse a whole number of at least ``least``."""
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} must be a whole number.") from None
    if number < least:
        raise ValueError(f"{option} {text!r} must be at least {least}.")
    return number


def jobs(option: str, text: str) -> int:
    """Parse the number of parallel fits; -1 means one per core."""
    return -1 if text.strip() == "-1" else whole_number(option, text)


def share(option: str, text: str) -> float:
    """Parse a fraction of at least 0 and below 1."""
    try:
        found = float(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} must be a number such as 0.2.") from None
    if not 0 <= found < 1:
        raise ValueError(f"{option} {text!r} must be at least 0 and below 1.")
    return found


def check_writable(option: str, path: str | None) -> None:
    """Raise before hours of work if ``path`` cannot be written; None means no file."""
    if path is None:
        return
    if Path(path).is_dir():
        raise ValueError(f"{option} {path!r} is a folder. Pass the path of a file.")
    if Path(path).exists() and not os.access(path, os.W_OK):
        raise ValueError(f"{option} {path!r} exists and cannot be written to. Pass another path.")
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ValueError(f"{option} {path!r}: the folder does not exist. Create it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{option} {path!r}: the folder cannot be written to. Pass another path.")


def imported(option: str, reference: str) -> Any:
    """Import the object that ``module:name`` refers to."""
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise ValueError(f"{option} {reference!r} must have the form module:name.")
    if "" not in sys.path:
        sys.path.insert(0, "")  # find modules in the current folder, like python -m
    try:
        found = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(f"{option} {reference!r} cannot be imported: {error}.") from error
    try:
        return getattr(found, name)
    except AttributeError:
        raise ValueError(f"{option} {reference!r}: no attribute {name!r} in the module.") from None
