"""The progress bar of `optimize`, which counts seconds of the budget, or trials without one."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna import Study


class ProgressBar:
    """A progress bar that several threads may share; it does nothing if ``show`` is False."""

    def __init__(self, show: bool, total_seconds: float, n_trials: int | None) -> None:
        self._bar: Any = None
        self._counts_seconds = math.isfinite(total_seconds)
        self._lock = threading.Lock()
        if show:
            from tqdm.auto import tqdm

            total = total_seconds if self._counts_seconds else n_trials
            unit = "s" if self._counts_seconds else "trial"
            self._bar = tqdm(total=total, unit=unit, bar_format=_FORMAT if total else None)

    def update(self, spent_seconds: float, study: Study) -> None:
        """Advance the bar after a trial has ended."""
        if self._bar is None:
            return
        with self._lock:
            self._bar.set_description(_best(study))
            done = min(spent_seconds, self._bar.total) if self._counts_seconds else None
            self._bar.update(1 if done is None else done - self._bar.n)

    def close(self) -> None:
        """Close the bar; its last state stays visible."""
        if self._bar is not None:
            self._bar.close()


_FORMAT = "{desc} {percentage:3.0f}%|{bar}| {n:.0f}/{total:.0f} {unit} [{elapsed}<{remaining}]"


def _best(study: Study) -> str:
    try:
        best = study.best_trial
    except ValueError:
        return "no finished trial yet"
    return f"best trial {best.number}: {best.value:.6g}"
