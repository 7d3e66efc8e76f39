"""Where the seconds of a search went: outcomes go in, sums by kind come out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from f2a_tune.outcome import Kind

USE = "f2a:use"
"""Attribute of a study with the use of its last search."""


@dataclass(frozen=True)
class BudgetUse:
    """Seconds by kind, of all players together; they add up to ``total_seconds``."""

    finished_seconds: float
    given_up_seconds: float
    failed_seconds: float
    overhead_seconds: float
    refit_seconds: float
    n_finished: int
    n_given_up: int
    n_failed: int

    def to_attribute(self) -> dict[str, Any]:
        """As JSON that every storage takes."""
        return asdict(self)

    @classmethod
    def from_attribute(cls, content: Any) -> BudgetUse | None:
        """Read it back; None if it makes no sense."""
        try:
            return cls(**{one.name: content[one.name] for one in fields(cls)})
        except (KeyError, TypeError):
            return None

    @property
    def total_seconds(self) -> float:
        """All of it: wall-clock seconds times players while they played, and the rest."""
        fits = self.finished_seconds + self.given_up_seconds + self.failed_seconds
        return fits + self.overhead_seconds + self.refit_seconds

    def __str__(self) -> str:
        return (
            f"{self.total_seconds:.2f} s: {self.finished_seconds:.2f} s in "
            f"{self.n_finished} finished fits, {self.given_up_seconds:.2f} s in "
            f"{self.n_given_up} given up, {self.failed_seconds:.2f} s in {self.n_failed} failed, "
            f"{self.refit_seconds:.2f} s refit, {self.overhead_seconds:.2f} s overhead"
        )


@dataclass
class Account:
    """Sums so far."""

    seconds: dict[Kind, float] = field(default_factory=lambda: dict.fromkeys(Kind, 0.0))
    counts: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))

    def add(self, kind: Kind, seconds: float) -> None:
        """One more pull."""
        self.seconds[kind] += seconds
        self.counts[kind] += 1

    def close(self, player_seconds: float, other_seconds: float, refit: float) -> BudgetUse:
        """The whole; ``player_seconds`` is wall-clock time times players while they played."""
        fits = sum(self.seconds.values())
        return BudgetUse(
            finished_seconds=self.seconds[Kind.FINISHED],
            given_up_seconds=self.seconds[Kind.GAVE_UP],
            failed_seconds=self.seconds[Kind.FAILED] + self.seconds[Kind.OUT_OF_MEMORY],
            overhead_seconds=max(player_seconds - fits, 0.0) + max(other_seconds, 0.0),
            refit_seconds=refit,
            n_finished=self.counts[Kind.FINISHED],
            n_given_up=self.counts[Kind.GAVE_UP],
            n_failed=self.counts[Kind.FAILED] + self.counts[Kind.OUT_OF_MEMORY],
        )
