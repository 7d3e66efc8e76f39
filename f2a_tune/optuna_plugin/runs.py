"""Runs that have spent time on a study: each writes its seconds under a key of its own.

Nothing is added up in the storage, which has no atomic increment; whoever wants a sum reads all.
Runs at the same time belong to one session: the wall-clock seconds of a session count once,
however many play, and the worker-seconds of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from f2a_tune.optuna_plugin.plan import number_or

if TYPE_CHECKING:
    from optuna import Study

RUN = "f2a:run:"


@dataclass(frozen=True)
class RunNote:
    """What one run says of itself."""

    name: str
    seconds: float
    n_players: int = 1
    session: str = ""
    """The run that began what this one joined; empty: it began by itself."""
    offset_seconds: float = 0.0
    """How old the session was when this run joined it."""
    written_at: float = 0.0
    """Seconds since 1970 when this was written."""
    left: bool = False
    """Whether it has ended, and said so."""
    called_off: bool = False
    """Whether it ended the search for all who play."""
    process: str = ""
    """Machine, number and start of its process: on that machine it can be looked for."""

    @property
    def player_seconds(self) -> float:
        """Seconds of all its players together."""
        return self.seconds * self.n_players

    def write(self, study: Study) -> None:
        """Put it into the study, in place of what this run said before."""
        content = {
            "seconds": self.seconds,
            "players": self.n_players,
            "session": self.session,
            "offset": self.offset_seconds,
            "at": self.written_at,
            "left": self.left,
            "called_off": self.called_off,
            "process": self.process,
        }
        study.set_user_attr(f"{RUN}{self.name}", content)

    @classmethod
    def read(cls, name: str, content: Mapping[str, Any]) -> RunNote:
        """From what `write` wrote; what makes no sense counts as not said."""
        return cls(
            name=name,
            seconds=number_or(content.get("seconds"), 0.0),
            n_players=int(number_or(content.get("players"), 1.0)),
            session=str(content.get("session") or ""),
            offset_seconds=number_or(content.get("offset"), 0.0),
            written_at=number_or(content.get("at"), 0.0),
            left=bool(content.get("left")),
            called_off=bool(content.get("called_off")),
            process=str(content.get("process") or ""),
        )


def record_run(study: Study, name: str, seconds: float, n_players: int = 1) -> None:
    """Write down what a run by itself has taken."""
    RunNote(name, seconds, n_players, left=True).write(study)


def run_notes(study: Study) -> list[RunNote]:
    """All that runs have said of themselves."""
    return [
        RunNote.read(key.removeprefix(RUN), content)
        for key, content in study.user_attrs.items()
        if key.startswith(RUN) and isinstance(content, Mapping)
    ]


def recorded_runs(study: Study) -> dict[str, float]:
    """Worker-seconds of every run that has written them down."""
    return {note.name: note.player_seconds for note in run_notes(study)}


def session_seconds(notes: Iterable[RunNote]) -> dict[str, float]:
    """Wall-clock seconds of every session."""
    found: dict[str, float] = {}
    for note in notes:
        session = note.session or note.name
        found[session] = max(found.get(session, 0.0), note.offset_seconds + note.seconds)
    return found


def moment(when: datetime) -> float:
    """Seconds since 1970, the same on all machines whose clocks agree."""
    return when.astimezone(UTC).timestamp()
