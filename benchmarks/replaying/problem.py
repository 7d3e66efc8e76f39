"""The tuning problem of one run: a table, a seed and a budget.

For a given table and seed, all methods see the same order of folds and the same stream of random
configurations. A proposal is mapped to the nearest entry that the run has not used.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from f2a_tune.outcome import ErrorReport, Outcome
from replaying.engine import Job
from replaying.table import Floats, Table, row_key

OVERHEAD_SECONDS = 0.005  # overhead of a pull, the same for every method


class Problem:
    """A table, a seed and a budget."""

    def __init__(self, table: Table, seed: int, budget: float, n_workers: int = 1) -> None:
        rng = np.random.default_rng([seed, zlib.crc32(table.name.encode())])
        self.table, self.seed, self.n_workers = table, seed, n_workers
        self.n_folds, self.space = table.n_folds, table.space
        self.budget_seconds = budget * table.mean_full_seconds
        self._folds = rng.permutation(table.n_folds)
        self._stream = rng.permutation(len(table.units))
        self._next = 0
        self._unused = np.ones(len(table.units), dtype=bool)
        self.n_unused = len(table.units)

    def take_random(self) -> int | None:
        """Use the next configuration of the stream that all methods share."""
        row = self.peek_random()
        return None if row is None else self._use(row)

    def peek_random(self) -> int | None:
        """Return the next configuration of the shared stream without using it."""
        while self._next < len(self._stream):
            row = int(self._stream[self._next])
            if self._unused[row]:
                return row
            self._next += 1
        return None

    def stream_head(self, count: int) -> list[int]:
        """Return the first rows of the shared stream without using them."""
        return [int(row) for row in self._stream[:count]]

    def take_row(self, row: int) -> int:
        """Use this entry."""
        return self._use(row)

    def take(self, unit: Floats) -> int | None:
        """Use the unused entry that is nearest to a proposal."""
        if not self.n_unused:
            return None
        exact = self.table.row_of.get(row_key(unit))
        if exact is not None and self._unused[exact]:
            return self._use(exact)
        distances = self.space.distances(unit, self.table.units)
        distances[~self._unused] = np.inf
        return self._use(int(distances.argmin()))

    def take_configuration(self, values: dict[str, Any]) -> int | None:
        """Use the unused entry that is nearest to a proposal given by names and values.

        Inactive parameters are ignored. Choices are compared as text, because tuners convert mixed
        types to strings.
        """
        active: dict[str, Any] = {}
        for parameter in self.space.parameters:
            if all(active.get(parent) in allowed for parent, allowed in parameter.active_if):
                value = values[parameter.name]
                if parameter.kind == "categorical":
                    value = {str(choice): choice for choice in parameter.choices}[str(value)]
                active[parameter.name] = value
        return self.take(self.space.encode(active))

    def configuration(self, row: int) -> dict[str, Any]:
        return self.space.configuration(self.table.units[row])

    def overhead(self, job: Job, worker: int) -> float:
        """Return the seconds that a worker needs before it runs a job."""
        return OVERHEAD_SECONDS

    def run(self, job: Job, cutoff_seconds: float) -> Outcome:
        """Return the outcome of a fit in virtual time."""
        column = self._folds[job.fold]
        seconds = float(self.table.seconds[job.row, column])
        if seconds > cutoff_seconds:
            return Outcome.gave_up(cutoff_seconds)
        score = float(self.table.scores[job.row, column])
        if np.isnan(score):
            return Outcome.failed(ErrorReport("Ended", "it never finished"), seconds)
        return Outcome.finished(score, seconds)

    def fold(self, fold: int) -> int:
        """Return the column of the table that is this run's fold."""
        return int(self._folds[fold])

    def reward(self, row: int, fold: int) -> float:
        return float(self.table.rank_scores[row, self._folds[fold]])

    def _use(self, row: int) -> int:
        self.n_unused -= bool(self._unused[row])
        self._unused[row] = False
        return row
