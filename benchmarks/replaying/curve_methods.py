"""Creates methods for a problem with learning curves by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import optuna

from replaying.curve_ablations import CURVE_ABLATIONS
from replaying.curve_problem import CurveProblem
from replaying.curve_racers import CurveRaceMethod
from replaying.engine import Method
from replaying.fidelity_peers import FlamlTrainings, SmacTrainings
from replaying.racers import RaceMethod
from replaying.trainings import OneLook, OptunaTrainings, RandomTrainings


def _pruned(
    problem: CurveProblem, make_pruner: Callable[[int, int], Any], *, random: bool = False
) -> OptunaTrainings:
    efforts = problem.table.efforts
    pruner = make_pruner(round(efforts[0]), round(efforts[-1]))
    return OptunaTrainings(problem, pruner, random=random)


def _halving(first: int, last: int) -> optuna.pruners.BasePruner:
    return optuna.pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=3)


def _hyperband(first: int, last: int) -> optuna.pruners.BasePruner:
    return optuna.pruners.HyperbandPruner(first, last, reduction_factor=3)


CURVE_MAKERS: dict[str, Callable[[CurveProblem], Method]] = {
    "random": RandomTrainings,
    "tpe": OptunaTrainings,
    "tpe-median": partial(_pruned, make_pruner=lambda *_: optuna.pruners.MedianPruner()),
    "tpe-hyperband": partial(_pruned, make_pruner=_hyperband),
    "tpe-asha": partial(_pruned, make_pruner=_halving),
    "tpe-wilcoxon": partial(_pruned, make_pruner=lambda *_: optuna.pruners.WilcoxonPruner()),
    "asha": partial(_pruned, make_pruner=_halving, random=True),
    "one-look": OneLook,
    "cfo": partial(FlamlTrainings, blend=False),
    "blendsearch": partial(FlamlTrainings, blend=True),
    "smac-hyperband": SmacTrainings,
    "race-no-levels": RaceMethod,
    "race": CurveRaceMethod,
}
CURVE_METHODS = tuple(CURVE_MAKERS)


def known_for_curves(name: str) -> bool:
    """Whether a method of this name exists."""
    return name in CURVE_MAKERS or name in CURVE_ABLATIONS


def make_for_curves(name: str, problem: CurveProblem) -> Method:
    """Create a method for one run."""
    return (CURVE_MAKERS | CURVE_ABLATIONS)[name](problem)
