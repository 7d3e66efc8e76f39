"""Opens the study of a search, or creates it, and checks that it belongs to the same data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import optuna
from optuna.exceptions import DuplicatedStudyError

from f2a_tune import __version__
from f2a_tune.study.attributes import FINGERPRINT, VERSION
from f2a_tune.study.journal import repair_journal
from f2a_tune.study.storages import loaded_study, opened_storage, quiet_optuna, without_passwords

if TYPE_CHECKING:
    from collections.abc import Callable

    from optuna.samplers import BaseSampler

# Increased when a search writes something that an earlier version cannot read.
FORMAT = 1


def storage_with(storage: Any, study_name: str) -> Any:
    """Open a storage that already contains a search of that name."""
    opened = opened_storage(storage)
    repair_journal(opened)
    with quiet_optuna():
        study = loaded_study(opened, study_name)
    _check_is_search(study)
    return opened


def stored_fingerprint(storage: Any, study_name: str) -> Mapping[str, Any]:
    """Return the fingerprint of a search in a storage; empty if there is no such search."""
    opened = opened_storage(storage)
    repair_journal(opened)
    with quiet_optuna():
        try:
            study = optuna.load_study(study_name=study_name, storage=opened)
        except KeyError:
            return {}
    found = study.user_attrs.get(FINGERPRINT)
    return found if isinstance(found, Mapping) else {}


def _check_is_search(study: optuna.Study) -> None:
    """Check that a study is a search that this version can read."""
    found = study.user_attrs.get(FINGERPRINT)
    if not isinstance(found, Mapping):
        raise ValueError(
            f"study_name={study.study_name!r} was not created by F2ASearchCV. Choose another "
            "study_name."
        )
    if found.get("format") != FORMAT:
        version = study.user_attrs.get(VERSION, "of an unknown version")
        raise ValueError(
            f"study_name={study.study_name!r} was written by f2a_tune {version} in format "
            f"{found.get('format')}, and this version reads format {FORMAT}. Continue with that "
            "version, or choose another study_name."
        )


def search_study(
    storage: Any,
    study_name: str | None,
    *,
    resume: bool,
    temporary: Any,
    fingerprint: Callable[[], dict[str, str]],
) -> optuna.Study:
    """The study of a search: a new one, or the one to resume.

    Parameters
    ----------
    storage
        What the user passed; None keeps the study in memory, or in ``temporary``.
    temporary
        The storage to use if the user passed none.
    fingerprint
        Hashes of what a resumed search must have in common; only called if there is a storage.
    """
    sampler = optuna.samplers.RandomSampler(seed=0)  # unused: the race proposes configurations
    if storage is None:
        if resume:
            raise ValueError("resume=True also requires storage= and study_name=.")
        with quiet_optuna():
            return optuna.create_study(
                direction="maximize", sampler=sampler, storage=temporary, study_name=study_name
            )
    if study_name is None:
        raise ValueError(f"storage={without_passwords(repr(storage))} also requires study_name=.")
    return _open_study(storage, study_name, resume, sampler, fingerprint())


def _open_study(
    storage: Any, study_name: str, resume: bool, sampler: BaseSampler, fingerprint: dict[str, str]
) -> optuna.Study:
    wanted: dict[str, Any] = {"format": FORMAT, **fingerprint}
    opened = opened_storage(storage)
    repair_journal(opened)
    with quiet_optuna():
        try:
            study = optuna.create_study(
                storage=opened,
                study_name=study_name,
                direction="maximize",
                sampler=sampler,
                load_if_exists=resume,
            )
        except DuplicatedStudyError:
            raise ValueError(
                f"study_name={study_name!r} already exists in the storage. Pass resume=True (or "
                "--resume) to continue it, or choose another study_name."
            ) from None
    if FINGERPRINT not in study.user_attrs and not study.trials:
        study.set_user_attr(VERSION, __version__)
        study.set_user_attr(FINGERPRINT, wanted)
        return study
    _check_is_search(study)
    known = study.user_attrs[FINGERPRINT]
    differing = [part for part in wanted if known.get(part) != wanted[part]]
    if differing:
        parts = " and ".join(differing)
        raise ValueError(
            f"study_name={study_name!r} was created with different {parts}. Pass the original "
            f"{parts}, or choose another study_name."
        )
    return study
