"""The parent's handle of one worker process, which runs calls and enforces their cutoffs.

A handle sends a task, answers questions of the call, and returns an `Outcome`. At the cutoff it
kills the worker, or stops it if the call may be paused.
The start and end times come from the shared memory of `call_times`, not from messages.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import replace

from f2a_tune import clock
from f2a_tune.cutoff.call import Call
from f2a_tune.cutoff.call_times import CallTimes
from f2a_tune.cutoff.context import Context
from f2a_tune.cutoff.launcher import Launcher, limit_reading
from f2a_tune.cutoff.messages import (
    Answer,
    Hello,
    Prepare,
    Question,
    Task,
    quick_bytes,
)
from f2a_tune.cutoff.paused_call import PausedCall
from f2a_tune.cutoff.processes import (
    continue_group,
    has_ended,
    is_stopped,
    private_bytes,
    stop_group,
)
from f2a_tune.cutoff.replies import (
    cause_of_death,
    outcome_of,
    packed_answer,
    result_too_slow,
)
from f2a_tune.outcome import ErrorReport, Kind, Outcome

# A worker that has not started after this time is assumed to have failed.
HELLO_SECONDS = 60.0
# Time, in addition to the cutoff, in which a worker must have unpickled a call and started it.
LOADING_SECONDS = 10.0
# Time in which the result of a finished call must arrive.
RESULT_SECONDS = 60.0
# The same when the time is up.
LAST_RESULT_SECONDS = 0.1
# No standby worker is started for a call that ends by then: its start would compete for the cores.
QUICK_SECONDS = 0.002
# Time until the first check whether a call has started, and between checks if it has not.
LOOK_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 0.002
# poll() has a 32-bit timeout in milliseconds, so longer waits are split.
LONGEST_POLL_SECONDS = 3600.0


class NotStartedError(Exception):
    """The worker process ended before it started the call, so the call can be retried."""


class WorkerHandle:
    """Handle of one worker process in the parent; only one thread may use it at a time."""

    def __init__(
        self,
        launcher: Launcher,
        stamp: CallTimes,
        context: Context,
        shared_paths: Mapping[str, str],
        last_payload: bytes | None,
    ) -> None:
        self._launcher = launcher
        self._stamp = stamp
        self._pid: int | None = None
        self._context = context
        self._paused_at: float | None = None
        self._has_question = False
        """Whether the paused call waits for an answer."""
        self._seconds_before = 0.0
        """Seconds that the call had run when it was last paused."""
        self._resumed_at: float | None = None
        self.alive = True
        try:
            self._connection, self._generation = launcher.launch()
            # The message is sent before the worker has started. The worker reads it as soon as it
            # is running and warms up.
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
        """Run one call until it ends or reaches its cutoff, and return its outcome.

        ``if_slow`` is called once if the call takes longer than `QUICK_SECONDS`.
        """
        if not self._meet(call.latest):
            return Outcome.gave_up(call.cutoff_seconds, 0.0)
        changed = call.context if call.context != self._context else None
        self._context = call.context
        self._stamp.clear()
        self._first_question: float | None = None
        self._resumed_at, self._seconds_before = None, 0.0
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
            return self._disconnected(call, error)

    def resume(self, call: Call, if_slow: Callable[[], None]) -> Outcome:
        """Continue the paused call of this worker with the limits of ``call``."""
        assert self._pid is not None
        assert self._paused_at is not None
        now = self._resumed_at = clock.monotonic_seconds()
        self._stamp.add_pause(now - self._paused_at)
        self._paused_at = None
        try:
            if self._has_question:
                self._has_question = False
                self._connection.send_bytes(quick_bytes(Answer(True)))
            continue_group(self._pid)
            if_slow()
            return self._await_end(now, call)
        except (EOFError, OSError) as error:
            return self._disconnected(call, error)

    @property
    def is_running(self) -> bool:
        """Whether the worker process is there, running or stopped."""
        return self.alive and self._pid is not None and not has_ended(self._pid)

    @property
    def memory_bytes(self) -> int:
        """Memory that only this worker process uses."""
        return 0 if self._pid is None or not self.alive else private_bytes(self._pid)

    def _disconnected(self, call: Call, error: Exception) -> Outcome:
        """Return the outcome of a call whose worker closed its connection or stopped sending."""
        started, ended = self._stamp.started, self._stamp.ended
        if started is None:
            self.kill()
            raise NotStartedError("a worker process died before it started the call") from None
        seconds = self._leg_seconds(started, ended or clock.monotonic_seconds())
        if isinstance(error, BlockingIOError):  # the worker stopped in the middle of a message
            self.kill()
            if clock.monotonic_seconds() >= call.latest:
                return Outcome.gave_up(call.cutoff_seconds, seconds)
            return result_too_slow(seconds)
        return self._death(seconds)

    def _leg_seconds(self, started: float, until: float) -> float:
        """Return the seconds that the call has run since it was started or last continued."""
        running = until - started - self._stamp.paused_seconds
        return max(running - self._seconds_before, 0.0)

    def kill(self) -> None:
        """Kill the worker process and all processes that it started."""
        if not self.alive:
            return
        if self._pid is not None:
            self._launcher.kill(self._pid, self._generation)
        # A worker that has not sent Hello yet finds the connection closed and exits.
        self._forget()

    def _forget(self) -> None:
        self.alive = False
        self._connection.close()
        self._stamp.close()

    def _meet(self, latest: float) -> bool:
        """Wait until the worker has started; return False if it has not by ``latest``."""
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
        cutoff_seconds, extended = call.cutoff_seconds, 0.0
        deadline = min(sent + min(cutoff_seconds, LOOK_SECONDS), call.latest)
        while True:
            wait = min(max(deadline - clock.monotonic_seconds(), 0.0), LONGEST_POLL_SECONDS)
            if self._connection.poll(wait):
                outcome = self._received(call)
                if outcome is not None:
                    return outcome
                # The first question ends the prelude and so changes the deadline.
                if call.prelude_cutoff_seconds is None and clock.monotonic_seconds() < deadline:
                    continue
            # No message by the deadline: the call may have started late, or have ended just now.
            started, ended = self._stamp.started, self._stamp.ended
            limit = self._limit(call, sent, started, ended) + (extended if not ended else 0.0)
            # At the end of all time, a result that is on its way gets a moment to arrive.
            latest = call.latest if not ended else max(call.latest, ended) + LAST_RESULT_SECONDS
            out_of_time = latest < limit
            limit = min(limit, latest)
            now = clock.monotonic_seconds()
            # A waiting message can be the result only if the call has ended, else a question.
            if now >= limit and not (self._stamp.ended and self._connection.poll(0)):
                more = 0.0
                if started is not None and ended is None and call.more_seconds is not None:
                    more = min(call.more_seconds(), call.latest - now)
                if more > 0:
                    extended += now - limit + more
                    deadline = now + more
                    continue
                if call.pausable and started is not None and ended is None and not out_of_time:
                    paused = self._paused(started)
                    if paused is not None:
                        return paused
                    deadline = now
                    continue
                return self._killed(call, sent, extended, out_of_time=out_of_time)
            if started is None and self._pid is not None and is_stopped(self._pid):
                self.kill()  # the worker was stopped before the call, which is not to blame
                raise NotStartedError("a worker process was stopped before it started the call")
            # The call may start at any moment, and its cutoff counts from then: check again soon.
            deadline = limit if started is not None else min(limit, now + LOOK_AGAIN_SECONDS)

    def _killed(self, call: Call, sent: float, extended: float, *, out_of_time: bool) -> Outcome:
        """Kill the worker of a call whose time is up, and return the outcome."""
        started, ended = self._stamp.started, self._stamp.ended
        now = clock.monotonic_seconds()
        spent = now - sent if started is None else self._leg_seconds(started, ended or now)
        self.kill()
        if started is not None and ended is not None and not out_of_time:
            return result_too_slow(spent)
        outcome = Outcome.gave_up(call.cutoff_seconds + extended, spent)
        return self._without_prelude(outcome, call, started)

    def _limit(self, call: Call, sent: float, started: float | None, ended: float | None) -> float:
        """When to stop waiting for a call, apart from extensions and ``call.latest``."""
        if ended is not None:
            return ended + RESULT_SECONDS
        if self._resumed_at is not None:
            return self._resumed_at + call.cutoff_seconds
        if started is not None:
            return self._counted_from(started, call)
        return sent + call.cutoff_seconds + LOADING_SECONDS

    def _received(self, call: Call) -> Outcome | None:
        """Read a message: return the outcome, or answer a question and return None."""
        limit_reading(self._connection, call.latest - clock.monotonic_seconds())
        reply = self._connection.recv()
        if isinstance(reply, Question):
            if self._first_question is None:
                self._first_question = clock.monotonic_seconds()
            answer = packed_answer(reply, call.answer)
            if answer is None:
                self._has_question = True
                return self._paused(self._stamp.started or self._first_question)
            self._connection.send_bytes(answer)
            return None
        body = self._connection.recv_bytes() if reply.has_body else None
        started = self._stamp.started
        reply = replace(reply, seconds=max(reply.seconds - self._seconds_before, 0.0))
        if reply.kind is Kind.OUT_OF_MEMORY:
            self.kill()  # the worker may still hold the memory that the call has allocated
        return self._without_prelude(outcome_of(reply, body), call, started)

    def _paused(self, started: float) -> Outcome | None:
        """Stop the worker; return None, and let it run on, if it has sent something meanwhile."""
        assert self._pid is not None
        now = clock.monotonic_seconds()
        stop_group(self._pid)
        if not self._has_question and (self._stamp.ended or self._connection.poll(0)):
            continue_group(self._pid)
            return None
        seconds = self._leg_seconds(started, now)
        self._seconds_before += seconds
        self._paused_at = now
        return Outcome.paused(PausedCall(self), seconds)

    def _counted_from(self, started: float, call: Call) -> float:
        """Return the time at which a running call is given up."""
        if call.prelude_cutoff_seconds is None:
            return started + call.cutoff_seconds
        if self._first_question is None:
            return started + call.prelude_cutoff_seconds
        prelude = self._first_question - started
        return self._first_question + max(call.cutoff_seconds, prelude)

    def _without_prelude(self, outcome: Outcome, call: Call, started: float | None) -> Outcome:
        if call.prelude_cutoff_seconds is None or started is None:
            return outcome
        prelude = outcome.seconds
        if self._first_question is not None:
            prelude = min(max(self._first_question - started, 0.0), prelude)
        elif outcome.kind is not Kind.GAVE_UP:
            prelude = 0.0  # without any question there is no prelude
        return replace(outcome, seconds=outcome.seconds - prelude, prelude_seconds=prelude)

    def _death(self, seconds: float) -> Outcome:
        """Return the outcome of a call whose worker process died."""
        assert self._pid is not None
        code = self._launcher.exit_code(self._pid, self._generation)
        self._forget()
        report = ErrorReport("WorkerDiedError", cause_of_death(code))
        if code == -signal.SIGKILL:
            return Outcome.out_of_memory(report, seconds)
        return Outcome.failed(report, seconds)
