"""When a call began and ended, written by the worker where the parent can look without a message.

One page of a file in the pool's folder, mapped by both. So a call costs one message each way, the
cutoff still counts from the moment the call began, and pickling its result is not charged to it.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Self

STARTED, ENDED = 0, 1
NANOSECONDS = 1e9


class Stamp:
    """Two moments on the monotonic clock, which all processes of a machine share; 0 = not yet."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        # Items of an aligned view are stored in one piece: a reader never sees half a number.
        self._moments = memoryview(self._map).cast("Q")

    @classmethod
    def create(cls, folder: Path, number: int) -> Self:
        """A new one, private to this user."""
        path = folder / f"{number}.stamp"
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
        try:
            # Written, not only made longer: on a full disk this fails here, where it is an error,
            # and not as a SIGBUS when the page is first touched.
            os.write(descriptor, bytes(mmap.PAGESIZE))
        finally:
            os.close(descriptor)
        return cls(str(path))

    def clear(self) -> None:
        """No call yet."""
        self._moments[STARTED] = self._moments[ENDED] = 0

    def mark_started(self, now: float) -> None:
        """The call begins now."""
        self._moments[STARTED] = int(now * NANOSECONDS)

    def mark_ended(self, now: float) -> None:
        """The call has returned or raised."""
        self._moments[ENDED] = int(now * NANOSECONDS)

    @property
    def started(self) -> float | None:
        """When the call began."""
        return self._moments[STARTED] / NANOSECONDS or None

    @property
    def ended(self) -> float | None:
        """When the call ended."""
        return self._moments[ENDED] / NANOSECONDS or None

    def close(self) -> None:
        """Let go of the page and delete its file."""
        self._moments.release()
        self._map.close()
        Path(self.path).unlink(missing_ok=True)
