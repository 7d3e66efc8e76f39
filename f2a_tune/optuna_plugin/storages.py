"""Storages and their studies: a URL and a name in, an open one or one clear line out."""

from __future__ import annotations

import os
import re
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from f2a_tune.logging import get_logger

_logger = get_logger("f2a_tune.storage")

JOURNAL = "journal://"
# It is held for milliseconds; whoever has it for so long is dead. Optuna's own patience is 30.
LOCK_GRACE_SECONDS = 5


def opened_storage(storage: Any, argument: str = "storage=") -> Any:
    """An Optuna storage, of itself or its URL; ``argument`` is what the user calls it.

    ``journal://PATH``, or a path that ends in .journal, is a journal file.
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
            f"{what} is no URL: write sqlite:///FILE, FILE.journal, or "
            "postgresql+psycopg://USER@HOST/DATABASE."
        )
    return _database(storage, what)


def without_passwords(text: str) -> str:
    """A text that may be shown to others, for one that may have URLs in it.

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
    """A journal file; a process that was killed while it wrote does not hold up others for long.

    The lock is the one that Optuna uses by default, so both may be mixed.
    """
    whole = os.path.abspath(path)  # the lock is a link to it, from beside it
    return optuna.storages.JournalStorage(JournalFileBackend(whole, lock_obj=_Lock(whole)))


class _Lock(JournalFileSymlinkLock):
    """Who stood still for too long loses it to another, and has written all the same."""

    def __init__(self, path: str) -> None:
        super().__init__(path, grace_period=LOCK_GRACE_SECONDS)

    def release(self) -> None:
        """Remove the link, if it is still there."""
        try:
            super().release()
        except RuntimeError:
            _logger.warning("the lock of a journal file was taken away; is the disk so slow?")


def _database(url: str, what: str) -> Any:
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    try:
        return optuna.storages.get_storage(url)
    except ImportError as error:
        extra = ' Install it with: pip install "f2a_tune[postgres]".' if "postgres" in url else ""
        raise ImportError(f"{what} needs a driver that is missing.{extra}") from error
    except ArgumentError as error:
        raise ValueError(f"{what} is no URL of a database: {error}.") from error
    except (SQLAlchemyError, RuntimeError) as error:  # the latter: tables of another Optuna
        reason = str(getattr(error, "orig", error)).strip().splitlines()
        raise ValueError(f"{what} cannot be opened: {reason[0] if reason else error}.") from error


def loaded_study(storage: Any, study_name: str, argument: str = "study_name=") -> Any:
    """The study of that name; ``argument`` is what the user gave it as."""
    try:
        return optuna.load_study(study_name=study_name, storage=storage)
    except KeyError:
        raise ValueError(
            f"{argument}{study_name!r} is not in the storage: begin it first, or check the name."
        ) from None
