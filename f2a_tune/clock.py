"""The only module that reads the time: seconds out, nothing in.

Everybody else asks here, so that tests and replays can put virtual seconds in place of real ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import datetime


def monotonic_seconds() -> float:
    """Seconds on a clock that never goes back; only differences mean anything."""
    return time.monotonic()


def thread_cpu_seconds() -> float:
    """CPU seconds of the calling thread, which a busy neighbour does not inflate."""
    return time.thread_time()


def wall_clock() -> datetime:
    """Local time without a zone, as Optuna stores it; only for what other processes wrote."""
    return datetime.now()


def sleep_seconds(seconds: float) -> None:
    """Wait."""
    time.sleep(seconds)


class VirtualClock:
    """A clock that stands still until it is told to go on; for tests and replays.

    Examples
    --------
    >>> clock = VirtualClock()
    >>> budget = Budget(10, clock)
    >>> clock.advance(4)
    >>> budget.spent_seconds, budget.remaining_seconds
    (4.0, 6.0)
    """

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        """The seconds of now."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass."""
        self._now += seconds


class Budget:
    """Seconds that begin to run when it is made; ``math.inf`` never ends."""

    def __init__(
        self, total_seconds: float = math.inf, clock: Callable[[], float] = monotonic_seconds
    ) -> None:
        self.total_seconds = total_seconds
        self.clock = clock
        self._start = clock()

    def charge(self, seconds: float) -> None:
        """Count seconds that were spent before."""
        self._start -= seconds

    @property
    def spent_seconds(self) -> float:
        """Since it was made, and before."""
        return self.clock() - self._start

    @property
    def remaining_seconds(self) -> float:
        """Until it ends; never below 0."""
        return max(self.total_seconds - self.spent_seconds, 0.0)
