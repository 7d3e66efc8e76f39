"""Repeats calls while the storage of a study cannot be reached.

A call may be made twice although the first attempt did its work and only its answer was lost, so
callers must be able to tolerate that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, InMemoryStorage

from f2a_tune import clock
from f2a_tune.clock import Budget
from f2a_tune.logging import get_logger
from f2a_tune.study import optuna_private
from f2a_tune.study.limits import LAST_TRY_SECONDS, STORAGE_OUTAGE_SECONDS, STORAGE_RETRY_SECONDS

if TYPE_CHECKING:
    from optuna import Study

STORAGE_ERRORS = (StorageInternalError, OSError)
"""What a storage raises while it cannot be reached."""

T = TypeVar("T")
_logger = get_logger("f2a_tune.storage")


class StorageLostError(Exception):
    """A storage could not be reached before the time was up."""


class StorageRetry:
    """Repeats calls of a storage while it cannot be reached.

    Parameters
    ----------
    budget
        When it is spent, a call is tried once more and then given up.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = Budget() if budget is None else budget
        self.reserved_seconds = 0.0
        """Part of the budget that is needed after the storage has come back."""
        self._is_stopped = False

    def stop(self) -> None:
        """Do not wait for the storage any more; the user wants to leave."""
        self._is_stopped = True

    def __call__(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns, or raise `StorageLostError`."""
        begin = clock.monotonic_seconds()
        while True:
            try:
                return call()
            except STORAGE_ERRORS as error:
                waited = clock.monotonic_seconds() - begin
                left = self.budget.remaining_seconds - self.reserved_seconds
                left = max(left, LAST_TRY_SECONDS - waited)
                if self._is_stopped or waited > STORAGE_OUTAGE_SECONDS or left <= 0:
                    raise StorageLostError(str(error)) from error
                # Optuna's own text talks about invalid data; the database error is its cause.
                reason = str(error.__cause__ or error).strip().splitlines()
                text = "The study's storage does not answer, trying again: %s"
                _logger.warning(text, reason[0] if reason else type(error).__name__)
                clock.sleep_seconds(min(STORAGE_RETRY_SECONDS, left))


@contextmanager
def retried_storage(study: Study, retry: StorageRetry) -> Iterator[None]:
    """Within this context, every call of the study's storage is repeated during an outage.

    Single calls are repeated, and not ``study.ask()`` or ``trial.suggest_float()`` as a whole:
    these run the user's sampler, and asking twice would open two trials.
    """
    storage = optuna_private.storage_of(study)
    if isinstance(storage, InMemoryStorage) or "get_all_trials" in vars(storage):
        yield  # there is nothing to wait for, or another call of `optimize` does it already
        return
    names = [name for name in dir(BaseStorage) if not name.startswith("_")]
    for name in names:
        setattr(storage, name, _retried(getattr(storage, name), retry))
    try:
        yield
    finally:
        for name in names:
            delattr(storage, name)


def _retried(method: Callable[..., T], retry: StorageRetry) -> Callable[..., T]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> T:
        return retry(lambda: method(*args, **kwargs))

    return call
