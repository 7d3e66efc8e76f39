"""Logging of this library, with the same functions and line format as ``optuna.logging``.

The loggers form a separate tree under "f2a_tune". By default, messages about trials are written
to standard error, as Optuna does with its own.
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
_is_set = False


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return f"[{record.levelname[0]} {self.formatTime(record)}] {text}"


class _CurrentStderr(logging.Handler):
    """Handler that looks up ``sys.stderr`` for every record: tests and notebooks replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line to the current standard error stream."""
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
            # If a logger has no handler at all, Python prints its warnings to stderr.
            root.addHandler(logging.NullHandler())
            root.setLevel(INFO)
            root.propagate = False
    return root


def get_logger(name: str) -> logging.Logger:
    """Return a logger of this library; ``name`` must start with "f2a_tune"."""
    _root()
    return logging.getLogger(name)


def get_verbosity() -> int:
    """Return the current log level; messages below it are not shown."""
    return _root().level


def set_verbosity(verbosity: int) -> None:
    """Set the log level, for example ``f2a_tune.logging.WARNING``.

    Until this function is called, messages about trials are shown only if Optuna's log level
    shows Optuna's own messages about trials.
    """
    global _is_set
    _is_set = True
    _root().setLevel(verbosity)


def is_verbosity_set() -> bool:
    """Return whether `set_verbosity` has been called."""
    return _is_set


def disable_default_handler() -> None:
    """Stop writing log messages to standard error."""
    root = _root()
    assert _handler is not None
    root.removeHandler(_handler)


def enable_default_handler() -> None:
    """Write log messages to standard error again."""
    root = _root()
    assert _handler is not None
    root.addHandler(_handler)


def enable_propagation() -> None:
    """Pass log messages on to the handlers of the root logger."""
    _root().propagate = True


def disable_propagation() -> None:
    """Stop passing log messages on to the handlers of the root logger."""
    _root().propagate = False
