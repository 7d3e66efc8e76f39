"""Runs one method on one problem with virtual workers, in the order in which they become free.

A job that would run beyond the budget is stopped at its end. The method recommends after every
outcome, so the record shows what a user would get by stopping at any time.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from f2a_tune.outcome import Kind, Outcome

if TYPE_CHECKING:
    from replaying.problem import Problem


@dataclass(frozen=True)
class Job:
    """One fit requested by a method."""

    row: int
    fold: int
    cutoff_seconds: float = math.inf
    token: object = None
    level: int | None = None
    """Level to grow the fit to; None for the whole fit."""


class Method(Protocol):
    """The interface of a tuner that can be replayed."""

    def ask(self, now: float, worker: int) -> Job | None: ...
    def tell(self, job: Job, outcome: Outcome, worker: int) -> None: ...
    def recommend(self) -> Any: ...


@dataclass
class Record:
    """What happened in one run."""

    times: list[float] = field(default_factory=list)
    """Times at which the recommendation changed, as shares of the budget."""
    rows: list[Any] = field(default_factory=list)
    """What was recommended: a row of the table, or a row and a level of a table of curves."""
    pulls: int = 0
    reward: float = 0.0
    seconds_by_kind: dict[str, float] = field(default_factory=dict)
    decision_seconds: float = 0.0

    def row_at(self, share: float) -> Any:
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
            begin = now + problem.overhead(job, worker)
            outcome = problem.run(job, max(min(job.cutoff_seconds, budget - begin), 0.0))
            order += 1
            end = begin + outcome.seconds
            heapq.heappush(waiting, (end, order, worker, job, outcome))
        if not waiting:
            _note(record, 1.0, getattr(method, "recommend_finally", method.recommend)())
            return record
        now, _, worker, job, outcome = heapq.heappop(waiting)
        _account(record, problem, job, outcome)
        if now >= budget - 1e-9 * budget and outcome.kind is Kind.GAVE_UP:
            continue  # stopped at the end of the budget, so the worker gets no further job
        _timed(record, method.tell, job, outcome, worker)
        _note(record, now / budget, _timed(record, method.recommend))
        if now < budget:
            idle.append(worker)


def _note(record: Record, share: float, row: Any) -> None:
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
