"""The settings of a search, checked, and the race and proposals that follow from them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from optuna.samplers import BaseSampler

from f2a_tune.bandit import Policy
from f2a_tune.racing import (
    CurveProposals,
    ModelProposals,
    Proposals,
    Race,
    RandomProposals,
    StartProposals,
)
from f2a_tune.racing.space import Floats
from f2a_tune.runtime.event import Event
from f2a_tune.sklearn_plugin.fold import PRELOAD
from f2a_tune.sklearn_plugin.growth_plan import GrowthPlan
from f2a_tune.sklearn_plugin.optuna_proposals import OptunaProposals
from f2a_tune.sklearn_plugin.search_space import SearchSpace

# No cutoff is shorter: a busy machine delays a quick fit by this much, and stopping it saves less.
SHORTEST_CUTOFF_SECONDS = 0.1


@dataclass(frozen=True)
class Settings:
    """What a search was asked for, checked."""

    n_folds: int
    time_budget: float
    n_players: int
    policy: str | Policy
    timeouts: Any
    proposals: str | BaseSampler | None
    seed: int
    metric: str | None
    """Which of several scores decides."""
    refit: bool
    raise_errors: bool
    most_configurations: float
    memory: int | None
    callbacks: tuple[Callable[[Event], bool], ...]
    start: tuple[Floats, ...] = ()
    """Points to try first; the first of them is the baseline."""
    fallback: Floats | None = None
    """The point to try if nothing else finishes."""
    growth: GrowthPlan | None = None
    """How fits grow; None if all fits are whole."""
    preload: tuple[str, ...] = PRELOAD
    """Modules that workers import before the first fit."""

    def race(self) -> Race:
        """A new race."""
        return Race(
            self.n_folds,
            self.time_budget,
            policy=self.policy,
            timeouts=self.timeouts,
            n_workers=max(self.n_players, 1),
            seed=self.seed,
            shortest_cutoff_seconds=SHORTEST_CUTOFF_SECONDS,
            efforts=None if self.growth is None else self.growth.ladder.shares,
            baseline_level=None if self.growth is None else self.growth.own_level,
        )

    def new_proposals(self, space: SearchSpace, seed: int) -> Proposals | CurveProposals:
        """The source of new configurations: first the points to start with."""
        if self.growth is not None:
            random: Proposals = RandomProposals(space.space, seed)
            if self.start:
                random = StartProposals(self.start, random)
            return CurveProposals(space.space, self.time_budget, seed, random, space.grows)
        later = self._later_proposals(space, seed)
        return StartProposals(self.start, later) if self.start else later

    def _later_proposals(self, space: SearchSpace, seed: int) -> Proposals:
        if isinstance(self.proposals, BaseSampler):
            sampler = copy.deepcopy(self.proposals)
            if seed != self.seed:
                sampler.reseed_rng()
            return OptunaProposals(space, sampler, seed)
        if self.proposals == "random":
            return RandomProposals(space.space, seed)
        return ModelProposals(space.space, seed)
