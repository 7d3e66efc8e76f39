"""The study that a search is kept in: opened or made, and refused if it belongs to other data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import joblib
import optuna
from optuna.exceptions import DuplicatedStudyError

from f2a_tune import __version__
from f2a_tune.optuna_plugin.journal import mend_journal
from f2a_tune.optuna_plugin.storages import loaded_study, opened_storage
from f2a_tune.sklearn_plugin.candidates import CandidateSpace
from f2a_tune.sklearn_plugin.fold import FoldData

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

FINGERPRINT = "f2a:fingerprint"
VERSION = "f2a:version"
# Raised when what a search writes can no longer be read by what was written before it.
FORMAT = 1


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Without Optuna's line about a new study."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def storage_with(storage: Any, study_name: str) -> Any:
    """The storage, opened, if it has a search of that name that this library has begun."""
    opened = opened_storage(storage)
    mend_journal(opened)
    with quiet_optuna():
        study = loaded_study(opened, study_name)
    _check_made_here(study)
    return opened


def _check_made_here(study: optuna.Study) -> None:
    """Whether a study is a search that this version can read."""
    found = study.user_attrs.get(FINGERPRINT)
    if not isinstance(found, Mapping):
        raise ValueError(
            f"study_name={study.study_name!r} is no search of f2a_tune: it was made by something "
            "else. Give another name."
        )
    if found.get("format") != FORMAT:
        version = study.user_attrs.get(VERSION, "of an unknown version")
        raise ValueError(
            f"study_name={study.study_name!r} was written by f2a_tune {version}, which writes "
            f"searches differently (format {found.get('format')}, here {FORMAT}): go on with that "
            "version, or give another name."
        )


def _scoring_text(scorer: Any) -> str:
    """What is measured, the same in any process."""
    if isinstance(scorer, Mapping):
        return ", ".join(f"{name}: {_scoring_text(one)}" for name, one in sorted(scorer.items()))
    inner = getattr(scorer, "_scorers", None)
    if isinstance(inner, Mapping):
        return _scoring_text(inner)
    name = getattr(scorer, "__qualname__", None)
    return re.sub(r" at 0x[0-9a-f]+", "", str(name or repr(scorer)))


def open_study(
    storage: Any,
    study_name: str,
    resume: bool,
    sampler: BaseSampler,
    data: FoldData,
    space: CandidateSpace,
) -> optuna.Study:
    """Make the study, or go on with it if ``resume``; another search under its name is refused."""
    wanted = {
        "format": FORMAT,
        "data": str(joblib.hash((data.X, data.y))),
        "splits": str(joblib.hash(list(data.splits))),
        "space": space.fingerprint,
        "scoring": _scoring_text(data.scorer),
    }
    opened = opened_storage(storage)
    mend_journal(opened)
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
                f"study_name={study_name!r} is in the storage already: give resume=True (or "
                "--resume) to go on with it, or another name."
            ) from None
    if FINGERPRINT not in study.user_attrs and not study.trials:
        study.set_user_attr(VERSION, __version__)
        study.set_user_attr(FINGERPRINT, wanted)
        return study
    _check_made_here(study)
    known = study.user_attrs[FINGERPRINT]
    differing = [part for part in wanted if known.get(part) != wanted[part]]
    if differing:
        raise ValueError(
            f"study_name={study_name!r} is a search with other {' and '.join(differing)}: "
            "resume it with what it was begun with, or give another name."
        )
    return study
