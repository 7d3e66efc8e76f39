"""Opens storages and loads studies, with one clear error line if that fails."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from f2a_tune.logging import get_logger
from f2a_tune.study.limits import JOURNAL_LOCK_SECONDS

_logger = get_logger("f2a_tune.storage")

JOURNAL = "journal://"


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Suppress Optuna's log line about a new study."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def existing_storage(storage: str, argument: str) -> Any:
    """Open a storage that must exist already; nothing is created."""
    path = storage.removeprefix(JOURNAL) if storage.startswith(JOURNAL) else storage
    if storage.startswith("sqlite:///"):
        path = storage.removeprefix("sqlite:///").partition("?")[0]
    is_file = storage.startswith(("sqlite:///", JOURNAL)) or "://" not in storage
    if is_file and path not in ("", ":memory:") and not os.path.exists(path):
        raise ValueError(f"{argument}{storage!r}: there is no file {path!r}.")
    return opened_storage(storage, argument)


def opened_storage(storage: Any, argument: str = "storage=") -> Any:
    """Open an Optuna storage by its URL; ``argument`` is its name in error messages.

    ``journal://PATH``, or a path that ends in .journal, is a journal file. An Optuna storage is
    returned as it is.
    """
    if isinstance(storage, BaseStorage):
        return storage
    what = argument + without_passwords(repr(storage))
    if not isinstance(storage, str):
        raise TypeError(f"{what} must be the URL of a storage or an Optuna storage.")
    if storage.startswith(JOURNAL) or (storage.endswith(".journal") and "://" not in storage):
        try:
            return journal_storage(storage.removeprefix(JOURNAL))
        except OSError as error:
            raise ValueError(f"{what} cannot be opened: {error.strerror or error}.") from error
    if "://" not in storage:
        raise ValueError(
            f"{what} is not a URL. Use sqlite:///FILE, FILE.journal, or "
            "postgresql+psycopg://USER@HOST/DATABASE."
        )
    return _database(storage, what)


def without_passwords(text: str) -> str:
    """Replace passwords of URLs in a text.

    Examples
    --------
    >>> without_passwords("--storage postgresql://me:secret@host/db")
    '--storage postgresql://me:***@host/db'
    >>> without_passwords("postgresql://host/db?user=me&password=secret")
    'postgresql://host/db?user=me&password=***'
    """
    text = re.sub(r"(://[^:/@\s]*):[^/\s]*@", r"\1:***@", text)
    return re.sub(r"([?&]\w*pass\w*=)[^&\s'\"]*", r"\1***", text)


def journal_storage(path: str) -> optuna.storages.JournalStorage:
    """Open a journal file whose lock expires soon after its holder was killed.

    It is Optuna's default lock, so programs that use Optuna directly can share the file.
    """
    whole = os.path.abspath(path)  # the lock is a symbolic link to it
    return optuna.storages.JournalStorage(JournalFileBackend(whole, lock_obj=_Lock(whole)))


class _Lock(JournalFileSymlinkLock):
    """A lock that another process may have taken over if this one was suspended."""

    def __init__(self, path: str) -> None:
        super().__init__(path, grace_period=JOURNAL_LOCK_SECONDS)

    def release(self) -> None:
        """Remove the link, if it is still there."""
        try:
            super().release()
        except RuntimeError:
            _logger.warning(
                "Another process took over the lock of a journal file. The disk may be slow."
            )


def _database(url: str, what: str) -> Any:
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    try:
        return optuna.storages.get_storage(url)
    except ImportError as error:
        extra = ' Install it with: pip install "f2a_tune[postgres]".' if "postgres" in url else ""
        raise ImportError(f"{what} needs a driver that is missing.{extra}") from error
    except ArgumentError as error:
        raise ValueError(f"{what} is not the URL of a database: {error}.") from error
    except (SQLAlchemyError, RuntimeError) as error:  # the latter: tables of another Optuna
        reason = str(getattr(error, "orig", error)).strip().splitlines()
        raise ValueError(f"{what} cannot be opened: {reason[0] if reason else error}.") from error


def loaded_study(storage: Any, study_name: str, argument: str = "study_name=") -> Any:
    """Load a study by name; ``argument`` is its name in error messages."""
    try:
        return optuna.load_study(study_name=study_name, storage=storage)
    except KeyError:
        raise ValueError(
            f"{argument}{study_name!r} is not in the storage. Start the search first, or check "
            "the name."
        ) from None
