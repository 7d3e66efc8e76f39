"""The channel through which a running call asks questions to the parent process.

The parent answers while it waits for the call to end, and this time counts towards the call's
cutoff. Only the worker process itself can ask; processes that the call starts have no channel to
the parent.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from f2a_tune.cutoff.messages import Answer, Question, quick_bytes


class NoParentError(RuntimeError):
    """There is no caller to ask: outside a call, after it, or in a process that it started."""


class CallbackChannel:
    """The channel of one call; it is closed when the call ends.

    A separate thread sends and receives the messages. Signal handlers run in the main thread, and
    a handler that raises there, such as one for a timeout, could otherwise leave half a message in
    the channel. For the same reason, a thread that asks takes no lock: an exception between taking
    and releasing it would block all later questions.
    """

    def __init__(self, connection: Connection, running_seconds: Callable[[], float]) -> None:
        self._connection = connection
        self.running_seconds = running_seconds
        """Returns the seconds that the call has run, without its pauses."""
        self._pid = os.getpid()
        self._wire = threading.Lock()
        self._open = True

    def prepare(self) -> None:
        """Start the thread that talks to the caller, before the call can set a timer."""
        _talker()

    def ask(self, content: Any) -> Any:
        """Send a question, wait for the answer, and return or raise it.

        Questions of several threads are processed one after another.
        """
        if os.getpid() != self._pid:
            raise NoParentError(
                "a process started by the call cannot ask the caller. Ask from the worker process "
                "itself."
            )
        payload = quick_bytes(Question(content))
        if not self._open:
            raise NoParentError(
                "the call has ended, so one of its threads that is still running cannot ask."
            )
        heard: SimpleQueue[Answer] = SimpleQueue()
        _talker().put((self, payload, heard))
        answer = heard.get()
        if answer.error is not None:
            raise answer.error
        return answer.value

    def close(self) -> None:
        """Refuse further questions and wait for an exchange that is in progress."""
        self._open = False
        with self._wire:
            pass

    def exchange(self, payload: bytes) -> Answer:
        """Send one question and return the answer; only the talking thread calls this."""
        with self._wire:
            if not self._open:
                return Answer(error=NoParentError("the call has ended."))
            try:
                self._connection.send_bytes(payload)
                answer: Answer = self._connection.recv()
            except Exception as error:
                return Answer(error=error)
            return answer


_Request = tuple[CallbackChannel, bytes, "SimpleQueue[Answer]"]

_channel: CallbackChannel | None = None
_requests: SimpleQueue[_Request] | None = None
_requests_pid = 0


def _talker() -> SimpleQueue[_Request]:
    """Return the queue of the thread that talks for all calls of a worker.

    A forked child process does not inherit the thread and creates a new one.
    """
    global _requests, _requests_pid
    if _requests is None or _requests_pid != os.getpid():
        requests: SimpleQueue[_Request] = SimpleQueue()
        threading.Thread(target=_talk, args=(requests,), name="f2a_tune-line", daemon=True).start()
        _requests, _requests_pid = requests, os.getpid()
    return _requests


def _talk(requests: SimpleQueue[_Request]) -> None:
    while True:
        channel, payload, heard = requests.get()
        heard.put(channel.exchange(payload))


def open_channel(connection: Connection, running_seconds: Callable[[], float]) -> CallbackChannel:
    """Open the channel of a new call."""
    global _channel
    _channel = CallbackChannel(connection, running_seconds)
    return _channel


def current_channel() -> CallbackChannel:
    """Return the channel of the call that this worker process is running."""
    if _channel is None:
        raise NoParentError(
            "this is not a worker process of f2a_tune, so there is no caller to ask."
        )
    return _channel


def in_worker() -> bool:
    """Return whether this process is a worker process, whose calls already have a cutoff."""
    return _channel is not None
