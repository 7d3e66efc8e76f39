"""What a call should find as in the parent: import path, folder, warnings, sklearn's config."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True)
class Context:
    """The parent's settings at the time of a call; equal contexts need not be sent again."""

    import_path: tuple[str, ...]
    working_directory: str | None
    warning_filters: tuple[Any, ...]
    sklearn_config: dict[str, Any] | None

    @classmethod
    def current(cls) -> Context:
        """The settings of this process now."""
        sklearn = sys.modules.get("sklearn")
        try:
            folder: str | None = os.getcwd()
        except OSError:  # the folder was removed under us
            folder = None
        return cls(
            import_path=tuple(sys.path),
            working_directory=folder,
            warning_filters=tuple(warnings.filters),
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
        cast("list[Any]", warnings.filters).extend(self.warning_filters)
        if self.sklearn_config is not None:
            import sklearn

            sklearn.set_config(**self.sklearn_config)
