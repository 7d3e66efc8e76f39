"""Successive halving with the number of folds as the resource, like scikit-learn's searches.

In brackets of nine random configurations, all get one fold, the best third gets three, and the
best one gets all. Every rung waits for its last fit, as in scikit-learn.
"""

from __future__ import annotations

import numpy as np

from f2a_tune.outcome import Outcome
from replaying.engine import Job
from replaying.problem import Problem

FACTOR = 3
BRACKET = 9


class Halving:
    """Recommends the best configuration that has all folds, by its mean."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.scores: dict[int, list[float]] = {}
        self.done: list[tuple[float, int]] = []
        self.jobs: list[Job] = []
        self.rung: list[int] = []
        self.target = 0
        self.running = 0

    def ask(self, now: float, worker: int) -> Job | None:
        if not self.jobs and not self.running:
            self._advance()
        if not self.jobs:
            return None
        self.running += 1
        return self.jobs.pop(0)

    def tell(self, job: Job, outcome: Outcome, worker: int) -> None:
        self.running -= 1
        if outcome.ok:
            self.scores[job.row].append(outcome.value)
        else:
            self.scores[job.row] = [-np.inf]
            self.jobs = [other for other in self.jobs if other.row != job.row]
        scores = self.scores[job.row]
        if len(scores) == self.problem.n_folds:
            self.done.append((float(np.mean(scores)), job.row))

    def recommend(self) -> int | None:
        return max(self.done)[1] if self.done else None

    def _advance(self) -> None:
        """Fill the next rung, of this bracket or of a new one."""
        alive = [row for row in self.rung if np.isfinite(self.scores[row][0])]
        reached = self.target
        if reached in (0, self.problem.n_folds) or not alive:
            drawn = [self.problem.take_random() for _ in range(BRACKET)]
            self.rung = [row for row in drawn if row is not None]
            self.scores.update({row: [] for row in self.rung})
            self.target, reached = 1, 0
        else:
            alive.sort(key=lambda row: -float(np.mean(self.scores[row])))
            self.rung = alive[: max(1, len(self.rung) // FACTOR)]
            self.target = min(reached * FACTOR, self.problem.n_folds)
        if self.target * FACTOR > self.problem.n_folds and self.target > 1:
            self.target = self.problem.n_folds if len(self.rung) == 1 else self.target
        folds = range(reached, self.target)
        self.jobs = [Job(row, fold) for row in self.rung for fold in folds]
