"""Heartbeats: which runs work on a search right now, and how old their session is.

Every run writes a small record about itself to the study once a second. From the records of others
a run learns which session to join, how much of its budget is spent, and later which runs are still
alive. A run whose record has not changed for a while, by the local clock, is gone. On the same
machine a missing process is noticed at once.
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
from f2a_tune.study.limits import (
    HEARTBEAT_SECONDS,
    HEARTBEAT_TIMEOUT_SECONDS,
    JOINED_END_EARLIER_SECONDS,
    OLD_RECORD_SECONDS,
    WAIT_FOR_RUNS_SECONDS,
)
from f2a_tune.study.run_records import RunRecord, run_records, session_seconds, timestamp

if TYPE_CHECKING:
    from optuna import Study

_logger = get_logger("f2a_tune.search")


class Heartbeat:
    """This run among the other runs of a search.

    Parameters
    ----------
    study, budget
        The study of the search. Seconds that earlier sessions, and the one joined, have spent are
        charged to the budget.
    n_players
        Players in this process; 0 if it only starts others.
    session
        Name of the session to join; by default found from the records.
    shared
        Whether other processes can see the study at all.
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
        """For each other run: the seconds in its last record, and when that number changed."""
        self._written = self._storage_back = -math.inf
        """When our own record was last written, and when that worked again after an outage."""
        self._without_players: set[str] = set()
        self._ended: set[str] = set()
        """Runs that have ended, by their own record or because their process is gone."""
        self.session = session or ""
        self.is_stopped = False
        """Whether a run of this session has stopped it for all."""
        self.seconds_of_others = 0.0
        """Worker-seconds of all other runs of this session, known when this one has ended."""
        prepared_seconds = budget.spent_seconds
        self._join(run_records(study), session)
        self._begin = budget.spent_seconds
        if not self.has_joined:  # the session began with the budget, before this object was made
            self._begin -= prepared_seconds
        self._stop, self._write_lock = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None

    def _join(self, records: list[RunRecord], session: str | None) -> None:
        """Find the running session, and charge what it and earlier ones have spent."""
        self._read(records)
        alive = [record for record in records if self.is_alive(record.name)]
        found = session or next((record.session or record.name for record in alive), "")
        spent = session_seconds(records)
        earlier_seconds = sum(seconds for name, seconds in spent.items() if name != found)
        members = [record for record in records if (record.session or record.name) == found]
        self._offset = max((_session_age(record) for record in members), default=0.0)
        self.session = found
        self._budget.charge(earlier_seconds + self._offset)
        if self.has_joined:
            self._budget.charge(JOINED_END_EARLIER_SECONDS)

    @property
    def has_joined(self) -> bool:
        """Whether another run started the session."""
        return bool(self.session)

    @property
    def own_seconds(self) -> float:
        """Seconds since this run began."""
        return self._budget.spent_seconds - self._begin

    def __enter__(self) -> Heartbeat:
        if self.shared:
            self._write()
            self._thread = threading.Thread(
                target=self._beat, name="f2a_tune-heartbeat", daemon=True
            )
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        # A heartbeat that is being written must not replace the last record.
        locked = self._write_lock.acquire(timeout=HEARTBEAT_SECONDS)
        try:
            self._write(has_ended=True)
            if self.shared:
                self.seconds_of_others = self._seconds_of_others()
        except Exception as error:  # the result is in memory and must not be lost
            _logger.warning("Could not write to the study's storage: %s", error)
        finally:
            if locked:
                self._write_lock.release()

    def stop_session(self) -> None:
        """Stop the search for all runs; they read it in this run's record."""
        self.is_stopped = True
        if self.shared:
            self._write()

    def read(self) -> None:
        """Read the records of all runs."""
        self._read(run_records(self._study))

    def is_alive(self, name: str) -> bool:
        """Whether a run still works, as far as is known."""
        if name == self.name:
            return True
        if name in self._ended or name not in self._seen:
            return False
        heard = self._seen[name][1]
        if heard > -math.inf:
            heard = max(heard, self._storage_back)
        return clock.monotonic_seconds() - heard < HEARTBEAT_TIMEOUT_SECONDS

    @property
    def takes_over(self) -> bool:
        """Whether this run, and no other, takes over the trials of runs that are gone."""
        others = (name for name in self._seen if name not in self._without_players)
        return all(name >= self.name for name in others if self.is_alive(name))

    def wait_for_runs(self, seconds: float = WAIT_FOR_RUNS_SECONDS) -> None:
        """At the end, give the runs that joined a moment to end."""
        give_up_at = clock.monotonic_seconds() + seconds
        while not self.has_joined and clock.monotonic_seconds() < give_up_at:
            self.read()
            if not any(self.is_alive(name) for name in self._seen if name != self.name):
                return
            clock.sleep_seconds(WAIT_FOR_RUNS_SECONDS / 5)

    def _seconds_of_others(self) -> float:
        """Only the time while this run was there, because its accounting covers only that."""
        return sum(
            _seconds_since(record, self._offset) * record.n_players
            for record in run_records(self._study)
            if record.name != self.name and self._is_of_session(record)
        )

    def _is_of_session(self, record: RunRecord) -> bool:
        return (self.session or self.name) in (record.session, record.name)

    def _read(self, records: list[RunRecord]) -> None:
        now, today = clock.monotonic_seconds(), timestamp(clock.wall_clock())
        for record in records:
            if record.has_ended or _process_is_gone(record):
                self._ended.add(record.name)
            if record.is_stopped and self._is_of_session(record):
                self.is_stopped = True
            if record.n_players == 0:
                self._without_players.add(record.name)
            known = self._seen.get(record.name)
            if known is None:
                # The clock of another machine is trusted only for long intervals.
                is_old = today - record.written_at > OLD_RECORD_SECONDS
                self._seen[record.name] = record.seconds, -math.inf if is_old else now
            elif known[0] != record.seconds:
                self._seen[record.name] = record.seconds, now

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_SECONDS):
            try:
                with self._write_lock:
                    if not self._stop.is_set():
                        self._write()
            except Exception as error:  # the storage may be back for the next heartbeat
                _logger.warning("Could not write to the study's storage: %s", error)

    def _write(self, *, has_ended: bool = False) -> None:
        RunRecord(
            name=self.name,
            seconds=self.own_seconds,
            n_players=self.n_players,
            session=self.session,
            offset_seconds=self._offset,
            written_at=timestamp(clock.wall_clock()),
            has_ended=has_ended,
            is_stopped=self.is_stopped,
            process=f"{machine_tag()}:{os.getpid()}:{start_stamp(os.getpid())}",
        ).write(self._study)
        now = clock.monotonic_seconds()
        if now - self._written > HEARTBEAT_TIMEOUT_SECONDS / 2:
            self._storage_back = now  # other runs could not write either
        self._written = now


def _session_age(record: RunRecord) -> float:
    """Seconds that a run's session has spent by now; the record may be a heartbeat old."""
    since = 0.0
    if not record.has_ended:
        since = max(timestamp(clock.wall_clock()) - record.written_at, 0.0)
        since = min(since, 2 * HEARTBEAT_SECONDS)
    return record.offset_seconds + record.seconds + since


def _seconds_since(record: RunRecord, offset_seconds: float) -> float:
    """Seconds that a run has worked after its session was ``offset_seconds`` old."""
    after = max(record.offset_seconds + record.seconds - offset_seconds, 0.0)
    return min(record.seconds, after)


def _process_is_gone(record: RunRecord) -> bool:
    """Whether the run's process was on this machine and has ended."""
    if not os.path.exists("/proc/self/stat"):
        return False
    machine, _, rest = record.process.partition(":")
    number, _, stamp = rest.partition(":")
    if machine != machine_tag() or not number.isdecimal():
        return False
    return has_ended(int(number)) or start_stamp(int(number)) != stamp
