"""Plays one method on one problem: virtual workers take jobs, a heap says who is free next.

A job that would run beyond the budget is ended with it. The recommendation is asked for after
every outcome, so the record says what a user would have got by stopping then.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field
from typing import Protocol

from f2a_tune.outcome import Kind, Outcome
from replaying.problem import OVERHEAD_SECONDS, Problem


@dataclass(frozen=True)
class Job:
    """One fit that a method asks for."""

    row: int
    fold: int
    cutoff_seconds: float = math.inf
    token: object = None


class Method(Protocol):
    """What a tuner must answer to be replayed."""

    def ask(self, now: float, worker: int) -> Job | None: ...
    def tell(self, job: Job, outcome: Outcome, worker: int) -> None: ...
    def recommend(self) -> int | None: ...


@dataclass
class Record:
    """What happened in one run."""

    times: list[float] = field(default_factory=list)
    """Seconds at which the recommendation changed, as shares of the budget."""
    rows: list[int | None] = field(default_factory=list)
    pulls: int = 0
    reward: float = 0.0
    seconds_by_kind: dict[str, float] = field(default_factory=dict)
    decision_seconds: float = 0.0

    def row_at(self, share: float) -> int | None:
        """The recommendation at this share of the budget."""
        row = None
        for when, candidate in zip(self.times, self.rows, strict=True):
            if when > share:
                break
            row = candidate
        return row


def play(method: Method, problem: Problem) -> Record:
    """Run one method to the end of the budget."""
    record, budget = Record(), problem.budget_seconds
    waiting: list[tuple[float, int, int, Job, Outcome]] = []
    idle, order, now = list(range(problem.n_workers)), 0, 0.0
    while True:
        for worker in list(idle):
            job = _timed(record, method.ask, now, worker)
            if job is None:
                continue
            idle.remove(worker)
            left = budget - now - OVERHEAD_SECONDS
            outcome = problem.fit(job.row, job.fold, max(min(job.cutoff_seconds, left), 0.0))
            order += 1
            end = now + OVERHEAD_SECONDS + outcome.seconds
            heapq.heappush(waiting, (end, order, worker, job, outcome))
        if not waiting:
            _note(record, 1.0, getattr(method, "recommend_finally", method.recommend)())
            return record
        now, _, worker, job, outcome = heapq.heappop(waiting)
        _account(record, problem, job, outcome)
        if now >= budget - 1e-9 * budget and outcome.kind is Kind.GAVE_UP:
            continue  # cut off by the end of the budget; a worker that is out of time rests
        _timed(record, method.tell, job, outcome, worker)
        _note(record, now / budget, _timed(record, method.recommend))
        if now < budget:
            idle.append(worker)


def _note(record: Record, share: float, row: int | None) -> None:
    if not record.rows or record.rows[-1] != row:
        record.times.append(share)
        record.rows.append(row)


def _timed(record: Record, call, *arguments):
    start = time.perf_counter()
    result = call(*arguments)
    record.decision_seconds += time.perf_counter() - start
    return result


def _account(record: Record, problem: Problem, job: Job, outcome: Outcome) -> None:
    kind = outcome.kind.value
    record.pulls += 1
    record.seconds_by_kind[kind] = record.seconds_by_kind.get(kind, 0.0) + outcome.seconds
    if outcome.ok:
        record.reward += problem.reward(job.row, job.fold)
