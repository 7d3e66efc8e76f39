"""Other methods with our rule for the recommendation."""

from __future__ import annotations

from f2a_tune.outcome import Outcome
from f2a_tune.racing import Pull, Race
from replaying.engine import Job, Method
from replaying.problem import Problem


class Ruled:
    """Records the outcomes of a method in a race, which is used only for the recommendation."""

    def __init__(self, method: Method, problem: Problem) -> None:
        self.method = method
        self.race = Race(problem.n_folds, problem.budget_seconds)
        self.numbers: dict[int, int] = {}

    def ask(self, now: float, worker: int) -> Job | None:
        return self.method.ask(now, worker)

    def tell(self, job: Job, outcome: Outcome, worker: int) -> None:
        number = self.numbers.setdefault(job.row, len(self.numbers))
        pull = Pull(number, job.fold, job.cutoff_seconds, number=self.race.n_pulls)
        self.race.rebuild([(pull, outcome)])
        self.method.tell(job, outcome, worker)

    def recommend(self) -> int | None:
        best = self.race.recommend()
        rows = list(self.numbers)
        return None if best is None else rows[best.configuration]
