"""The parent's end of one worker: a task goes in, an `Outcome` comes out, on time."""

from __future__ import annotations

import math
import pickle
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import cloudpickle

from f2a_tune import clock
from f2a_tune.cutoff.context import Context
from f2a_tune.cutoff.launcher import Launcher, limit_reading
from f2a_tune.cutoff.messages import Answer, Hello, Prepare, Question, Reply, Task
from f2a_tune.cutoff.processes import is_stopped
from f2a_tune.cutoff.stamp import Stamp
from f2a_tune.outcome import ErrorReport, Kind, Outcome

# A worker that does not come up by then never will.
HELLO_SECONDS = 60.0
# How long a worker may take, beyond the cutoff, to unpickle a call before it begins.
LOADING_SECONDS = 10.0
# How long a finished call may take to send its result.
RESULT_SECONDS = 60.0
# A call that is over by then needs no standby, and should not share the cores with its start.
QUICK_SECONDS = 0.002
# When to look whether a call has begun, however long its cutoff, and how often if it is late.
LOOK_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 0.002
# poll() counts milliseconds in 32 bits; a longer wait is made of several.
LONGEST_POLL_SECONDS = 3600.0


class NotStartedError(Exception):
    """The worker was gone before it began the call: another one may try."""


def nobody(content: Any) -> Any:
    """The answer of a caller who expects no questions."""
    raise RuntimeError(f"nobody answers the questions of this call: {content!r}")


@dataclass(frozen=True)
class Call:
    """A function with its arguments as bytes, the settings of its caller, and its limits."""

    payload: bytes
    context: Context
    memory_bytes: int | None
    cutoff_seconds: float
    answer: Callable[[Any], Any] = nobody
    """Answers what the call asks while it runs."""
    latest: float = math.inf
    """On the monotonic clock: when it must be over, even if it has not begun."""


class WorkerHandle:
    """One worker process, seen from the parent; used by one thread at a time."""

    def __init__(
        self,
        launcher: Launcher,
        stamp: Stamp,
        context: Context,
        shared_paths: Mapping[str, str],
        last_payload: bytes | None,
    ) -> None:
        self._launcher = launcher
        self._stamp = stamp
        self._pid: int | None = None
        self._context = context
        self.alive = True
        try:
            self._connection, self._generation = launcher.launch()
            # Sent before the worker is there: it finds the message when it is, and warms itself.
            self._connection.send(Prepare(stamp.path, context, dict(shared_paths), last_payload))
        except BrokenPipeError:
            self._forget()
            raise NotStartedError("a worker process did not start") from None
        except BaseException:
            stamp.close()
            raise

    def perform(
        self, call: Call, shared_paths: Mapping[str, str], if_slow: Callable[[], None]
    ) -> Outcome:
        """Run one call to its end or its cutoff; ``if_slow`` is called if that takes a while."""
        if not self._meet(call.latest):
            return Outcome.gave_up(call.cutoff_seconds, 0.0)
        changed = call.context if call.context != self._context else None
        self._context = call.context
        self._stamp.clear()
        sent = clock.monotonic_seconds()
        task = Task(call.payload, changed, dict(shared_paths), call.memory_bytes)
        try:
            self._connection.send(task)
            if self._connection.poll(min(QUICK_SECONDS, call.cutoff_seconds)):
                outcome = self._received(call)
                if outcome is not None:
                    return outcome
            if_slow()
            return self._await_end(sent, call)
        except (EOFError, OSError) as error:
            started, ended = self._stamp.started, self._stamp.ended
            if started is None:
                self.kill()
                raise NotStartedError("a worker process died before it began the call") from None
            seconds = (ended or clock.monotonic_seconds()) - started
            if isinstance(error, BlockingIOError):  # it has stopped in the middle of a message
                self.kill()
                return _result_too_slow(seconds)
            return self._death(seconds)

    def kill(self) -> None:
        """End the worker and everything it started."""
        if not self.alive:
            return
        if self._pid is not None:
            self._launcher.kill(self._pid, self._generation)
        # A worker that has not said hello yet finds nobody there and leaves.
        self._forget()

    def _forget(self) -> None:
        self.alive = False
        self._connection.close()
        self._stamp.close()

    def _meet(self, latest: float) -> bool:
        """Wait for the worker to be there; False if that takes beyond the latest moment."""
        if self._pid is not None:
            return True
        left = max(latest - clock.monotonic_seconds(), 0.0)
        try:
            there = self._connection.poll(min(HELLO_SECONDS, left))
            hello = self._connection.recv() if there else None
        except (EOFError, OSError):
            there, hello = True, None
        if not there and left < HELLO_SECONDS:
            self.kill()
            return False
        if not isinstance(hello, Hello):
            self.kill()
            raise NotStartedError("a worker process did not start")
        self._pid = hello.pid
        return True

    def _await_end(self, sent: float, call: Call) -> Outcome:
        cutoff_seconds = call.cutoff_seconds
        deadline = min(sent + min(cutoff_seconds, LOOK_SECONDS), call.latest)
        while True:
            wait = min(max(deadline - clock.monotonic_seconds(), 0.0), LONGEST_POLL_SECONDS)
            if self._connection.poll(wait):
                outcome = self._received(call)
                if outcome is not None:
                    return outcome
                if clock.monotonic_seconds() < deadline:
                    continue
            # Nothing by then: the call may have begun later than it was sent, or have ended.
            started, ended = self._stamp.started, self._stamp.ended
            if ended is not None:
                limit = ended + RESULT_SECONDS
            elif started is not None:
                limit = started + cutoff_seconds
            else:
                limit = sent + cutoff_seconds + LOADING_SECONDS
            limit = min(limit, max(call.latest, ended or 0.0))
            now = clock.monotonic_seconds()
            # What has ended may have its result in the line; what has not can only ask on.
            if now >= limit and not (self._stamp.ended and self._connection.poll(0)):
                self.kill()
                if started is not None and ended is not None:
                    return _result_too_slow(ended - started)
                return Outcome.gave_up(cutoff_seconds, now - (started or sent))
            if started is None and self._pid is not None and is_stopped(self._pid):
                self.kill()  # somebody has stopped it before the call: no fault of the call
                raise NotStartedError("a worker process was stopped before it began the call")
            # It may begin at any moment, and its cutoff counts from then: look again soon.
            deadline = limit if started is not None else min(limit, now + LOOK_AGAIN_SECONDS)

    def _received(self, call: Call) -> Outcome | None:
        """The outcome, or None if it was a question, which has been answered."""
        limit_reading(self._connection, call.latest - clock.monotonic_seconds())
        reply = self._connection.recv()
        if isinstance(reply, Question):
            self._connection.send_bytes(_packed_answer(reply, call.answer))
            return None
        body = self._connection.recv_bytes() if reply.has_body else None
        if reply.kind is Kind.OUT_OF_MEMORY:
            self.kill()  # what the call had built is still there, in pieces
        return _outcome(reply, body)

    def _death(self, seconds: float) -> Outcome:
        """The worker died under the call: say how."""
        assert self._pid is not None
        code = self._launcher.exit_code(self._pid, self._generation)
        self._forget()
        report = ErrorReport("WorkerDiedError", _cause_of_death(code))
        if code == -signal.SIGKILL:
            return Outcome.out_of_memory(report, seconds)
        return Outcome.failed(report, seconds)


