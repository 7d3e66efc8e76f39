"""The times of a call in memory that the worker and the parent share.

The worker writes its start and end, and the parent the seconds for which it was paused.

The memory is one page of a file in the pool's folder, mapped by both processes. The parent reads
the times without a message, so a call costs only one message each way. The cutoff still counts
from the start of the call, and pickling the result does not count as part of the call.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Self

STARTED, ENDED, PAUSED = 0, 1, 2
NANOSECONDS = 1e9


class CallTimes:
    """Start, end and pauses of a call on the monotonic clock, the same in all processes.

    A stored 0 means that the call has not started or ended yet.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        # Items of an aligned view are written atomically: a reader never sees half a number.
        self._moments = memoryview(self._map).cast("Q")

    @classmethod
    def create(cls, folder: Path, number: int) -> Self:
        """Create the file, readable by this user only, and map it."""
        path = folder / f"{number}.stamp"
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
        try:
            # Write the page instead of only extending the file: on a full disk this raises an
            # error here, instead of a SIGBUS when the page is first accessed.
            os.write(descriptor, bytes(mmap.PAGESIZE))
        finally:
            os.close(descriptor)
        return cls(str(path))

    def clear(self) -> None:
        """Reset all times before a new call."""
        self._moments[STARTED] = self._moments[ENDED] = self._moments[PAUSED] = 0

    def mark_started(self, now: float) -> None:
        """Store the start time of the call."""
        self._moments[STARTED] = int(now * NANOSECONDS)

    def mark_ended(self, now: float) -> None:
        """Store the time at which the call returned or raised."""
        self._moments[ENDED] = int(now * NANOSECONDS)

    def add_pause(self, seconds: float) -> None:
        """Add a pause, which does not count as time of the call."""
        self._moments[PAUSED] += int(seconds * NANOSECONDS)

    @property
    def paused_seconds(self) -> float:
        """Seconds for which the call has been paused so far."""
        return self._moments[PAUSED] / NANOSECONDS

    @property
    def started(self) -> float | None:
        """Start time of the call; None if it has not started."""
        return self._moments[STARTED] / NANOSECONDS or None

    @property
    def ended(self) -> float | None:
        """End time of the call; None if it has not ended."""
        return self._moments[ENDED] / NANOSECONDS or None

    def close(self) -> None:
        """Unmap the page and delete its file."""
        self._moments.release()
        self._map.close()
        Path(self.path).unlink(missing_ok=True)
