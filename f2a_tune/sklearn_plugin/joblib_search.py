"""The players of a search in processes of a joblib backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import optuna

from f2a_tune.clock import Budget
from f2a_tune.runtime.joblib_backend import (
    check_reachable,
    chosen_backend,
    run_players,
    temporary_journal,
)
from f2a_tune.sklearn_plugin.fold import FoldData
from f2a_tune.sklearn_plugin.search_run import SearchRun
from f2a_tune.sklearn_plugin.search_space import SearchSpace
from f2a_tune.sklearn_plugin.settings import Settings
from f2a_tune.study.storages import opened_storage, quiet_optuna


@dataclass(frozen=True)
class Invitation:
    """Everything that a player in another process needs."""

    settings: Settings
    storage: Any
    study_name: str
    space: SearchSpace
    data: FoldData
    session: str


def run_elsewhere(run: SearchRun, storage: Any) -> None:
    """Run the players of a search through joblib, until they have ended."""
    settings = run.settings
    one_each = replace(settings, n_players=1)
    invitation = Invitation(
        one_each, storage, run.state.store.study.study_name, run.space, run.data, run.name
    )
    # Only one of them tries the points to start with.
    later = replace(invitation, settings=replace(one_each, start=()))
    run_players(_join, [invitation, *[later] * (settings.n_players - 1)])


def _join(invitation: Invitation) -> None:
    """Work on the search, in a process of the backend."""
    with quiet_optuna():
        study = optuna.load_study(
            study_name=invitation.study_name,
            storage=opened_storage(invitation.storage),
            sampler=optuna.samplers.RandomSampler(seed=0),
        )
    with SearchRun(
        invitation.settings,
        study,
        invitation.space,
        invitation.data,
        Budget(invitation.settings.time_budget),
        shared=True,
        session=invitation.session,
    ) as run:
        run.run()


@dataclass(frozen=True)
class Backend:
    """Where the players of a search run, and where they write."""

    storage: Any
    is_elsewhere: bool = False
    is_temporary: bool = False


@contextmanager
def search_backend(storage: Any, policy: Any, n_players: int) -> Iterator[Backend]:
    """Threads of this process by default, else what `joblib.parallel_config` says."""
    backend = chosen_backend()
    if n_players == 1 or backend is None:
        yield Backend(storage)
        return
    if policy != "race":
        raise ValueError(
            f"policy={policy!r} works in one process only. Use policy='race' with joblib's "
            f"backend {backend!r}."
        )
    check_reachable(
        f"storage={storage!r}",
        storage,
        "Pass the URL of a database or a JournalStorage, or no storage at all if the workers are "
        "on this machine.",
    )
    if storage is not None:
        yield Backend(storage, is_elsewhere=True)
        return
    with temporary_journal() as temporary:
        yield Backend(temporary, is_elsewhere=True, is_temporary=True)
