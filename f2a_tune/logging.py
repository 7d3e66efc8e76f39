"""Messages of this library, in the style of Optuna's: same names, same format, a tree of its own.

Lines about trials are shown on the standard error stream by default, as Optuna shows its own.
"""

from __future__ import annotations

import logging
import sys
import threading
from logging import CRITICAL, DEBUG, ERROR, INFO, WARNING

__all__ = [
    "CRITICAL",
    "DEBUG",
    "ERROR",
    "INFO",
    "WARNING",
    "disable_default_handler",
    "disable_propagation",
    "enable_default_handler",
    "enable_propagation",
    "get_logger",
    "get_verbosity",
    "set_verbosity",
]

ROOT = "f2a_tune"

_lock = threading.Lock()
_handler: logging.Handler | None = None


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return f"[{record.levelname[0]} {self.formatTime(record)}] {text}"


class _CurrentStderr(logging.Handler):
    """Writes to what is standard error at the time: tests and notebooks change it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


def _root() -> logging.Logger:
    global _handler
    root = logging.getLogger(ROOT)
    with _lock:
        if _handler is None:
            _handler = _CurrentStderr()
            _handler.setFormatter(_Formatter())
            root.addHandler(_handler)
            root.addHandler(logging.NullHandler())  # without any, Python shows warnings itself
            root.setLevel(INFO)
            root.propagate = False
    return root


def get_logger(name: str) -> logging.Logger:
    """A logger of this library; ``name`` begins with "f2a_tune"."""
    _root()
    return logging.getLogger(name)


def get_verbosity() -> int:
    """The level below which nothing is shown."""
    return _root().level


def set_verbosity(verbosity: int) -> None:
    """Show nothing below this level, such as ``f2a_tune.logging.WARNING``."""
    _root().setLevel(verbosity)


def disable_default_handler() -> None:
    """Do not write to standard error."""
    root = _root()
    assert _handler is not None
    root.removeHandler(_handler)


def enable_default_handler() -> None:
    """Write to standard error again."""
    root = _root()
    assert _handler is not None
    root.addHandler(_handler)


def enable_propagation() -> None:
    """Pass messages on to the handlers of the program's own logging."""
    _root().propagate = True


def disable_propagation() -> None:
    """Do not pass messages on."""
    _root().propagate = False
