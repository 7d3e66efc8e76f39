"""What a call should find as in the parent: import path, folder, warnings, sklearn's config."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import cloudpickle


@dataclass(frozen=True)
class Context:
    """The parent's settings at the time of a call; equal contexts need not be sent again.

    Filters are pickled apart, each by itself: their categories may be classes of a notebook, or of
    modules that a worker finds only once it has the import path.
    """

    import_path: tuple[str, ...]
    working_directory: str | None
    warning_filters: tuple[bytes, ...]
    sklearn_config: dict[str, Any] | None

    @classmethod
    def current(cls) -> Context:
        """The settings of this process and thread now."""
        sklearn = sys.modules.get("sklearn")
        try:
            folder: str | None = os.getcwd()
        except OSError:  # the folder was removed under us
            folder = None
        return cls(
            import_path=tuple(entry for entry in sys.path if isinstance(entry, str)),
            working_directory=folder,
            warning_filters=_packed_filters(),
            sklearn_config=None if sklearn is None else sklearn.get_config(),
        )

    def apply(self) -> None:
        """Make this process like the one the context was taken from."""
        sys.path[:] = self.import_path
        if self.working_directory is not None:
            os.chdir(self.working_directory)
        # The reset also forgets which warnings were shown. The list is then filled as it was, for
        # filterwarnings() takes only part of what a filter may be.
        warnings.resetwarnings()
        cast("list[Any]", warnings.filters).extend(_unpacked_filters(self.warning_filters))
        if self.sklearn_config is not None:
            import sklearn

            sklearn.set_config(**self.sklearn_config)


# The last filters packed and unpacked: they hardly ever change from call to call.
_packed: tuple[tuple[Any, ...], tuple[bytes, ...]] = ((), ())
_unpacked: tuple[tuple[bytes, ...], list[Any]] = ((), [])


def _packed_filters() -> tuple[bytes, ...]:
    global _packed
    filters = tuple(warnings.filters)
    if filters != _packed[0]:
        parts = []
        for entry in filters:
            with suppress(Exception):  # a filter that cannot be sent is not worth a failed call
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
