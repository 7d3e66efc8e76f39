"""Who plays one search: this process, and others that share the storage.

Every process writes a note about itself to the study once a second. From the notes of others comes
which session to join and how much of its seconds is over, and later who is still there: a process
whose note has not changed for a while, by the clock of this one, is gone; on the same machine its
absence is seen at once.
"""

from __future__ import annotations

import math
import os
import threading
import uuid
from typing import TYPE_CHECKING

from f2a_tune import clock
from f2a_tune.clock import Budget
from f2a_tune.cutoff.processes import has_ended, machine_tag, start_stamp
from f2a_tune.logging import get_logger
from f2a_tune.optuna_plugin.runs import RunNote, moment, run_notes, session_seconds

if TYPE_CHECKING:
    from optuna import Study

BEAT_SECONDS = 1.0
# Without news for so long a process is gone. A storage may be slow, and a machine busy.
GRACE_SECONDS = 8.0
# Notes that are older than this, by the clocks of two machines, are of runs that are over.
OLD_SECONDS = 60.0
# Who has joined ends so much earlier than who began, who has to read what all have written.
EARLIER_SECONDS = 0.15
# How long who began waits for those who have not said yet that they have ended.
PARTING_SECONDS = 0.15

_logger = get_logger("f2a_tune.search")


class Company:
    """This run among others.

    Parameters
    ----------
    n_players
        That play in this process; none if it only starts others.
    session
        The session to join; found from the notes if left out.
    shared
        Whether others can see the study at all.
    """

    def __init__(
        self,
        study: Study,
        budget: Budget,
        n_players: int,
        *,
        shared: bool,
        session: str | None = None,
    ) -> None:
        self._study, self._budget, self.n_players = study, budget, n_players
        self.name = uuid.uuid4().hex[:12]
        self.shared = shared
        self._seen: dict[str, tuple[float, float]] = {}
        """Of each other run: what it last said of its seconds, and when that changed."""
        self._written = self._excused = -math.inf
        """When our own note got through, and when it did again after the storage stood still."""
        self._watching: set[str] = set()
        """Runs without players of their own."""
        self._left: set[str] = set()
        """Runs that are over, by what they said or what this machine knows."""
        self.session = session or ""
        self.is_called_off = False
        """Whether somebody of this session has ended it for all."""
        notes = run_notes(study)
        self._look(notes)
        alive = [note for note in notes if self.is_alive(note.name)]
        found = session or next((note.session or note.name for note in alive), "")
        spent = session_seconds(notes)
        earlier_seconds = sum(s for name, s in spent.items() if name != found)
        members = [note for note in notes if (note.session or note.name) == found]
        self._offset = max((_session_age(note) for note in members), default=0.0)
        self.session = found
        budget.charge(earlier_seconds + self._offset)
        if self.has_joined:
            budget.charge(EARLIER_SECONDS)
        self._begin = budget.spent_seconds
        self.seconds_of_others = 0.0
        """Worker-seconds of all other runs of this session, when this one has ended."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def has_joined(self) -> bool:
        """Whether somebody else began."""
        return bool(self.session)

    @property
    def own_seconds(self) -> float:
        """Since this run began."""
        return self._budget.spent_seconds - self._begin

    def __enter__(self) -> Company:
        if self.shared:
            self._write()
            self._thread = threading.Thread(target=self._beat, name="f2a_tune-beat", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(BEAT_SECONDS)
        try:
            self._write(left=True)
            if self.shared:
                self.seconds_of_others = self._seconds_of_others()
        except Exception as error:  # no reason to lose a result that is in memory
            _logger.warning("could not write to the study's storage: %s", error)

    def call_off(self) -> None:
        """End the search for all who play it; they read it in the notes."""
        self.is_called_off = True
        if self.shared:
            self._write()

    def look_around(self) -> None:
        """Read the notes of all."""
        self._look(run_notes(self._study))

    def is_alive(self, name: str) -> bool:
        """Whether a run still plays, as far as is known."""
        if name == self.name:
            return True
        if name in self._left or name not in self._seen:
            return False
        heard = self._seen[name][1]
        if heard > -math.inf:
            heard = max(heard, self._excused)
        return clock.monotonic_seconds() - heard < GRACE_SECONDS

    @property
    def takes_over(self) -> bool:
        """Whether this run, and no other, cares for what the dead have left."""
        others = (name for name in self._seen if name not in self._watching)
        return all(name >= self.name for name in others if self.is_alive(name))

    def wait_for_others(self, seconds: float = PARTING_SECONDS) -> None:
        """At the end: a moment for those who are about to end, too."""
        give_up_at = clock.monotonic_seconds() + seconds
        while not self.has_joined and clock.monotonic_seconds() < give_up_at:
            self.look_around()
            if not any(self.is_alive(name) for name in self._seen if name != self.name):
                return
            clock.sleep_seconds(PARTING_SECONDS / 5)

    def _seconds_of_others(self) -> float:
        """Only what they played while this run was there, as only that is in its account."""
        return sum(
            _seconds_since(note, self._offset) * note.n_players
            for note in run_notes(self._study)
            if note.name != self.name and self._is_of_session(note)
        )

    def _is_of_session(self, note: RunNote) -> bool:
        return (self.session or self.name) in (note.session, note.name)

    def _look(self, notes: list[RunNote]) -> None:
        now, today = clock.monotonic_seconds(), moment(clock.wall_clock())
        for note in notes:
            if note.left or _is_dead_here(note):
                self._left.add(note.name)
            if note.called_off and self._is_of_session(note):
                self.is_called_off = True
            if note.n_players == 0:
                self._watching.add(note.name)
            known = self._seen.get(note.name)
            if known is None:
                # Another machine's clock is believed only if it says that it was long ago.
                is_old = today - note.written_at > OLD_SECONDS
                self._seen[note.name] = note.seconds, -math.inf if is_old else now
            elif known[0] != note.seconds:
                self._seen[note.name] = note.seconds, now

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            try:
                self._write()
            except Exception as error:  # the storage may be back for the next one
                _logger.warning("could not write to the study's storage: %s", error)

    def _write(self, *, left: bool = False) -> None:
        RunNote(
            name=self.name,
            seconds=self.own_seconds,
            n_players=self.n_players,
            session=self.session,
            offset_seconds=self._offset,
            written_at=moment(clock.wall_clock()),
            left=left,
            called_off=self.is_called_off,
            process=f"{machine_tag()}:{os.getpid()}:{start_stamp(os.getpid())}",
        ).write(self._study)
        now = clock.monotonic_seconds()
        if now - self._written > GRACE_SECONDS / 2:
            self._excused = now  # the storage stood still, for others as well
        self._written = now


def _session_age(note: RunNote) -> float:
    """Seconds that its session has spent by now: the note may be a beat old."""
    since = 0.0
    if not note.left:
        since = min(max(moment(clock.wall_clock()) - note.written_at, 0.0), 2 * BEAT_SECONDS)
    return note.offset_seconds + note.seconds + since


def _seconds_since(note: RunNote, offset_seconds: float) -> float:
    """What a run has played after its session was so old."""
    return min(note.seconds, max(note.offset_seconds + note.seconds - offset_seconds, 0.0))


def _is_dead_here(note: RunNote) -> bool:
    if not os.path.exists("/proc/self/stat"):
        return False
    machine, _, rest = note.process.partition(":")
    number, _, stamp = rest.partition(":")
    if machine != machine_tag() or not number.isdecimal():
        return False
    return has_ended(int(number)) or start_stamp(int(number)) != stamp
