"""The settings of the parent process that are copied to the worker for every call.

These are environment variables, import path, working directory, warning filters, scikit-learn's
configuration and log levels.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import cloudpickle

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
# Loggers whose level is copied: the root logger, and those of the tuning libraries.
LOGGERS = ("", "f2a_tune", "optuna")
# Environment variable that marks all processes started by a pool.
MARK = "F2A_TUNE_POOL"
POOL_VARIABLES = (MARK, *THREAD_VARIABLES)


@dataclass(frozen=True)
class Context:
    """The parent's settings at the time of a call; a context is sent only if it has changed.

    Each warning filter is pickled separately. Its category may be a class of a notebook, or of a
    module that the worker can import only after the import path has been set.
    """

    environment: dict[str, str]
    import_path: tuple[str, ...]
    working_directory: str | None
    warning_filters: tuple[bytes, ...]
    sklearn_config: dict[str, Any] | None
    log_levels: tuple[tuple[str, int], ...] = ()

    @classmethod
    def current(cls) -> Context:
        """Return the current settings of this process and thread."""
        sklearn = sys.modules.get("sklearn")
        try:
            folder: str | None = os.getcwd()
        except OSError:  # the working directory has been deleted
            folder = None
        return cls(
            environment=dict(os.environ),
            import_path=tuple(entry for entry in sys.path if isinstance(entry, str)),
            working_directory=folder,
            warning_filters=_packed_filters(),
            sklearn_config=None if sklearn is None else sklearn.get_config(),
            log_levels=tuple((name, logging.getLogger(name).level) for name in LOGGERS),
        )

    def apply(self) -> None:
        """Apply the settings to this process."""
        self._apply_environment()
        for name, level in self.log_levels:
            logging.getLogger(name).setLevel(level)
        sys.path[:] = self.import_path
        if self.working_directory is not None:
            os.chdir(self.working_directory)
        # The reset also forgets which warnings were already shown. The list is then extended
        # directly, because filterwarnings() does not accept every filter that a list may contain.
        warnings.resetwarnings()
        cast("list[Any]", warnings.filters).extend(_unpacked_filters(self.warning_filters))
        if self.sklearn_config is not None:
            import sklearn

            sklearn.set_config(**self.sklearn_config)

    def _apply_environment(self) -> None:
        """Set the environment variables of the parent.

        Libraries that are already loaded have read their variables before; this serves calls that
        read variables themselves. The numbers of threads are those of the pool, unless the parent
        has set them.
        """
        for name in set(os.environ) - set(self.environment) - set(POOL_VARIABLES):
            del os.environ[name]
        for name, value in self.environment.items():
            if os.environ.get(name) != value:
                os.environ[name] = value


# Cache of the last filters packed and unpacked: they rarely change between calls.
_packed: tuple[tuple[Any, ...], tuple[bytes, ...]] = ((), ())
_unpacked: tuple[tuple[bytes, ...], list[Any]] = ((), [])


def _packed_filters() -> tuple[bytes, ...]:
    global _packed
    filters = tuple(warnings.filters)
    if filters != _packed[0]:
        parts = []
        for entry in filters:
            with suppress(Exception):  # a filter that cannot be pickled must not fail the call
                parts.append(bytes(cloudpickle.dumps(entry)))
        _packed = filters, tuple(parts)
    return _packed[1]


def _unpacked_filters(parts: tuple[bytes, ...]) -> list[Any]:
    global _unpacked
    if parts != _unpacked[0]:
        filters = []
        for part in parts:
            with suppress(Exception):
                filters.append(cloudpickle.loads(part))
        _unpacked = parts, filters
    return _unpacked[1]
