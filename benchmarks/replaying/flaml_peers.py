"""FLAML's CFO and BlendSearch with an ask-and-tell loop; they evaluate all folds."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from replaying.problem import Problem
from replaying.whole import Evaluation, WholeEvaluations


class FlamlSearch(WholeEvaluations):
    """One of FLAML's searchers, which gets the mean score and the seconds of each evaluation.

    It starts from the shared stream's first configuration. Its space is flat: a parameter that is
    inactive in the table's space is drawn and ignored.
    """

    def __init__(self, problem: Problem, *, blend: bool) -> None:
        super().__init__(problem)
        from flaml.tune.searcher.blendsearch import CFO, BlendSearch

        logging.getLogger("flaml").setLevel(logging.ERROR)
        first = problem.configuration(problem.stream_head(1)[0])
        kind = BlendSearch if blend else CFO
        self.searcher = kind(
            metric="score",
            mode="max",
            space={parameter.name: domain(parameter) for parameter in problem.space.parameters},
            points_to_evaluate=[first],
            seed=problem.seed,
        )
        self.searcher.set_search_properties("score", "max", {}, metric_target=np.inf)
        self.count = 0

    def propose(self) -> tuple[int, Any] | None:
        for _ in range(100):  # it returns None while it waits for pending trials
            name = f"{self.count:06d}"
            self.count += 1
            values = self.searcher.suggest(name)
            if values is not None:
                row = self.problem.take_configuration(values)
                return None if row is None else (row, (name, values))
        row = self.problem.take_random()
        return None if row is None else (row, None)

    def complete(self, evaluation: Evaluation, mean: float) -> None:
        self._tell(evaluation, mean)

    def fail(self, evaluation: Evaluation) -> None:
        worst = min((value for value, _ in self.done), default=0.0)
        self._tell(evaluation, worst)

    def _tell(self, evaluation: Evaluation, mean: float) -> None:
        if evaluation.handle is None:
            return
        name, values = evaluation.handle
        seconds = float(self.problem.table.seconds[evaluation.row].sum())
        result = {
            "score": mean,
            "time_total_s": seconds,
            "config": values,
            "training_iteration": 1,
        }
        result |= {f"config/{key}": value for key, value in values.items()}
        self.searcher.on_trial_complete(name, result)


def domain(parameter: Any) -> Any:
    """Return FLAML's distribution of a parameter."""
    from flaml import tune

    if parameter.kind == "categorical":
        return tune.choice(list(parameter.choices))
    if parameter.kind == "int":
        low, high = int(parameter.low), int(parameter.high) + 1
        return tune.lograndint(low, high) if parameter.log else tune.randint(low, high)
    low, high = parameter.low, parameter.high
    return tune.loguniform(low, high) if parameter.log else tune.uniform(low, high)
