"""`CutoffPool`, a pool of worker processes that run functions and are killed at their cutoff.

Any number of threads may call `CutoffPool.run` at the same time; each supervises its own worker.
While a call runs that does not end immediately, an additional standby worker is started, so that
the next call can start without delay after a kill.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

from f2a_tune import clock
from f2a_tune.checks import positive_integer
from f2a_tune.cutoff.call import Call, checked_call, checked_memory
from f2a_tune.cutoff.call_times import CallTimes
from f2a_tune.cutoff.context import Context
from f2a_tune.cutoff.handle import NotStartedError, WorkerHandle
from f2a_tune.cutoff.launcher import Launcher, WorkerStartError, make_launcher
from f2a_tune.cutoff.partial_result import LastReport
from f2a_tune.cutoff.shared import Shared, SharedFolder
from f2a_tune.outcome import ErrorReport, Kind, Outcome

# Attempts to start a call. If an idle worker has died, the call gets a new one. If new workers die
# as well, the call is assumed to be the cause.
TRIES = 3
RETRY_SECONDS = 0.1
# A standby worker unpickles the last call in advance, so that its imports are done before the next
# call. Calls with more bytes than this are not sent, because sending would delay the caller.
LARGEST_REHEARSAL = 30_000


class CutoffPool:
    """A pool of worker processes that run functions with a hard cutoff.

    A call that has not finished by its cutoff is killed, together with all processes that it
    started. Use the pool as a context manager, or call `close` at the end. For a single call,
    `run_with_cutoff` is simpler.

    Parameters
    ----------
    n_workers : int, default=None
        Number of calls that may run at the same time. None means the number of CPU cores. Use
        fewer if each call uses several threads or much memory.
    preload : sequence of str, default=("sklearn",)
        Names of packages that are imported once, before the workers start. Those of their modules
        that this process has already imported are included. Pass the packages that your functions
        need, so that calls do not spend their time on imports, or ``()`` for the fastest start.
    memory : int, default=None
        Memory limit of a call in bytes, in addition to what its worker process uses before the
        call. A call that exceeds it gets a ``MemoryError``. None means no limit. Only Linux
        supports it; see `f2a_tune.cutoff.limits` for what is counted.
    threads_per_worker : int, default=None
        Number of BLAS and OpenMP threads in each worker, unless an environment variable such as
        ``OMP_NUM_THREADS`` sets it. None means the number of cores divided by ``n_workers``, at
        least 1. Increase it if fewer than ``n_workers`` calls usually run at the same time.

    Examples
    --------
    >>> with CutoffPool(n_workers=2, preload=()) as pool:
    ...     print(pool.run(sum, [1, 2, 3], cutoff=10).value)
    6
    """

    def __init__(
        self,
        n_workers: int | None = None,
        *,
        preload: Sequence[str] = ("sklearn",),
        memory: int | None = None,
        threads_per_worker: int | None = None,
    ) -> None:
        cores = os.cpu_count() or 1
        self.n_workers = cores if n_workers is None else positive_integer("n_workers", n_workers)
        if isinstance(preload, str):
            raise TypeError(
                f"preload must be a sequence of names, got {preload!r}. Pass [{preload!r}]."
            )
        self.preload = tuple(preload)
        self.memory = checked_memory(memory)
        self.threads_per_worker: int | None = (
            max(cores // self.n_workers, 1)
            if threads_per_worker is None
            else positive_integer("threads_per_worker", threads_per_worker)
        )
        self._closed = False
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        """Set the state of a pool without workers.

        A forked child does this again: it may have inherited locks that are never released.
        """
        self._room = threading.BoundedSemaphore(self.n_workers)
        self._lock = threading.Lock()
        self._engine: _Engine | None = None
        self._threads: ThreadPoolExecutor | None = None

    def run(
        self,
        function: Callable[..., Any],
        /,
        *args: Any,
        cutoff: float,
        memory: int | None = None,
        **kwargs: Any,
    ) -> Outcome:
        """Call ``function(*args, **kwargs)`` in a worker process and return its outcome.

        An exception of the function is stored in the outcome and not raised. The arguments must be
        picklable; pass large data through `share`.

        Parameters
        ----------
        cutoff : float
            Seconds after which the call is killed. It counts from the start of the call; waiting
            for a free worker and sending the arguments do not count. ``math.inf`` means no cutoff.
        memory : int, default=None
            Memory limit of this call in bytes. None means the limit of the pool.
        """
        return self._perform_reporting(checked_call(function, args, kwargs, cutoff, memory))

    def _perform_reporting(self, call: Call) -> Outcome:
        last = LastReport()
        return last.completed(self.perform(last.attached(call)))

    def perform(self, call: Call) -> Outcome:
        """Run a call that has already been checked and pickled."""
        engine = self._started()
        with self._room:
            return engine.perform(call, self.memory)

    def submit(
        self,
        function: Callable[..., Any],
        /,
        *args: Any,
        cutoff: float,
        memory: int | None = None,
        **kwargs: Any,
    ) -> Future[Outcome]:
        """Do the same as `run`, but return immediately with a future of the outcome."""
        call = checked_call(function, args, kwargs, cutoff, memory)
        self._started()
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.n_workers, "f2a_tune-cutoff")
            return self._threads.submit(self._perform_reporting, call)

    def share(self, name: str, value: Any) -> Shared:
        """Store an object that many calls use, and return a placeholder for their arguments.

        Pass the placeholder to `run`; the function receives the object. NumPy arrays in it become
        read-only memory maps in a private folder, which is deleted with the pool. All other parts
        are loaded once by every worker, so calls must not modify them in place. A new object of
        the same name replaces the previous one.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"name must be a non-empty string, got {name!r}.")
        return self._started().folder.write(name, value)

    def forget(self, shared: Shared) -> None:
        """Delete a shared object; calls must not use it afterwards."""
        self._started().folder.forget(shared.name)

    @property
    def closed(self) -> bool:
        """Whether the pool was closed; a closed pool cannot be reopened."""
        return self._closed

    def start(self, latest: float = math.inf) -> Self:
        """Start the pool now instead of at the first call, and return it when it is ready.

        It also returns when ``latest`` on the monotonic clock is reached.
        """
        self._started(latest)
        return self

    def is_ready(self, latest: float = -math.inf) -> bool:
        """Return whether workers can start, now or by ``latest`` on the monotonic clock."""
        return self._started(latest).wait_until_ready(latest)

    def renew(self) -> None:
        """Kill all idle workers, so that later calls run in new ones without any earlier state."""
        self._started().drop_idle()

    def scratch_path(self, name: str) -> str:
        """Return a path that calls may write to; it is deleted with the pool."""
        return str(self._started().folder.path / name)

    def close(self) -> None:
        """Kill all workers, including running calls, and delete the shared data."""
        with self._lock:
            self._closed = True
            engine, self._engine = self._engine, None
            threads, self._threads = self._threads, None
        if engine is not None:
            engine.close()
        if threads is not None:
            threads.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _started(self, latest: float = math.inf) -> _Engine:
        with self._lock:
            if self._closed:
                raise RuntimeError("this CutoffPool is closed. Create a new one.")
            if self._engine is None:
                self._engine = _Engine(
                    self.preload, self.n_workers, self.threads_per_worker, latest
                )
            return self._engine


