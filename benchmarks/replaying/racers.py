"""Our own methods: a `Race` with proposals, whose parts the ablations replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from f2a_tune.outcome import Outcome
from f2a_tune.racing import Ledger, ModelProposals, Offer, Proposals, Pull, Race
from replaying.engine import Job
from replaying.problem import Problem
from replaying.table import Floats


class StreamProposals:
    """Proposes the shared stream of random configurations."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def offer(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> Offer | None:
        row = self.problem.peek_random()
        return None if row is None else Offer(self.problem.table.units[row])


class RaceMethod:
    """A race over one problem."""

    def __init__(self, problem: Problem, *, model: bool = True, **options: Any) -> None:
        self.problem = problem
        self.race = Race(
            problem.n_folds, problem.budget_seconds, n_workers=problem.n_workers, **options
        )
        random = StreamProposals(problem)
        self.proposals: Proposals = random
        if model:
            self.proposals = ModelProposals(problem.space, problem.seed, random)
        self.rows: dict[int, int] = {}
        self.units: list[Floats] = []

    def ask(self, now: float, worker: int) -> Job | None:
        offer = None
        if self.race.reservoir_open and now < self.race.budget_seconds:
            cutoff = self.race.fresh_cutoff(now)
            offer = self.proposals.offer(self.race.ledger, self.units, max(cutoff, 1e-6))
            if not self.problem.n_unused:
                self.race.exhausted()
        pull = self.race.ask(now, offer)
        if pull is None:
            return None
        if pull.fresh:
            row = None if offer is None else self.problem.take(offer.unit)
            if row is None:
                self.race.exhausted(pull)
                return self.ask(now, worker)
            self.rows[pull.configuration] = row
            self.units.append(self.problem.table.units[row])
        return Job(self.rows[pull.configuration], pull.fold, pull.cutoff_seconds, pull)

    def tell(self, job: Job, outcome: Outcome, worker: int) -> None:
        assert isinstance(job.token, Pull)
        self.race.tell(job.token, outcome)

    def recommend(self, final: bool = False) -> int | None:
        best = self.race.recommend(final=final)
        return None if best is None else self.rows[best.configuration]

    def recommend_finally(self) -> int | None:
        return self.recommend(final=True)
