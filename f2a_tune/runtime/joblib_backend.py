"""Players in other processes or on other machines, through the active joblib backend.

Each of them gets one small argument with the address of the study, and writes its results there.
Nothing is returned.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import optuna
from joblib import Parallel, delayed
from optuna.storages import InMemoryStorage, JournalStorage

from f2a_tune.study import optuna_private
from f2a_tune.study.storages import journal_storage, quiet_optuna

if TYPE_CHECKING:
    from optuna import Study


def chosen_backend() -> str | None:
    """The joblib backend that the user chose; None if its players share memory with us."""
    from joblib.parallel import get_active_backend

    # A preference counts only where the user has not chosen a backend.
    backend = get_active_backend(prefer="threads")[0]
    return None if getattr(backend, "supports_sharedmem", False) else type(backend).__name__


def check_reachable(what: str, storage: Any, advice: str) -> None:
    """Raise if a storage is in the memory of this process."""
    if isinstance(storage, InMemoryStorage):
        raise ValueError(
            f"{what} is in the memory of this process, which workers of joblib's backend "
            f"{chosen_backend()!r} cannot access. {advice}"
        )


def run_players(play: Callable[[Any], None], invitations: Sequence[Any]) -> None:
    """Call ``play`` with each invitation in a process of the backend, and wait for all."""
    if invitations:
        Parallel(n_jobs=len(invitations))(delayed(play)(one) for one in invitations)


@contextmanager
def temporary_journal() -> Iterator[JournalStorage]:
    """A storage for players on this machine that is deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="f2a_tune-") as folder:
        yield journal_storage(os.path.join(folder, "search.journal"))


def copied_to_memory(study: Study) -> Study:
    """The same study in memory, before its storage is deleted."""
    with quiet_optuna():
        memory = InMemoryStorage()
        optuna.copy_study(
            from_study_name=study.study_name,
            from_storage=optuna_private.storage_of(study),
            to_storage=memory,
        )
        return optuna.load_study(study_name=study.study_name, storage=memory)
