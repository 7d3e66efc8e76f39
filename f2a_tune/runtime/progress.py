"""Shows the state of a search: a bar in a terminal, elsewhere a line every few seconds."""

from __future__ import annotations

import math
import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from f2a_tune.clock import Budget
from f2a_tune.runtime.event import Event
from f2a_tune.runtime.limits import PROGRESS_BAR_SECONDS, PROGRESS_LINE_SECONDS

BAR_WIDTH = 20


class Progress:
    """A callback that prints.

    Parameters
    ----------
    budget
        Its spent and total seconds are shown.
    describe
        Returns the state of the search as text, given the last event.
    n_folds
        For the lines of single pulls.
    verbose
        1 for a bar or an occasional line; above that, a line for every pull and no bar.
    """

    def __init__(
        self,
        budget: Budget,
        describe: Callable[[Event], str],
        n_folds: int,
        verbose: int,
        stream: TextIO | None = None,
    ) -> None:
        self._budget, self._describe = budget, describe
        self._n_folds, self._verbose = n_folds, verbose
        self._stream = sys.stdout if stream is None else stream
        self._is_terminal = verbose == 1 and self._stream.isatty()
        self._next_line = 0.0
        self._state, self._reason = "nothing yet", ""
        self._stop = threading.Event()
        self._ticker: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if self._is_terminal:
            self._ticker = threading.Thread(target=self._tick, name="f2a_tune-bar", daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        if self._ticker is not None:
            self._ticker.join()
            self._redraw()
            self._print("\n")

    def __call__(self, event: Event) -> bool:
        """Show that a pull has ended; never stops the search."""
        spent = self._budget.spent_seconds
        if self._verbose > 1:
            self._print_pull(event)
        if not self._is_terminal and spent < self._next_line:
            return False
        # Players call one at a time; the bar's thread only shows what was prepared here.
        self._state, self._reason = self._describe(event), event.pull.reason
        if not self._is_terminal:
            self._next_line = spent + PROGRESS_LINE_SECONDS
            self._print(f"{self._line()}\n")
        return False

    def _line(self) -> str:
        spent, total = self._budget.spent_seconds, self._budget.total_seconds
        return f"[{spent:6.1f}/{total:g} s] {self._state}"

    def _tick(self) -> None:
        while not self._stop.wait(PROGRESS_BAR_SECONDS):
            self._redraw()

    def _redraw(self) -> None:
        width = max(shutil.get_terminal_size().columns - 1, 10)
        spent, total = self._budget.spent_seconds, self._budget.total_seconds
        done = min(int(BAR_WIDTH * spent / total), BAR_WIDTH) if math.isfinite(total) else 0
        bar = f"{'█' * done}{'░' * (BAR_WIDTH - done)} " if width > 5 * BAR_WIDTH else ""
        text = f"{bar}{self._line()}"
        if self._reason:
            text += f" – {self._reason}"
        self._print(f"\r\x1b[2K{text[:width]}")

    def _print(self, text: str) -> None:
        """A closed stream, or one that cannot encode the text, must not end a search."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()

    def _print_pull(self, event: Event) -> None:
        params = ", ".join(f"{name}={value}" for name, value in event.params.items())
        head = f"[CV {event.pull.fold + 1}/{self._n_folds}] END {params}"
        tail = f"{event.outcome.kind.value}, total time={event.outcome.seconds:6.1f}s"
        self._print(f"{head}; {tail}\n")
