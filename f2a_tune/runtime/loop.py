"""The loop of every search: take the next job, run it with a cutoff, record the outcome.

Each player is a thread that repeats these three steps and supervises one killable worker at a
time. What a job is, and what its outcome means, is decided by a `Work`: `F2ASearchCV` implements
it with fold fits, `optimize` with the trials of a study.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from f2a_tune.clock import sleep_seconds
from f2a_tune.cutoff import CutoffPool
from f2a_tune.cutoff.call import Call
from f2a_tune.outcome import Outcome
from f2a_tune.runtime.limits import IDLE_SECONDS, INTERRUPT_SECONDS
from f2a_tune.runtime.thread_group import ThreadGroup

Subject = TypeVar("Subject")


class NoJob(Enum):
    """Why there is no next job."""

    WAIT = "jobs that are running may lead to another one"
    DONE = "there is nothing left to do"


@dataclass(frozen=True)
class Job(Generic[Subject]):
    """One call to run in a worker."""

    call: Call
    subject: Subject
    """What the call belongs to, for `Work.record`."""
    context: AbstractContextManager[Any] = field(default_factory=nullcontext)
    """Entered while the call runs."""


class Work(Protocol[Subject]):
    """A source of jobs that takes their outcomes. Players call it from several threads."""

    def player(self) -> AbstractContextManager[None]:
        """A context that is entered by each player for as long as it works."""

    def next_job(self) -> Job[Subject] | NoJob:
        """The next job."""

    def record(self, job: Job[Subject], outcome: Outcome) -> None:
        """Take the outcome of a job."""

    def withdraw(self, job: Job[Subject], error: BaseException) -> None:
        """Undo or close a job without an outcome: Ctrl-C was pressed, or the workers are gone."""


class Loop(Generic[Subject]):
    """Runs the jobs of a `Work` in the workers of a pool."""

    def __init__(self, pool: CutoffPool, work: Work[Subject]) -> None:
        self._pool, self._work = pool, work
        self._players = ThreadGroup()

    def run(self, n_players: int) -> None:
        """Run jobs until there are none left; an error of one player stops all.

        After an exception of one player, the others finish the call they are running. After
        Ctrl-C the running calls are killed, and players get a few seconds to record what has
        finished.
        """
        try:
            self._players.run(self._play, n_players)
        except BaseException as error:
            self._players.stop()
            if not isinstance(error, Exception):
                self._pool.close()
                self._players.wait_until_idle(INTERRUPT_SECONDS)
            raise

    def _play(self) -> None:
        with self._work.player():
            while not self._players.stopped:
                job = self._work.next_job()
                if job is NoJob.DONE:
                    return
                if isinstance(job, Job):
                    self._run(job)
                else:
                    sleep_seconds(IDLE_SECONDS)

    def _run(self, job: Job[Subject]) -> None:
        try:
            with job.context:
                outcome = self._pool.perform(job.call)
        except BaseException as error:
            self._work.withdraw(job, error)
            raise
        if self._pool.closed and not outcome.ok:  # killed with the search, not its own fault
            self._work.withdraw(job, KeyboardInterrupt())
        else:
            self._work.record(job, outcome)
