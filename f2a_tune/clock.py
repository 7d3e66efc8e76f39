"""Clocks and time budgets; the only module that reads the system time.

All other modules get the time from here, so that tests and replays can substitute a
`VirtualClock` for the real one.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from datetime import datetime


def monotonic_seconds() -> float:
    """Return the seconds of a clock that never goes backwards; only differences are meaningful."""
    return time.monotonic()


def process_start_seconds() -> float:
    """Return the start time of this process on the `monotonic_seconds` clock.

    Where the start time cannot be read (such as outside Linux), return the current time.
    """
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        age = 0.0
    return monotonic_seconds() - max(age, 0.0)


def thread_cpu_seconds() -> float:
    """Return the CPU seconds of the calling thread, which do not depend on the machine's load."""
    return time.thread_time()


def wall_clock() -> datetime:
    """Return the local time without a time zone, as Optuna stores it.

    Use it only to compare with times that other processes have stored.
    """
    return datetime.now()


def sleep_seconds(seconds: float) -> None:
    """Block the calling thread for this many seconds."""
    time.sleep(seconds)


class VirtualClock:
    """A clock that moves only when `advance` is called; for tests and replays.

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
        """Return the current virtual time in seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward by this many seconds."""
        self._now += seconds


class Budget:
    """A time budget that starts to run when the object is created.

    Parameters
    ----------
    total_seconds : float, default=math.inf
        Length of the budget. ``math.inf`` means no limit.
    clock : callable, default=monotonic_seconds
        Function that returns the current time in seconds.
    """

    def __init__(
        self, total_seconds: float = math.inf, clock: Callable[[], float] = monotonic_seconds
    ) -> None:
        self.total_seconds = total_seconds
        self.clock = clock
        self._start = clock()

    def charge(self, seconds: float) -> None:
        """Count these seconds as already spent, for example by an earlier session."""
        self._start -= seconds

    @property
    def spent_seconds(self) -> float:
        """Seconds since the budget was created, plus the seconds passed to `charge`."""
        return self.clock() - self._start

    @property
    def remaining_seconds(self) -> float:
        """Seconds until the budget ends; never negative."""
        return max(self.total_seconds - self.spent_seconds, 0.0)
