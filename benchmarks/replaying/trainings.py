"""Methods that train configurations step by step and may stop a training early.

All folds of a configuration advance together, level by level, and the mean over the folds is what
the tuner sees after every level. The best mean seen so far is recommended, also of trainings that
were stopped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import optuna

from f2a_tune.outcome import Outcome
from replaying.curve_problem import CurveProblem
from replaying.curve_table import Choice
from replaying.engine import Job
from replaying.whole import OptunaTrials


@dataclass
class Training:
    """A configuration that is being trained."""

    row: int
    handle: Any
    until: int
    """Level at which the training ends."""
    level: int = 0
    values: list[float] = field(default_factory=list)
    """Scores of the folds at this level, so far."""
    seconds: float = 0.0


class Trainings(ABC):
    """Each worker trains one configuration at a time."""

    def __init__(self, problem: CurveProblem) -> None:
        self.problem = problem
        self.current: dict[int, Training] = {}
        self.best: tuple[float, Choice] | None = None
        self.reached: dict[int, int] = {}
        """The highest level of every row that was trained; a second training continues there."""

    @property
    def top(self) -> int:
        return self.problem.table.n_levels - 1

    @abstractmethod
    def propose(self) -> Training | None:
        """Return a new training, or None if there is nothing to do now."""

    def report(self, training: Training, mean: float) -> bool:
        """Take the mean at a level; return True to stop the training."""
        return False

    def end(self, training: Training, mean: float | None) -> None:
        """Take the last mean, or None if the training failed; not called after a stop."""

    def ask(self, now: float, worker: int) -> Job | None:
        if worker not in self.current:
            training = self.propose()
            if training is None:
                return None
            training.level = min(self.reached.get(training.row, -1) + 1, training.until)
            self.current[worker] = training
        training = self.current[worker]
        return Job(training.row, len(training.values), level=training.level)

    def tell(self, job: Job, outcome: Outcome, worker: int) -> None:
        training = self.current[worker]
        training.seconds += outcome.seconds
        score = _score(outcome, training.level)
        known = self.problem.table.scores[job.row, self.problem.fold(job.fold), training.level]
        if outcome.seconds == 0 and np.isfinite(known):
            score = float(known)  # it was trained to this level before
        if not np.isfinite(score):
            self.end(self.current.pop(worker), None)
            return
        training.values.append(score)
        if len(training.values) == self.problem.n_folds:
            self._advance(training, worker)

    def _advance(self, training: Training, worker: int) -> None:
        mean = float(np.mean(training.values))
        if self.best is None or mean > self.best[0]:
            self.best = mean, (training.row, training.level)
        self.reached[training.row] = training.level
        is_last = training.level == training.until
        if self.report(training, mean) and not is_last:
            del self.current[worker]
            return
        if is_last:
            self.end(self.current.pop(worker), mean)
            return
        training.level, training.values = training.level + 1, []

    def recommend(self) -> Choice | None:
        return None if self.best is None else self.best[1]


def _score(outcome: Outcome, level: int) -> float:
    looks = outcome.value if outcome.ok else ()
    return next((look.score for look in looks if look.level == level), float("nan"))


class RandomTrainings(Trainings):
    """Random configurations, trained to the end."""

    def propose(self) -> Training | None:
        row = self.problem.take_random()
        return None if row is None else Training(row, None, self.top)


class OptunaTrainings(Trainings):
    """Optuna's TPE or random search, with one of its pruners."""

    def __init__(
        self,
        problem: CurveProblem,
        pruner: optuna.pruners.BasePruner | None = None,
        *,
        random: bool = False,
    ) -> None:
        super().__init__(problem)
        self.trials = OptunaTrials(problem, pruner, random=random)

    def propose(self) -> Training | None:
        found = self.trials.ask()
        return None if found is None else Training(found[0], found[1], self.top)

    def report(self, training: Training, mean: float) -> bool:
        effort = round(self.problem.table.efforts[training.level])
        return training.level < training.until and self.trials.prune(training.handle, mean, effort)

    def end(self, training: Training, mean: float | None) -> None:
        if mean is None:
            self.trials.fail(training.handle)
        else:
            self.trials.complete(training.handle, mean)


class OneLook(Trainings):
    """One short look at as many configurations as half of the budget allows, then the best few.

    A look is the level with about a fiftieth of the full effort. The best are trained to the end,
    one after another.
    """

    def __init__(self, problem: CurveProblem) -> None:
        super().__init__(problem)
        efforts = problem.table.efforts
        self.look = int(np.searchsorted(efforts, efforts[-1] / 50, side="right"))
        self.now = 0.0
        self.seen: list[tuple[float, int]] = []

    def ask(self, now: float, worker: int) -> Job | None:
        self.now = now
        return super().ask(now, worker)

    def propose(self) -> Training | None:
        row = None
        if self.now < self.problem.budget_seconds / 2:
            row = self.problem.take_random()
        if row is not None:
            return Training(row, None, self.look)
        if not self.seen:
            return None
        self.seen.sort()
        return Training(self.seen.pop()[1], None, self.top)

    def end(self, training: Training, mean: float | None) -> None:
        if mean is not None and training.until == self.look:
            self.seen.append((mean, training.row))
