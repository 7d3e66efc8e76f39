"""A call that was paused: its worker process is stopped and waits to be continued or dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from f2a_tune.cutoff.handle import WorkerHandle


class PausedCall:
    """A paused call, the value of an outcome of kind `Kind.PAUSED`.

    To continue it, pass a `Call` with ``continues`` to `CutoffPool.perform`. To free its process
    and memory, call `drop`. Closing the pool drops all paused calls.
    """

    def __init__(self, worker: WorkerHandle) -> None:
        self._worker: WorkerHandle | None = worker

    @property
    def is_alive(self) -> bool:
        """Whether the call can be continued; its process may have been killed from outside."""
        return self._worker is not None and self._worker.is_running

    @property
    def memory_bytes(self) -> int:
        """Memory that `drop` would free (Linux only, else 0)."""
        return 0 if self._worker is None else self._worker.memory_bytes

    def take(self) -> WorkerHandle:
        """Return the worker to continue the call; this object cannot be used afterwards."""
        worker, self._worker = self._worker, None
        if worker is None:
            raise RuntimeError("this paused call was dropped or continued before.")
        return worker

    def drop(self) -> None:
        """Kill the process of the call."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
