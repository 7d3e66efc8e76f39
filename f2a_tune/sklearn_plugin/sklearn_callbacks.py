"""Calls the callbacks of scikit-learn 1.9 and later during a search, in the parent process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from f2a_tune.runtime.event import Event
from f2a_tune.sklearn_plugin import sklearn_private

if TYPE_CHECKING:
    from f2a_tune.sklearn_plugin.search import F2ASearchCV


class SklearnCallbacks:
    """Calls the callbacks that are set on a search; does nothing before scikit-learn 1.9."""

    def __init__(self, search: F2ASearchCV, X: Any, y: Any, sample_weight: Any) -> None:
        self._search = search
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"X": X, "y": y, "metadata": metadata}
        self._root = sklearn_private.callback_root(search, 1 + (search.refit is not False))
        self._pulls: Any = None
        if self._root is not None:
            self._root.call_on_fit_task_begin(estimator=search, **self._data)
            self._pulls = self._root.subcontext(
                task_name="search", max_subtasks=None, sequential_subtasks=False
            ).call_on_fit_task_begin(estimator=search)
        self._n_pulls = 0

    def __call__(self, event: Event) -> bool:
        """Report a pull that has ended; returns whether a callback wants to stop the search."""
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
        """A context for the refit."""
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
        """Report the end of ``fit``."""
        if self._root is not None:
            self._end_pulls()
            self._root.call_on_fit_task_end(estimator=self._search, **self._data)

    def _end_pulls(self) -> None:
        if self._pulls is not None:
            self._pulls.call_on_fit_task_end(estimator=self._search)
            self._pulls = None
