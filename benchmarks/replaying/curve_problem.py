"""The tuning problem of one run on a table of learning curves.

A fit can be grown to a level, paused, and grown further. Growing it costs the recorded seconds
between the two levels. A worker that turns to another fit pays the overhead of a pull.
"""

from __future__ import annotations

import math

import numpy as np

from f2a_tune.outcome import ErrorReport, Outcome
from f2a_tune.racing import Look
from replaying.curve_table import CurveTable
from replaying.engine import Job
from replaying.problem import OVERHEAD_SECONDS, Problem


class CurveProblem(Problem):
    """A table of curves, a seed and a budget."""

    table: CurveTable

    def __init__(
        self,
        table: CurveTable,
        seed: int,
        budget: float,
        n_workers: int = 1,
        *,
        resumes: bool = True,
    ) -> None:
        super().__init__(table, seed, budget, n_workers)
        self.resumes = resumes
        self._done: dict[tuple[int, int], float] = {}
        """Seconds that a fit has run so far."""
        self._current: dict[int, tuple[int, int]] = {}
        """The last fit of every worker."""

    def overhead(self, job: Job, worker: int) -> float:
        """Return the seconds a worker needs before it continues with this fit."""
        same = self._current.get(worker) == (job.row, job.fold)
        self._current[worker] = (job.row, job.fold)
        if not same and not self.resumes:
            self._done.pop((job.row, job.fold), None)
        return 0.0 if same else OVERHEAD_SECONDS

    def drop(self, row: int, fold: int) -> None:
        """Forget a paused fit; growing it further means to start it again."""
        self._done.pop((row, fold), None)

    def run(self, job: Job, cutoff_seconds: float) -> Outcome:
        """Grow a fit to a level, or run it to its end; its value are the looks on the way."""
        fold = self._folds[job.fold]
        last = int(np.isfinite(self.table.seconds[job.row, fold]).sum()) - 1
        level = last if job.level is None else min(job.level, last)
        times, scores = self.table.seconds[job.row, fold], self.table.scores[job.row, fold]
        begin = self._done.get((job.row, job.fold), 0.0)
        end = min(max(float(times[level]), begin), begin + cutoff_seconds)
        self._done[job.row, job.fold] = end
        looks = tuple(
            Look(index, float(scores[index]), float(times[index]))
            for index in range(level + 1)
            if begin < times[index] <= end
        )
        spent = end - begin
        if times[level] > end:
            return Outcome.gave_up(spent) if not looks else Outcome.finished(looks, spent)
        if job.level is not None:
            return Outcome.finished(looks, spent)
        score = float(scores[last])
        if math.isnan(score):
            return Outcome.failed(ErrorReport("Ended", "it never finished"), spent)
        return Outcome.finished(score, spent)
