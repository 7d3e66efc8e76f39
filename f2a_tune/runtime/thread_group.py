"""A group of threads that run the same function and stop together."""

from __future__ import annotations

import threading
from collections.abc import Callable

from joblib import Parallel, delayed


class ThreadGroup:
    """Runs a function in several threads; an error in one of them stops all."""

    def __init__(self) -> None:
        self.stopped = False
        """Whether the threads should start nothing more."""
        self._changed = threading.Condition()
        self._n_busy = 0

    def run(self, function: Callable[[], None], n_threads: int) -> None:
        """Return when all have returned; a single one runs in the calling thread."""
        if n_threads == 1:
            function()
            return
        errors = Parallel(n_jobs=n_threads, backend="threading")(
            delayed(self._in_thread)(function) for _ in range(n_threads)
        )
        error = next((error for error in errors if error is not None), None)
        if error is not None:
            try:
                raise error
            finally:
                del error, errors  # a traceback that holds its own error is freed late

    def stop(self) -> None:
        """Ask all threads to start nothing more."""
        self.stopped = True

    def wait_until_idle(self, seconds: float) -> None:
        """After Ctrl-C in the main thread, wait for the others to write down what they have."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_busy == 0, timeout=seconds)

    def _in_thread(self, function: Callable[[], None]) -> BaseException | None:
        with self._changed:
            self._n_busy += 1
        try:
            function()
        except BaseException as error:
            self.stop()
            return error
        finally:
            with self._changed:
                self._n_busy -= 1
                self._changed.notify_all()
        return None
