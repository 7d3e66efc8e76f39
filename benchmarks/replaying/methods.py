"""Creates methods for a problem by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import optuna

from replaying.ablations import Unranked, unraced, with_tpe
from replaying.engine import Method
from replaying.flaml_peers import FlamlSearch
from replaying.halving import Halving
from replaying.problem import Problem
from replaying.racers import RaceMethod
from replaying.ruled import Ruled
from replaying.sampler import FoldSampler, SamplerSearch
from replaying.smac_peer import SmacSearch
from replaying.whole import OptunaSearch, RandomSearch

RULE = "+rule"


def _pruned(problem: Problem, make_pruner: Callable[[int], Any]) -> OptunaSearch:
    return OptunaSearch(problem, make_pruner(problem.n_folds))


MAKERS: dict[str, Callable[[Problem], Method]] = {
    "random": RandomSearch,
    "random-race": partial(RaceMethod, model=False, use_cutoffs=False),
    "tpe": OptunaSearch,
    "tpe-median": partial(_pruned, make_pruner=lambda _: optuna.pruners.MedianPruner()),
    "tpe-wilcoxon": partial(_pruned, make_pruner=lambda _: optuna.pruners.WilcoxonPruner()),
    "tpe-hyperband": partial(
        _pruned, make_pruner=lambda k: optuna.pruners.HyperbandPruner(1, k, reduction_factor=3)
    ),
    "cfo": partial(FlamlSearch, blend=False),
    "blendsearch": partial(FlamlSearch, blend=True),
    "smac": SmacSearch,
    "halving": Halving,
    "wait-ucb": partial(RaceMethod, model=False, policy="wait-ucb"),
    "race": RaceMethod,
}
# The race without one of its parts; not included in "all".
ABLATIONS: dict[str, Callable[[Problem], Method]] = {
    "race-no-cutoff": partial(RaceMethod, use_cutoffs=False),
    "race-no-racing": unraced,
    "race-no-ranks": Unranked,
    "race-tpe": with_tpe,
    "race-random": partial(RaceMethod, model=False),
    # Our sampler in a real study, over TPE.
    "sampler": SamplerSearch,
    "sampler-folds": FoldSampler,
}
METHODS = tuple(MAKERS)


def known(name: str) -> bool:
    """Whether a method of this name exists."""
    return name.removesuffix(RULE) in MAKERS | ABLATIONS


def make(name: str, problem: Problem) -> Method:
    """Create a method for one run."""
    method = (MAKERS | ABLATIONS)[name.removesuffix(RULE)](problem)
    return Ruled(method, problem) if name.endswith(RULE) else method
