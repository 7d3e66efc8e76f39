"""Pickles an objective for a worker process.

An objective of a script is pickled by value, with the globals it uses. Two kinds of globals need
care: the study, whose copy would never be updated, and functions with a cache, which cloudpickle
pickles by reference to a module that the worker does not have.
"""

from __future__ import annotations

import functools
import importlib
import io
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cloudpickle

from f2a_tune.cutoff.shared import cannot_be_sent
from f2a_tune.optuna_plugin.remote_trial import RemoteStudy

if TYPE_CHECKING:
    from optuna import Study

_Cached = type(functools.cache(lambda: None))


class PackedObjective:
    """A pickled objective; a worker that loads it gets the objective itself."""

    def __init__(self, objective: Callable[[Any], Any], study: Study) -> None:
        buffer = io.BytesIO()
        try:
            _Pickler(buffer, study).dump(objective)
        except Exception as error:
            raise cannot_be_sent(f"objective={objective!r}", error) from error
        self._payload = buffer.getvalue()

    def __reduce__(self) -> tuple[Any, ...]:
        return cloudpickle.loads, (self._payload,)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, study: Study) -> None:
        super().__init__(file)
        self._study = study

    def reducer_override(self, value: Any) -> Any:
        """Replace the study, and functions with a cache that are pickled by value."""
        if isinstance(value, types.ModuleType) and sys.modules.get(value.__name__) is value:
            return importlib.import_module, (value.__name__,)  # some modules have a custom class
        if value is self._study:
            return RemoteStudy, ()
        if isinstance(value, _Cached) and getattr(value, "__module__", None) == "__main__":
            options = value.cache_parameters()
            return _cached_again, (value.__wrapped__, options["maxsize"], options["typed"])
        return super().reducer_override(value)


def _cached_again(function: Callable[..., Any], maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize=maxsize, typed=typed)(function)
