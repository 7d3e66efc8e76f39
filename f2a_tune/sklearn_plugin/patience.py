"""A storage that does not answer is asked again: calls go in, results or `StorageLostError` out.

Nobody waits much longer than the budget lasts. The same call may be made twice, also if the first
one did its work and only its answer was lost: who writes must be able to stand that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from optuna.exceptions import StorageInternalError

from f2a_tune import clock
from f2a_tune.logging import get_logger

# How long a storage that does not answer is waited for, and how often it is asked.
STORAGE_PATIENCE_SECONDS = 60.0
STORAGE_RETRY_SECONDS = 0.5
LAST_SECONDS = 0.1
STORAGE_TROUBLE = (StorageInternalError, OSError)
"""What a storage raises while it cannot be reached."""

T = TypeVar("T")
_logger = get_logger("f2a_tune.search")


class StorageLostError(Exception):
    """A storage could not be reached for as long as there was time."""


class Patience:
    """Calls what needs the storage, again and again while it cannot be reached."""

    def __init__(self) -> None:
        self.seconds_left: Callable[[], float] = lambda: math.inf
        """Of the budget; when there are none left, a call is made once more."""

    def __call__(self, call: Callable[[], T]) -> T:
        """What the call returns at last."""
        begin = clock.monotonic_seconds()
        while True:
            try:
                return call()
            except STORAGE_TROUBLE as error:
                waited = clock.monotonic_seconds() - begin
                left = max(self.seconds_left(), LAST_SECONDS - waited)
                if waited > STORAGE_PATIENCE_SECONDS or left <= 0:
                    raise StorageLostError(str(error)) from error
                _logger.warning("the study's storage does not answer, trying again: %s", error)
                clock.sleep_seconds(min(STORAGE_RETRY_SECONDS, left))
