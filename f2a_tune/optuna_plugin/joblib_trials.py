"""The players of `optimize` in processes of a joblib backend.

Each of them opens the study by its storage and name, and runs trials for the remaining seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import optuna

from f2a_tune import clock
from f2a_tune.clock import Budget
from f2a_tune.logging import get_verbosity, set_verbosity
from f2a_tune.runtime.joblib_backend import check_reachable, run_players
from f2a_tune.runtime.limits import SHORTEST_JOIN_SECONDS
from f2a_tune.study import optuna_private
from f2a_tune.study.run_records import timestamp

if TYPE_CHECKING:
    from optuna import Study


@dataclass(frozen=True)
class Invitation:
    """What one player in another process is asked for."""

    storage: Any
    study_name: str
    sampler: Any
    pruner: Any
    ends_at: float
    """Unix time."""
    n_trials: int | None
    verbosity: int


def run_elsewhere(
    optimize: Callable[..., None],
    study: Study,
    budget: Budget,
    n_trials: int | None,
    n_players: int,
    options: dict[str, Any],
) -> None:
    """Call ``optimize`` in each process of the backend, with a share of the trials."""
    storage = optuna_private.shared_storage(optuna_private.storage_of(study))
    check_reachable(
        f"study={study.study_name!r}",
        storage,
        "Create the study with storage=, the URL of a database or a JournalStorage.",
    )
    counts: list[int | None] = [None] * n_players
    if n_trials is not None:
        counts = [(n_trials + place) // n_players for place in range(n_players)]
    ends_at = timestamp(clock.wall_clock()) + budget.remaining_seconds
    invitations = [
        Invitation(
            storage,
            study.study_name,
            study.sampler,
            study.pruner,
            ends_at,
            count,
            get_verbosity(),
        )
        for count in counts
        if count != 0
    ]
    run_players(partial(_join, optimize, options), invitations)


def _join(optimize: Callable[..., None], options: dict[str, Any], invitation: Invitation) -> None:
    set_verbosity(invitation.verbosity)
    study = optuna.load_study(
        study_name=invitation.study_name,
        storage=invitation.storage,
        sampler=invitation.sampler,
        pruner=invitation.pruner,
    )
    study.sampler.reseed_rng()
    seconds = invitation.ends_at - timestamp(clock.wall_clock())
    if seconds > SHORTEST_JOIN_SECONDS:
        time_budget = None if math.isinf(seconds) else seconds
        optimize(study, time_budget=time_budget, n_trials=invitation.n_trials, n_jobs=1, **options)
