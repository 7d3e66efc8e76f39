"""Players in threads: each supervises one worker process at a time; an error of one ends all."""

from __future__ import annotations

import threading
from collections.abc import Callable

from joblib import Parallel, delayed


class Crew:
    """Runs the same function in so many threads, and knows when they are done."""

    def __init__(self) -> None:
        self.ended = False
        """Whether players should begin nothing more."""
        self._idle = threading.Condition()
        self._n_busy = 0

    def play(self, player: Callable[[], None], n_players: int) -> None:
        """Until all have returned; a single player plays in the calling thread."""
        if n_players == 1:
            player()
            return
        errors = Parallel(n_jobs=n_players, backend="threading")(
            delayed(self._in_thread)(player) for _ in range(n_players)
        )
        for error in errors:
            if error is not None:
                raise error

    def end(self) -> None:
        """Ask all players to begin nothing more."""
        self.ended = True

    def wait_until_idle(self, seconds: float) -> None:
        """After Ctrl-C in the main thread: until the others have written down what they had."""
        with self._idle:
            self._idle.wait_for(lambda: self._n_busy == 0, timeout=seconds)

    def _in_thread(self, player: Callable[[], None]) -> BaseException | None:
        with self._idle:
            self._n_busy += 1
        try:
            player()
        except BaseException as error:
            self.end()
            return error
        finally:
            with self._idle:
                self._n_busy -= 1
                self._idle.notify_all()
        return None
