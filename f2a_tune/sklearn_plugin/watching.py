"""Those who watch a search: scikit-learn's callbacks, and a line for people now and then."""

from __future__ import annotations

import math
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from f2a_tune import _compat
from f2a_tune.outcome import FAILED, Kind
from f2a_tune.sklearn_plugin.players import Event

if TYPE_CHECKING:
    from f2a_tune.sklearn_plugin.search import F2ASearchCV
    from f2a_tune.sklearn_plugin.session import Session

LINE_SECONDS = 2.0
REDRAW_SECONDS = 0.25
BAR_WIDTH = 20


class Watch:
    """Tells scikit-learn's callbacks (from 1.9 on) what goes on, in the parent."""

    def __init__(self, search: F2ASearchCV, X: Any, y: Any, sample_weight: Any) -> None:
        self._search = search
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"X": X, "y": y, "metadata": metadata}
        self._root = _compat.callback_root(search, 1 + (search.refit is not False))
        self._pulls: Any = None
        if self._root is not None:
            self._root.call_on_fit_task_begin(estimator=search, **self._data)
            self._pulls = self._root.subcontext(
                task_name="search", max_subtasks=None, sequential_subtasks=False
            ).call_on_fit_task_begin(estimator=search)
        self._n_pulls = 0

    def __call__(self, event: Event) -> bool:
        """One pull has ended, however it ended; True if a callback wants the search to end."""
        del event
        if self._pulls is None:
            return False
        task = self._pulls.subcontext(
            task_name="candidate-split-evaluation", task_id=self._n_pulls
        )
        self._n_pulls += 1
        task.call_on_fit_task_begin(estimator=self._search)
        return bool(task.call_on_fit_task_end(estimator=self._search))

    @contextmanager
    def refit(self, estimator: Any) -> Iterator[None]:
        """While the winner is refitted."""
        if self._root is None:
            yield
            return
        self._end_pulls()
        task = self._root.subcontext(task_name="refit-with-best-params")
        with task.propagate_callback_context(estimator):
            task.call_on_fit_task_begin(estimator=self._search, **self._data)
            yield
        task.call_on_fit_task_end(estimator=self._search, **self._data)

    def end(self) -> None:
        """The fit is over."""
        if self._root is not None:
            self._end_pulls()
            self._root.call_on_fit_task_end(estimator=self._search, **self._data)

    def _end_pulls(self) -> None:
        if self._pulls is not None:
            self._pulls.call_on_fit_task_end(estimator=self._search)
            self._pulls = None


class Progress:
    """Shows how a search goes: a bar in a terminal, elsewhere a line every few seconds.

    With ``verbose`` above 1 also a line for every pull, and no bar.
    """

    def __init__(self, session: Session, verbose: int, stream: TextIO | None = None) -> None:
        self._session, self._verbose = session, verbose
        self._stream = sys.stdout if stream is None else stream
        self._is_terminal = verbose == 1 and self._stream.isatty()
        self._next = 0.0
        self._said, self._reason = "nothing yet", ""
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
            self._show("\n")

    def __call__(self, event: Event) -> bool:
        """One pull has ended."""
        spent = self._session.budget.spent_seconds
        if self._verbose > 1:
            self._print_pull(event)
        if not self._is_terminal and spent < self._next:
            return False
        # Players call one at a time; the bar's own thread only shows what was said here.
        self._said, self._reason = self._words(event), event.pull.reason
        if not self._is_terminal:
            self._next = spent + LINE_SECONDS
            self._show(f"{self._line()}\n")
        return False

    def _line(self) -> str:
        """Elapsed and budget, and what was said last."""
        budget = self._session.budget
        return f"[{budget.spent_seconds:6.1f}/{budget.total_seconds:g} s] {self._said}"

    def _words(self, event: Event) -> str:
        """The best, what was done, the cutoff."""
        session = self._session
        counts = session.account.counts
        best = session.recommendation()
        found = "nothing yet" if best is None else f"{best.mean:.4f} ± {best.spread:.4f}"
        n_failed = sum(counts[kind] for kind in FAILED)
        failed = f", {n_failed} failed" if n_failed else ""
        return (
            f"best {found}, {len(session.record.configurations)} configurations, "
            f"{counts[Kind.FINISHED]} folds finished, {counts[Kind.GAVE_UP]} given up{failed}, "
            f"cutoff {event.pull.cutoff_seconds:.3g} s"
        )

    def _tick(self) -> None:
        while not self._stop.wait(REDRAW_SECONDS):
            self._redraw()

    def _redraw(self) -> None:
        width = max(shutil.get_terminal_size().columns - 1, 10)
        spent, total = self._session.budget.spent_seconds, self._session.budget.total_seconds
        done = min(int(BAR_WIDTH * spent / total), BAR_WIDTH) if math.isfinite(total) else 0
        bar = f"{'█' * done}{'░' * (BAR_WIDTH - done)} " if width > 5 * BAR_WIDTH else ""
        text = f"{bar}{self._line()}"
        if self._reason:
            text += f" – {self._reason}"
        self._show(f"\r\x1b[2K{text[:width]}")

    def _show(self, text: str) -> None:
        """Nobody reads it, or not these letters: no reason to end a search."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()

    def _print_pull(self, event: Event) -> None:
        n_folds = self._session.settings.n_folds
        params = ", ".join(f"{name}={value}" for name, value in event.params.items())
        head = f"[CV {event.pull.fold + 1}/{n_folds}] END {params}"
        tail = f"{event.outcome.kind.value}, total time={event.outcome.seconds:6.1f}s"
        self._show(f"{head}; {tail}\n")
