"""A running call's way to ask its caller: questions go to the parent, its answers come back.

The parent answers while it waits for the call to end, so the call's cutoff goes on meanwhile. Only
the worker itself may ask: processes that the call starts have no line to the parent.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from f2a_tune.cutoff.messages import Answer, Question


class NobodyToAskError(RuntimeError):
    """No caller at the other end: outside a call, after it, or in a process that it started."""


class Line:
    """The line of one call; closed when the call ends.

    A thread of its own does the talking: signal handlers run in the main thread, and one that
    raises there, as timeouts do, must not leave half a message in the line.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pid = os.getpid()
        self._lock, self._wire = threading.Lock(), threading.Lock()
        self._talker: ThreadPoolExecutor | None = None
        self._open = True

    def ask(self, content: Any) -> Any:
        """Send a question, wait for the answer, return or raise it; threads take turns."""
        if os.getpid() != self._pid:
            raise NobodyToAskError("a process started by the call cannot ask the call's parent.")
        payload = bytes(cloudpickle.dumps(Question(content)))
        with self._lock:
            if not self._open:
                raise NobodyToAskError("the call is over: a thread it left behind cannot ask.")
            if self._talker is None:
                self._talker = ThreadPoolExecutor(1, "f2a_tune-line")
            future = self._talker.submit(self._exchange, payload)
        answer = future.result()
        if answer.error is not None:
            raise answer.error
        return answer.value

    def close(self) -> None:
        """Wait for an answer that is on its way, and take no more questions."""
        with self._lock:
            self._open = False
            talker, self._talker = self._talker, None
        if talker is not None:
            talker.shutdown()

    def _exchange(self, payload: bytes) -> Answer:
        # Interrupted in the wrong moment, an executor may start more threads than it was told to.
        with self._wire:
            self._connection.send_bytes(payload)
            answer: Answer = self._connection.recv()
            return answer


_line: Line | None = None


def open_line(connection: Connection) -> Line:
    """Begin the line of a new call."""
    global _line
    _line = Line(connection)
    return _line


def current_line() -> Line:
    """The line of the call that this worker is running."""
    if _line is None:
        raise NobodyToAskError("this is not a worker of f2a_tune: there is nobody to ask.")
    return _line


def in_worker() -> bool:
    """Whether this process is a worker, whose calls have a cutoff already."""
    return _line is not None
