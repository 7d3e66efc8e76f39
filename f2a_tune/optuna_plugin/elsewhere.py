"""`optimize` in other processes, or on other machines, through joblib's backend of the moment.

Each player there opens the study by its storage and name and runs trials for the seconds that are
left; the study is all they share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import optuna
from joblib import Parallel, delayed
from optuna.storages import InMemoryStorage

from f2a_tune import _compat, clock
from f2a_tune.clock import Budget
from f2a_tune.logging import get_verbosity, set_verbosity
from f2a_tune.optuna_plugin.runs import moment

if TYPE_CHECKING:
    from optuna import Study

# What a player that starts late does not begin any more.
SHORTEST_SECONDS = 0.1


@dataclass(frozen=True)
class Share:
    """What one player elsewhere is asked for."""

    storage: Any
    study_name: str
    sampler: Any
    pruner: Any
    ends_at: float
    """Seconds since 1970."""
    n_trials: int | None
    verbosity: int


def shares(study: Study, budget: Budget, n_trials: int | None, n_players: int) -> list[Share]:
    """One for every player; the trials are divided among them."""
    storage = _compat.storage_of(study)
    if isinstance(_compat.shared_storage(storage), InMemoryStorage):
        raise ValueError(
            f"study={study.study_name!r} is in this process's memory, which players of joblib's "
            f"backend {_compat.chosen_backend()!r} cannot see: create it with storage=, the URL "
            "of a database or a JournalStorage."
        )
    counts: list[int | None] = [None] * n_players
    if n_trials is not None:
        counts = [(n_trials + place) // n_players for place in range(n_players)]
    ends_at = moment(clock.wall_clock()) + budget.remaining_seconds
    return [
        Share(
            _compat.shared_storage(storage),
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


def play_elsewhere(play: Callable[..., None], given: list[Share], **options: Any) -> None:
    """Call ``play`` with the study and ``options`` for every share, and wait for all."""
    if not given:
        return
    Parallel(n_jobs=len(given))(delayed(_accept)(play, one, options) for one in given)


def _accept(play: Callable[..., None], share: Share, options: dict[str, Any]) -> None:
    set_verbosity(share.verbosity)
    study = optuna.load_study(
        study_name=share.study_name,
        storage=share.storage,
        sampler=share.sampler,
        pruner=share.pruner,
    )
    study.sampler.reseed_rng()
    seconds = share.ends_at - moment(clock.wall_clock())
    if seconds > SHORTEST_SECONDS:
        time_budget = None if math.isinf(seconds) else seconds
        play(study, time_budget=time_budget, n_trials=share.n_trials, n_jobs=1, **options)
