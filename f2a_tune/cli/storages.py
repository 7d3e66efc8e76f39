"""Storages and their studies: a URL and a name in, an open one or one clear line out."""

from __future__ import annotations

from typing import Any

JOURNAL = "journal://"


def opened_storage(url: str) -> Any:
    """An Optuna storage; ``journal://PATH`` or a path that ends in .journal is a journal file."""
    import optuna
    from optuna.storages.journal import JournalFileBackend
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    if url.startswith(JOURNAL) or url.endswith(".journal"):
        path = url.removeprefix(JOURNAL)
        try:
            return optuna.storages.JournalStorage(JournalFileBackend(path))
        except OSError as error:
            raise ValueError(f"--storage {url!r}: {error.strerror or error}.") from error
    if "://" not in url:
        raise ValueError(
            f"--storage {url!r} is no URL: write sqlite:///FILE, FILE.journal, or "
            "postgresql+psycopg://USER@HOST/DATABASE."
        )
    try:
        return optuna.storages.get_storage(url)
    except ImportError as error:
        extra = ' Install it with: pip install "f2a_tune[postgres]".' if "postgres" in url else ""
        raise ImportError(f"--storage {url!r} needs a driver that is missing.{extra}") from error
    except ArgumentError as error:
        raise ValueError(f"--storage {url!r} is no URL of a database: {error}.") from error
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).strip().splitlines()
        raise ValueError(
            f"--storage {url!r} cannot be opened: {reason[0] if reason else error}."
        ) from error


def loaded_study(storage: Any, study_name: str) -> Any:
    """The study of that name."""
    import optuna

    try:
        return optuna.load_study(study_name=study_name, storage=storage)
    except KeyError:
        raise ValueError(f"--study-name {study_name!r} is not in the storage.") from None
