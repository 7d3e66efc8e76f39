"""Where the seconds of a study went: finished, given up, pruned, failed, refit and overhead."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from f2a_tune.outcome import FAILED, Kind

PRUNED = "pruned"
"""Key of trials that a pruner stopped before their cutoff."""


@dataclass(frozen=True)
class BudgetSummary:
    """Worker-seconds of a study by kind; the parts add up to ``total_seconds``.

    The seconds of several workers that run at the same time are counted for each of them.
    """

    finished_seconds: float
    given_up_seconds: float
    """Seconds of fits or trials that were stopped at their cutoff."""
    failed_seconds: float
    """Seconds of fits or trials that raised an error or crashed."""
    overhead_seconds: float
    """Deciding, writing to the storage, starting workers, and waiting."""
    n_finished: int
    n_given_up: int
    n_failed: int
    refit_seconds: float = 0.0
    """Seconds of the refit on all rows."""
    pruned_seconds: float = 0.0
    """Seconds of trials that a pruner stopped before their cutoff."""
    n_pruned: int = 0

    def to_attribute(self) -> dict[str, Any]:
        """JSON that every storage accepts."""
        return asdict(self)

    @classmethod
    def from_attribute(cls, content: Any) -> BudgetSummary | None:
        """Read what `to_attribute` wrote; None if it is invalid."""
        try:
            known = {one.name: content[one.name] for one in fields(cls) if one.name in content}
            return cls(**known)
        except (KeyError, TypeError):
            return None

    @property
    def total_seconds(self) -> float:
        """The sum of all parts."""
        pulls = self.finished_seconds + self.given_up_seconds + self.failed_seconds
        return pulls + self.pruned_seconds + self.overhead_seconds + self.refit_seconds

    def __str__(self) -> str:
        parts = [
            f"{self.finished_seconds:.2f} s in {self.n_finished} finished",
            f"{self.given_up_seconds:.2f} s in {self.n_given_up} given up",
            f"{self.pruned_seconds:.2f} s in {self.n_pruned} pruned" if self.n_pruned else "",
            f"{self.failed_seconds:.2f} s in {self.n_failed} failed",
            f"{self.refit_seconds:.2f} s refit" if self.refit_seconds else "",
            f"{self.overhead_seconds:.2f} s overhead",
        ]
        return f"{self.total_seconds:.2f} s: {', '.join(part for part in parts if part)}"


@dataclass
class Account:
    """Seconds and counts of pulls so far, by kind."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys((*Kind, PRUNED), 0.0))
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*Kind, PRUNED), 0))

    def add(self, kind: str, seconds: float) -> None:
        """Add one pull."""
        self.seconds[kind] += seconds
        self.counts[kind] += 1

    def replace(self, kind: str, seconds: float, new_kind: str, new_seconds: float) -> None:
        """Replace a pull that is part of a longer one."""
        self.seconds[kind] -= seconds
        self.counts[kind] -= 1
        self.add(new_kind, new_seconds)

    @property
    def pull_seconds(self) -> float:
        """Seconds of all pulls."""
        return sum(self.seconds.values())

    @property
    def n_pulls(self) -> int:
        """Number of all pulls."""
        return sum(self.counts.values())

    def summary(self, overhead_seconds: float, refit_seconds: float = 0.0) -> BudgetSummary:
        """The summary, with what the pulls themselves do not show."""
        return BudgetSummary(
            finished_seconds=self.seconds[Kind.FINISHED],
            given_up_seconds=self.seconds[Kind.GAVE_UP],
            failed_seconds=sum(self.seconds[kind] for kind in FAILED),
            overhead_seconds=max(overhead_seconds, 0.0),
            n_finished=self.counts[Kind.FINISHED],
            n_given_up=self.counts[Kind.GAVE_UP],
            n_failed=sum(self.counts[kind] for kind in FAILED),
            refit_seconds=refit_seconds,
            pruned_seconds=self.seconds[PRUNED],
            n_pruned=self.counts[PRUNED],
        )
