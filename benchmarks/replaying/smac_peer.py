"""SMAC3 with folds as instances and an ask-and-tell loop; it races configurations itself."""

from __future__ import annotations

import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from f2a_tune.outcome import Outcome
from replaying.engine import Job
from replaying.problem import Problem

INITIAL = 10


class SmacSearch:
    """SMAC's hyper-parameter facade; its first configurations come from the shared stream."""

    def __init__(self, problem: Problem) -> None:
        logging.disable(logging.WARNING)
        warnings.filterwarnings("ignore", module="smac")
        from smac import HyperparameterOptimizationFacade as Facade
        from smac import Scenario

        self.problem = problem
        self.rows: dict[Any, int] = {}
        self.worst = -np.inf
        self.folder = tempfile.TemporaryDirectory()
        self.space = configuration_space(problem)
        scenario = Scenario(
            self.space,
            output_directory=Path(self.folder.name),
            deterministic=True,
            n_trials=1_000_000,
            instances=[str(fold) for fold in range(problem.n_folds)],
            instance_features={str(fold): [fold] for fold in range(problem.n_folds)},
            seed=problem.seed,
        )
        first = [self._configuration(row) for row in problem.stream_head(INITIAL)]
        self.smac = Facade(
            scenario,
            _never_called,
            overwrite=True,
            logging_level=logging.ERROR,
            initial_design=Facade.get_initial_design(
                scenario, n_configs=0, additional_configs=first
            ),
            intensifier=Facade.get_intensifier(scenario, max_config_calls=problem.n_folds),
        )

    def ask(self, now: float, worker: int) -> Job | None:
        with joblib.parallel_config(backend="sequential"):  # its forest starts a thread per tree
            info = self.smac.ask()
        if info.config not in self.rows:
            row = self._row(info.config)
            if row is None:
                return None
            self.rows[info.config] = row
        return Job(self.rows[info.config], int(info.instance), token=info)

    def tell(self, job: Job, outcome: Outcome, worker: int) -> None:
        from smac.runhistory.dataclasses import TrialValue

        if outcome.ok:
            self.worst = max(self.worst, -outcome.value)
        # An infinite cost breaks its forest, so a failed fit gets the worst cost.
        failed = self.worst if np.isfinite(self.worst) else 1.0
        cost = -outcome.value if outcome.ok else failed
        self.smac.tell(job.token, TrialValue(cost=cost, time=outcome.seconds))

    def recommend(self) -> int | None:
        incumbent = self.smac.intensifier.get_incumbent()
        return None if incumbent is None else self.rows.get(incumbent)

    def _row(self, configuration: Any) -> int | None:
        values = dict(configuration)
        head = self.problem.stream_head(INITIAL)
        if len(self.rows) < INITIAL and values == dict(self._configuration(head[len(self.rows)])):
            return self.problem.take_row(head[len(self.rows)])
        return self.problem.take_configuration(values)

    def _configuration(self, row: int) -> Any:
        from ConfigSpace import Configuration

        values = self.problem.configuration(row)
        for parameter in self.problem.space.parameters:
            if parameter.name in values and parameter.kind == "categorical":
                values[parameter.name] = str(values[parameter.name])
        return Configuration(self.space, values)


def _never_called(config: Any, instance: str, seed: int = 0) -> float:
    raise AssertionError("SMAC is asked and told, it runs nothing")


def configuration_space(problem: Problem) -> Any:
    """Return SMAC's form of a problem's space."""
    import ConfigSpace as cs

    space = cs.ConfigurationSpace(seed=problem.seed)
    added: dict[str, Any] = {}
    for parameter in problem.space.parameters:
        if parameter.kind == "categorical":
            entry = cs.CategoricalHyperparameter(parameter.name, list(map(str, parameter.choices)))
        elif parameter.kind == "int":
            entry = cs.UniformIntegerHyperparameter(
                parameter.name, int(parameter.low), int(parameter.high), log=parameter.log
            )
        else:
            entry = cs.UniformFloatHyperparameter(
                parameter.name, parameter.low, parameter.high, log=parameter.log
            )
        space.add(entry)
        added[parameter.name] = entry
        conditions = [
            cs.InCondition(entry, added[parent], list(map(str, allowed)))
            for parent, allowed in parameter.active_if
        ]
        if conditions:
            space.add(conditions[0] if len(conditions) == 1 else cs.AndConjunction(*conditions))
    return space
