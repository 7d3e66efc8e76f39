"""The only module that reads the time: seconds out, nothing in.

Everybody else asks here, so that tests and replays can put virtual seconds in place of real ones.
"""

from __future__ import annotations

import time


def monotonic_seconds() -> float:
    """Seconds on a clock that never goes back; only differences mean anything."""
    return time.monotonic()


def thread_cpu_seconds() -> float:
    """CPU seconds of the calling thread, which a busy neighbour does not inflate."""
    return time.thread_time()


def sleep_seconds(seconds: float) -> None:
    """Wait."""
    time.sleep(seconds)
