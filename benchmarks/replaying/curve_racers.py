"""Our race with levels on a problem with learning curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from f2a_tune.outcome import Outcome
from f2a_tune.racing import CurveProposals, Pull, Race
from replaying.curve_problem import CurveProblem
from replaying.curve_table import Choice
from replaying.engine import Job
from replaying.racers import StreamProposals
from replaying.row_space import RowSpace
from replaying.table import Floats


class CurveRaceMethod:
    """A race over one problem, with looks at a doubling ladder of its levels."""

    def __init__(
        self, problem: CurveProblem, *, n_folds: int | None = None, **options: Any
    ) -> None:
        self.problem = problem
        self.ladder = _ladder(problem.table.efforts)
        self.race = Race(
            n_folds or problem.n_folds,
            problem.budget_seconds,
            n_workers=problem.n_workers,
            efforts=problem.table.efforts[self.ladder],
            **options,
        )
        space = RowSpace(problem.space, problem.table.units)
        self.proposals = CurveProposals(
            space, problem.budget_seconds, problem.seed, StreamProposals(problem)
        )
        self.rows: dict[int, int] = {}
        self.units: list[Floats] = []

    def ask(self, now: float, worker: int) -> Job | None:
        if now >= self.race.budget_seconds:
            return None
        left = self.race.time_left(now)
        offer = self.proposals.offer(self.race.ledger, self.units, left)
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
        level = None if pull.level is None else int(self.ladder[pull.level])
        return Job(self.rows[pull.configuration], pull.fold, pull.cutoff_seconds, pull, level)

    def tell(self, job: Job, outcome: Outcome, worker: int) -> None:
        pull = job.token
        assert isinstance(pull, Pull)
        assert pull.level is not None
        places = {int(level): place for place, level in enumerate(self.ladder)}
        looks = [
            type(look)(places[look.level], look.score, look.seconds)
            for look in (outcome.value if outcome.ok else ())
            if look.level in places
        ]
        reached = bool(looks) and looks[-1].level == pull.level
        if outcome.ok and not reached and outcome.seconds >= pull.cutoff_seconds - 1e-9:
            outcome = Outcome.gave_up(outcome.seconds)
        if outcome.ok:
            last = looks[-1].score if looks else float("nan")
            outcome = Outcome.finished(last, outcome.seconds)
        self.race.tell(pull, outcome, looks)

    def recommend(self, final: bool = False) -> Choice | None:
        best = self.race.recommend(final=final)
        if best is None:
            return None
        assert best.level is not None
        return self.rows[best.configuration], int(self.ladder[best.level])

    def recommend_finally(self) -> Choice | None:
        return self.recommend(final=True)


def _ladder(efforts: Floats) -> np.ndarray:
    """Indices of a doubling ladder of efforts, down from the last one."""
    wanted = efforts[-1] / 2.0 ** np.arange(30)
    wanted = wanted[wanted >= efforts[0] * 0.99]
    nearest = np.abs(efforts[None, :] - wanted[:, None]).argmin(axis=1)
    return np.unique(nearest)