_pools: weakref.WeakSet[CutoffPool] = weakref.WeakSet()


def _reset_in_child() -> None:
    for pool in list(_pools):
        pool._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)


class _Engine:
    """The running part of a pool: launcher, folder and idle workers.

    It does not refer to the pool, so that it can be finalized when the pool is garbage-collected.
    """

    def __init__(
        self, preload: Sequence[str], n_workers: int, threads: int | None, latest: float
    ) -> None:
        self._most_idle = n_workers + 1
        self.process_id = os.getpid()
        self.folder = SharedFolder()
        try:
            self._launcher: Launcher = make_launcher(
                preload, str(self.folder.path), threads, latest
            )
        except BaseException:
            self.folder.remove()
            raise
        self._lock = threading.Lock()
        self._idle: list[WorkerHandle] = []
        self._last_payload: bytes | None = None
        self._numbers = itertools.count()
        self._end = weakref.finalize(self, _end, self._launcher, self.folder, self.process_id)
        self._stand_by()

    def perform(self, call: Call, default_memory: int | None) -> Outcome:
        """Run one call in an idle worker, or in a new one if that has died."""
        reason = ""
        for attempt in range(TRIES):
            if not self._end.alive:
                return _died("the pool was closed")
            try:
                return self._attempt(call, default_memory, fresh=attempt > 0)
            except NotStartedError as error:
                reason = str(error)
            except WorkerStartError as error:
                if attempt == TRIES - 1 and self._end.alive:
                    raise
                reason = str(error)
                # The lack of files, processes or memory may be temporary.
                clock.sleep_seconds(RETRY_SECONDS)
        return _died(f"{reason}, and {TRIES - 1} more attempts failed too")

    def _attempt(self, call: Call, default_memory: int | None, fresh: bool) -> Outcome:
        if call.continues is not None:
            worker = call.continues.take()
        else:
            worker = self._launch() if fresh else self._take()
        try:
            if call.memory_bytes is None:
                call = replace(call, memory_bytes=default_memory)
            if call.continues is not None:
                outcome = worker.resume(call, if_slow=self._stand_by)
            else:
                outcome = worker.perform(call, self.folder.paths, if_slow=self._stand_by)
        except BaseException:  # such as Ctrl-C: the caller no longer waits for this call
            worker.kill()
            raise
        if worker.alive and outcome.kind is not Kind.PAUSED:
            # Only use a call whose worker survived for warming up: others may hang in unpickling.
            if 0 < len(call.payload) <= LARGEST_REHEARSAL:
                self._last_payload = call.payload
            self._put_back(worker)
        return outcome

    def _put_back(self, worker: WorkerHandle) -> None:
        """Keep a worker for the next call; with paused calls, there are more than needed."""
        with self._lock:
            has_room = len(self._idle) < self._most_idle
            if has_room:
                self._idle.append(worker)
        if not has_room:
            worker.kill()

    def wait_until_ready(self, latest: float) -> bool:
        """Return whether workers can start by ``latest``."""
        return self._launcher.wait_until_ready(latest)

    def drop_idle(self) -> None:
        """Kill the workers that are waiting for a call."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()
        self._last_payload = None

    def close(self) -> None:
        """Kill all processes and delete the folder."""
        self._end()

    def _take(self) -> WorkerHandle:
        with self._lock:
            return self._idle.pop() if self._idle else self._launch()

    def _stand_by(self) -> None:
        """Start a standby worker if there is no idle one; a failure must not affect the call."""
        with self._lock, suppress(WorkerStartError, NotStartedError):
            if not self._idle:
                self._idle.append(self._launch())

    def _launch(self) -> WorkerHandle:
        try:
            stamp = CallTimes.create(self.folder.path, next(self._numbers))
            return WorkerHandle(
                self._launcher, stamp, Context.current(), self.folder.paths, self._last_payload
            )
        except OSError as error:
            raise WorkerStartError(f"worker processes cannot start: {error}") from error


def _died(message: str) -> Outcome:
    return Outcome.failed(ErrorReport("WorkerDiedError", message), 0.0)


def _end(launcher: Launcher, folder: SharedFolder, process_id: int) -> None:
    # A forked copy of the parent holds the same objects, but the workers do not belong to it.
    if os.getpid() == process_id:
        try:
            launcher.close()
        finally:
            folder.remove()
