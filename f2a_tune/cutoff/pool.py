"""A pool of killable workers: functions with a cutoff go in, outcomes come out, no process stays.

Any number of threads may call `run` at once; each supervises its own worker. While a call runs and
is not over at once, one more worker stands by, so that after a kill the next call starts at once.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

from f2a_tune import clock
from f2a_tune.checks import positive_integer, real_number
from f2a_tune.cutoff import limits
from f2a_tune.cutoff.context import Context
from f2a_tune.cutoff.handle import Call, NotStartedError, WorkerHandle
from f2a_tune.cutoff.launcher import Launcher, WorkerStartError, make_launcher
from f2a_tune.cutoff.shared import Shared, SharedFolder, cloud_bytes
from f2a_tune.cutoff.stamp import Stamp
from f2a_tune.outcome import ErrorReport, Outcome

# A worker that died while idle is no fault of the next call, which gets a new one; if new ones die
# too, it is.
TRIES = 3
RETRY_SECONDS = 0.1
# A standby unpickles the last call, so that what it imports is there when the next one comes; not
# if it is so large that sending it would hold up the caller.
LARGEST_REHEARSAL = 30_000


class MemoryLimitWarning(UserWarning):
    """This platform cannot limit the memory of a call."""


class CutoffPool:
    """Runs functions in worker processes, and ends those that do not finish by their cutoff.

    Parameters
    ----------
    n_workers
        How many calls may run at once; default: the number of cores.
    preload
        Packages that workers have imported before they start, with those of their modules that
        this process uses when the pool starts.
    memory
        Bytes that a call may map beyond what its worker has (Linux; see `f2a_tune.cutoff.limits`).
    threads_per_worker
        Threads of BLAS and OpenMP in a worker, unless the environment already says; default:
        cores divided by ``n_workers``.

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
                f"preload must be a sequence of names, got {preload!r}: [{preload!r}]."
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
        """Begin without workers: at first, and in a forked child, where locks may be held."""
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
        """Call ``function(*args, **kwargs)`` in a worker; end it after ``cutoff`` seconds.

        The cutoff counts from the moment the call begins; waiting for a free worker and sending
        the arguments do not count. What the function raises is in the outcome, not raised.
        """
        return self.perform(checked_call(function, args, kwargs, cutoff, memory))

    def perform(self, call: Call) -> Outcome:
        """Run a call that has been checked and packed."""
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
        """Like `run`, but return at once with a future of the outcome."""
        call = checked_call(function, args, kwargs, cutoff, memory)
        self._started()
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.n_workers, "f2a_tune-cutoff")
            return self._threads.submit(self.perform, call)

    def share(self, name: str, value: Any) -> Shared:
        """Hand an object over once; pass what this returns to calls in its place.

        Numpy arrays in it become read-only memory maps in a private folder, which is removed with
        the pool. Other objects are loaded once by every worker: do not change them in place.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"name must be a text that is not empty, got {name!r}.")
        return self._started().folder.write(name, value)

    def forget(self, shared: Shared) -> None:
        """Delete a shared object before the pool goes; no call may use it any more."""
        self._started().folder.forget(shared.name)

    @property
    def closed(self) -> bool:
        """Whether it was closed for good."""
        return self._closed

    def start(self) -> Self:
        """Start the first workers now rather than at the first call."""
        self._started()
        return self

    def close(self) -> None:
        """End all workers, running calls included, and delete the shared data."""
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

    def _started(self) -> _Engine:
        with self._lock:
            if self._closed:
                raise RuntimeError("this CutoffPool is closed: make a new one.")
            if self._engine is None:
                self._engine = _Engine(self.preload, self.threads_per_worker)
            return self._engine


_pools: weakref.WeakSet[CutoffPool] = weakref.WeakSet()


def _reset_in_child() -> None:
    for pool in list(_pools):
        pool._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)


class _Engine:
    """The live half of a pool: launcher, folder and idle workers. It knows nothing of the pool."""

    def __init__(self, preload: Sequence[str], threads: int | None) -> None:
        self.process_id = os.getpid()
        self.folder = SharedFolder()
        try:
            self._launcher: Launcher = make_launcher(preload, str(self.folder.path), threads)
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
        """Run one call in the next idle worker, or in a new one if that has died meanwhile."""
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
                # Files, processes or memory may be short for a moment only.
                clock.sleep_seconds(RETRY_SECONDS)
        return _died(f"{reason}, and so did {TRIES - 1} more")

    def _attempt(self, call: Call, default_memory: int | None, fresh: bool) -> Outcome:
        worker = self._launch() if fresh else self._take()
        try:
            if call.memory_bytes is None:
                call = replace(call, memory_bytes=default_memory)
            outcome = worker.perform(call, self.folder.paths, if_slow=self._stand_by)
        except BaseException:  # Ctrl-C: nobody waits for this call any more
            worker.kill()
            raise
        if worker.alive:
            # Only a call that went well is worth rehearsing: another may have hung in unpickling.
            if len(call.payload) <= LARGEST_REHEARSAL:
                self._last_payload = call.payload
            with self._lock:
                self._idle.append(worker)
        return outcome

    def close(self) -> None:
        """End everything."""
        self._end()

    def _take(self) -> WorkerHandle:
        with self._lock:
            return self._idle.pop() if self._idle else self._launch()

    def _stand_by(self) -> None:
        """Have one idle worker if it can be had; the running call must not suffer if not."""
        with self._lock, suppress(WorkerStartError, NotStartedError):
            if not self._idle:
                self._idle.append(self._launch())

    def _launch(self) -> WorkerHandle:
        try:
            stamp = Stamp.create(self.folder.path, next(self._numbers))
            return WorkerHandle(
                self._launcher, stamp, Context.current(), self.folder.paths, self._last_payload
            )
        except OSError as error:
            raise WorkerStartError(f"worker processes cannot start: {error}") from error


def _died(message: str) -> Outcome:
    return Outcome.failed(ErrorReport("WorkerDiedError", message), 0.0)


def _end(launcher: Launcher, folder: SharedFolder, process_id: int) -> None:
    # A forked twin of the parent holds the same objects, but the workers are not its own.
    if os.getpid() == process_id:
        try:
            launcher.close()
        finally:
            folder.remove()


def checked_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    cutoff: float,
    memory: int | None,
) -> Call:
    """Check and pack a call, before any process is troubled with it."""
    return Call(
        payload=_packed(function, args, kwargs),
        context=Context.current(),
        memory_bytes=checked_memory(memory),
        cutoff_seconds=_checked_cutoff(cutoff),
    )


def _packed(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    if not callable(function):
        raise TypeError(f"function must be callable, got {function!r}.")
    return cloud_bytes(f"function={function!r} with its arguments", (function, args, kwargs))


def _checked_cutoff(cutoff: Any) -> float:
    """Seconds above zero; infinity means no cutoff."""
    seconds = real_number("cutoff", cutoff)
    if math.isnan(seconds) or seconds <= 0:
        raise ValueError(f"cutoff must be a number of seconds above 0, got {cutoff!r}.")
    return seconds


def checked_memory(memory: Any) -> int | None:
    """Bytes above zero, or None; warns where no limit can be set."""
    if memory is None:
        return None
    count = positive_integer("memory", memory)
    if not limits.SUPPORTED:
        warnings.warn(
            f"memory={memory!r} is ignored: this platform cannot limit the memory of a call.",
            MemoryLimitWarning,
            stacklevel=4,
        )
        return None
    return count
