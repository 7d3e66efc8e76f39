"""Players in other processes, or on other machines, through joblib's backend of the moment.

An invitation with the settings, the data and the address of the study goes out to each of them;
nothing comes back but what they have written to the study.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import optuna
from joblib import Parallel, delayed
from optuna.storages import InMemoryStorage, JournalStorage

from f2a_tune import _compat
from f2a_tune.clock import Budget
from f2a_tune.optuna_plugin.storages import journal_storage, opened_storage
from f2a_tune.sklearn_plugin.candidates import CandidateSpace
from f2a_tune.sklearn_plugin.fold import FoldData
from f2a_tune.sklearn_plugin.session import Session, Settings
from f2a_tune.sklearn_plugin.studies import quiet_optuna

if TYPE_CHECKING:
    from optuna import Study


@dataclass(frozen=True)
class Invitation:
    """All that a player elsewhere needs."""

    settings: Settings
    storage: Any
    study_name: str
    space: CandidateSpace
    data: FoldData
    session: str


def play_elsewhere(session: Session, storage: Any) -> None:
    """Run so many players as the session says through joblib, until they have ended."""
    settings = session.settings
    one_each = replace(settings, n_players=1)
    invitation = Invitation(
        one_each,
        storage,
        session.record.study.study_name,
        session.space,
        session.data,
        session.company.name,
    )
    # One of them tries what is to be tried first.
    later = replace(invitation, settings=replace(one_each, start=()))
    invitations = [invitation, *[later] * (settings.n_players - 1)]
    Parallel(n_jobs=settings.n_players)(delayed(accept)(one) for one in invitations)


def accept(invitation: Invitation) -> None:
    """Play, in a process of a joblib backend."""
    with quiet_optuna():
        study = optuna.load_study(
            study_name=invitation.study_name,
            storage=opened_storage(invitation.storage),
            sampler=optuna.samplers.RandomSampler(seed=0),
        )
    Session(
        invitation.settings,
        study,
        invitation.space,
        invitation.data,
        Budget(invitation.settings.time_budget),
        shared=True,
        session=invitation.session,
    ).play()


@dataclass(frozen=True)
class Place:
    """Where players run, and where they write."""

    storage: Any
    elsewhere: bool = False
    temporary: bool = False


@contextmanager
def place_to_play(storage: Any, policy: Any, n_players: int) -> Iterator[Place]:
    """Threads of this process by default, else what `joblib.parallel_config` says."""
    backend = _compat.chosen_backend()
    if n_players == 1 or backend is None:
        yield Place(storage)
        return
    if policy != "race":
        raise ValueError(
            f"policy={policy!r} is for one process: policy='race' can be shared by players of "
            f"joblib's backend {backend!r}."
        )
    check_reachable(storage, backend)
    if storage is not None:
        yield Place(storage, elsewhere=True)
        return
    with journal() as temporary:
        yield Place(temporary, elsewhere=True, temporary=True)


@contextmanager
def journal() -> Iterator[JournalStorage]:
    """A storage for players on this machine, for as long as a search takes."""
    with tempfile.TemporaryDirectory(prefix="f2a_tune-") as folder:
        yield journal_storage(os.path.join(folder, "search.journal"))


def brought_home(study: Study) -> Study:
    """The same study in memory, when its storage is about to go."""
    with quiet_optuna():
        home = InMemoryStorage()
        optuna.copy_study(
            from_study_name=study.study_name,
            from_storage=_compat.storage_of(study),
            to_storage=home,
        )
        return optuna.load_study(study_name=study.study_name, storage=home)


def check_reachable(storage: Any, backend: str) -> None:
    """Players in other processes cannot see this one's memory."""
    if isinstance(storage, InMemoryStorage):
        raise ValueError(
            f"storage={storage!r} is in this process's memory, which players of joblib's backend "
            f"{backend!r} cannot see: give the URL of a database or a JournalStorage, or no "
            "storage at all if they are on this machine."
        )
