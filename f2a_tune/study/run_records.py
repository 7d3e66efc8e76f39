"""Records of runs: every process that works on a study writes its seconds under a key of its own.

Nothing is added up in the storage, which has no atomic increment; readers sum over all records.
Runs that overlap form one session: its wall-clock seconds count once, its worker-seconds for every
player.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from f2a_tune.study.attributes import RUN, number_or

if TYPE_CHECKING:
    from optuna import Study


@dataclass(frozen=True)
class RunRecord:
    """What one run writes about itself."""

    name: str
    seconds: float
    n_players: int = 1
    session: str = ""
    """Name of the run that started the session; empty if it is this one."""
    offset_seconds: float = 0.0
    """Age of the session when this run joined it."""
    written_at: float = 0.0
    """Unix time of this record."""
    has_ended: bool = False
    """Whether the run has ended properly."""
    is_stopped: bool = False
    """Whether the run stopped the search for all runs."""
    process: str = ""
    """Machine, number and start of its process, to look for it on that machine."""

    @property
    def player_seconds(self) -> float:
        """Seconds of all its players together."""
        return self.seconds * self.n_players

    def write(self, study: Study) -> None:
        """Write the record to the study, replacing the run's earlier one."""
        content = {
            "seconds": self.seconds,
            "players": self.n_players,
            "session": self.session,
            "offset": self.offset_seconds,
            "at": self.written_at,
            "left": self.has_ended,
            "called_off": self.is_stopped,
            "process": self.process,
        }
        study.set_user_attr(f"{RUN}{self.name}", content)

    @classmethod
    def read(cls, name: str, content: Mapping[str, Any]) -> RunRecord:
        """Read what `write` wrote; invalid entries get their default."""
        return cls(
            name=name,
            seconds=number_or(content.get("seconds"), 0.0),
            n_players=int(number_or(content.get("players"), 1.0)),
            session=str(content.get("session") or ""),
            offset_seconds=number_or(content.get("offset"), 0.0),
            written_at=number_or(content.get("at"), 0.0),
            has_ended=bool(content.get("left")),
            is_stopped=bool(content.get("called_off")),
            process=str(content.get("process") or ""),
        )


def write_run(study: Study, name: str, seconds: float, n_players: int = 1) -> None:
    """Write the record of a run that has ended and that no other run joined."""
    RunRecord(name, seconds, n_players, has_ended=True).write(study)


def run_records(study: Study) -> list[RunRecord]:
    """The records of all runs."""
    return [
        RunRecord.read(key.removeprefix(RUN), content)
        for key, content in study.user_attrs.items()
        if key.startswith(RUN) and isinstance(content, Mapping)
    ]


def session_seconds(records: Iterable[RunRecord]) -> dict[str, float]:
    """Wall-clock seconds of every session."""
    found: dict[str, float] = {}
    for record in records:
        session = record.session or record.name
        spent = record.offset_seconds + record.seconds
        found[session] = max(found.get(session, 0.0), spent)
    return found


def timestamp(when: datetime) -> float:
    """Unix time, the same on all machines whose clocks agree."""
    return when.astimezone(UTC).timestamp()