def _packed_answer(question: Question, answer: Callable[[Any], Any]) -> bytes:
    try:
        return bytes(cloudpickle.dumps(Answer(answer(question.content))))
    except Exception as error:
        with suppress(Exception):
            packed = bytes(cloudpickle.dumps(Answer(error=error)))
            pickle.loads(packed)  # some only pickle, but do not unpickle
            return packed
        text = f"{type(error).__name__}: {error}"
        return bytes(cloudpickle.dumps(Answer(error=RuntimeError(text))))


def _result_too_slow(seconds: float) -> Outcome:
    report = ErrorReport(
        "ResultTooSlow",
        f"the call took {seconds:.3g} s, and then its result did not arrive in time: return less "
        "data.",
    )
    return Outcome.failed(report, seconds)


def _outcome(reply: Reply, body: bytes | None) -> Outcome:
    seconds = reply.seconds
    if reply.kind is Kind.FINISHED:
        assert body is not None
        try:
            return Outcome.finished(pickle.loads(body), seconds)
        except Exception as error:
            message = f"the call finished, but its result cannot be read here: {error}"
            return Outcome.failed(ErrorReport(type(error).__name__, message), seconds)
    report = ErrorReport(
        reply.error_type,
        reply.error_message,
        reply.error_traceback,
        _exception(body),
        reply.error_bases,
    )
    return Outcome(reply.kind, seconds, error=report)


def _exception(body: bytes | None) -> BaseException | None:
    """The exception itself, if it survived the journey: some only pickle, but do not unpickle."""
    try:
        found = None if body is None else pickle.loads(body)
    except Exception:
        return None
    return found if isinstance(found, BaseException) else None


def _cause_of_death(code: int | None) -> str:
    if code is None:
        return "the worker process lost its connection and was ended"
    if code >= 0:
        return f"the worker process ended itself with exit code {code}"
    known = -code in set(signal.Signals)
    name = signal.Signals(-code).name if known else f"signal {-code}"
    if code == -signal.SIGKILL:
        return f"the worker process was killed ({name}), most likely for want of memory"
    return f"the worker process was killed by a signal ({name})"
