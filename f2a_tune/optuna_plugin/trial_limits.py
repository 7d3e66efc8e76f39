"""How many trials `optimize` may run, and how long each may take before it really begins."""

from __future__ import annotations

import threading

# Until the loading time is known, loading may take this share of the remaining time. Later it may
# take this multiple of the longest so far, and a second more for a busy machine.
FIRST_PRELUDE_SHARE = 0.5
PRELUDE_MULTIPLE = 4.0
PRELUDE_SLACK_SECONDS = 1.0


class TrialCounter:
    """Counts trials up to a limit, for players in several threads."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._taken, self._lock = 0, threading.Lock()

    def take(self) -> bool:
        """Count one more trial; returns whether it may run."""
        with self._lock:
            self._taken += 1
            return self.limit is None or self._taken <= self.limit

    def remaining(self) -> int | None:
        """Trials that may still run, including the current one; None for no limit."""
        return None if self.limit is None else max(self.limit - self._taken + 1, 1)


class Preludes:
    """Learns how long objectives import modules and load data before they use the trial."""

    def __init__(self) -> None:
        self._longest: float | None = None
        self._lock = threading.Lock()

    def cutoff(self, trial_cutoff: float, remaining: float) -> float:
        """How long to wait until the objective uses the trial for the first time."""
        if self._longest is None:
            return max(trial_cutoff, FIRST_PRELUDE_SHARE * remaining)
        return max(trial_cutoff, PRELUDE_MULTIPLE * self._longest + PRELUDE_SLACK_SECONDS)

    def add(self, seconds: float) -> None:
        """Add the prelude of one more trial."""
        with self._lock:
            self._longest = max(self._longest or 0.0, seconds)
