"""Tuners that choose the level themselves: FLAML with a resource, and SMAC3 with budgets.

Both are told the mean over the folds at the level they asked for. If they ask for the same
configuration at a higher level, its fits continue where they were, in their favour.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from replaying.curve_problem import CurveProblem
from replaying.flaml_peers import domain
from replaying.smac_peer import configuration_space
from replaying.trainings import Training, Trainings

RESOURCE = "f2a_resource"
# Their usual factor between two fidelities.
REDUCTION = 3


class FlamlTrainings(Trainings):
    """CFO or BlendSearch with the effort as their resource."""

    def __init__(self, problem: CurveProblem, *, blend: bool) -> None:
        super().__init__(problem)
        from flaml.tune.searcher.blendsearch import CFO, BlendSearch

        logging.getLogger("flaml").setLevel(logging.ERROR)
        efforts = problem.table.efforts
        kind = BlendSearch if blend else CFO
        self.searcher = kind(
            metric="score",
            mode="max",
            space={parameter.name: domain(parameter) for parameter in problem.space.parameters},
            points_to_evaluate=[problem.configuration(problem.stream_head(1)[0])],
            resource_attr=RESOURCE,
            min_resource=float(efforts[0]),
            max_resource=float(efforts[-1]),
            reduction_factor=REDUCTION,
            seed=problem.seed,
        )
        self.searcher.set_search_properties("score", "max", {}, metric_target=np.inf)
        self.rows: dict[str, int] = {}
        self.count = 0
        self.worst = 0.0

    def propose(self) -> Training | None:
        for _ in range(100):  # it returns None while it waits for pending trials
            name = f"{self.count:06d}"
            self.count += 1
            values = self.searcher.suggest(name)
            if values is not None:
                return self._training(name, values)
        row = self.problem.take_random()
        return None if row is None else Training(row, None, self.top)

    def _training(self, name: str, values: dict[str, Any]) -> Training | None:
        resource = values.get(RESOURCE, self.problem.table.efforts[-1])
        own = {key: value for key, value in values.items() if key != RESOURCE}
        key = repr(sorted(own.items()))
        if key not in self.rows:
            row = self.problem.take_configuration(own)
            if row is None:
                return None
            self.rows[key] = row
        level = level_of(self.problem, resource)
        return Training(self.rows[key], (name, values), level)

    def end(self, training: Training, mean: float | None) -> None:
        if training.handle is None:
            return
        name, values = training.handle
        self.worst = min(self.worst, mean) if mean is not None else self.worst
        result = {
            "score": self.worst if mean is None else mean,
            "time_total_s": training.seconds,
            "config": values,
            "training_iteration": float(self.problem.table.efforts[training.until]),
            RESOURCE: float(self.problem.table.efforts[training.until]),
        }
        result |= {f"config/{key}": value for key, value in values.items()}
        self.searcher.on_trial_complete(name, result)


class SmacTrainings(Trainings):
    """SMAC3's multi-fidelity facade: Hyperband with a random forest."""

    def __init__(self, problem: CurveProblem) -> None:
        super().__init__(problem)
        logging.disable(logging.WARNING)
        warnings.filterwarnings("ignore", module="smac")
        from smac import MultiFidelityFacade as Facade
        from smac import Scenario

        efforts = problem.table.efforts
        self.folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            configuration_space(problem),
            output_directory=Path(self.folder.name),
            deterministic=True,
            n_trials=1_000_000,
            min_budget=float(efforts[0]),
            max_budget=float(efforts[-1]),
            seed=problem.seed,
        )
        self.smac = Facade(scenario, _never_called, overwrite=True, logging_level=logging.ERROR)
        self.rows: dict[Any, int] = {}
        self.worst = -np.inf

    def propose(self) -> Training | None:
        with joblib.parallel_config(backend="sequential"):  # its forest starts a thread per tree
            info = self.smac.ask()
        if info.config not in self.rows:
            row = self.problem.take_configuration(dict(info.config))
            if row is None:
                return None
            self.rows[info.config] = row
        level = level_of(self.problem, float(info.budget))
        return Training(self.rows[info.config], info, level)

    def end(self, training: Training, mean: float | None) -> None:
        from smac.runhistory.dataclasses import TrialValue

        if mean is not None:
            self.worst = max(self.worst, -mean)
        # An infinite cost breaks its forest, so a failed training gets the worst cost.
        failed = self.worst if np.isfinite(self.worst) else 1.0
        cost = failed if mean is None else -mean
        self.smac.tell(training.handle, TrialValue(cost=cost, time=training.seconds))


def level_of(problem: CurveProblem, effort: float) -> int:
    """Return the highest level with at most this effort."""
    found = np.searchsorted(problem.table.efforts, effort * (1 + 1e-9), side="right") - 1
    return int(max(found, 0))


def _never_called(config: Any, seed: int = 0, budget: float = 0.0) -> float:
    raise AssertionError("SMAC is asked and told, it runs nothing")
