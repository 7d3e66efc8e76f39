"""The study that a search is kept in: opened or made, and refused if it belongs to other data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import joblib
import optuna
from optuna.exceptions import DuplicatedStudyError
from optuna.storages import BaseStorage

from f2a_tune.optuna_plugin.journal import mend_journal
from f2a_tune.sklearn_plugin.candidates import CandidateSpace
from f2a_tune.sklearn_plugin.fold import FoldData

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

FINGERPRINT = "f2a:fingerprint"


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Without Optuna's line about a new study."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def check_there(storage: Any, study_name: str) -> None:
    """Whether there is a search of that name, begun by this library."""
    if isinstance(storage, BaseStorage):
        mend_journal(storage)
    with quiet_optuna():
        try:
            study = optuna.load_study(study_name=study_name, storage=storage)
        except KeyError:
            raise ValueError(
                f"study_name={study_name!r} is not in the storage: begin the search first, or "
                "check the name."
            ) from None
    if FINGERPRINT not in study.user_attrs:
        raise ValueError(
            f"study_name={study_name!r} is no search of f2a_tune: it was made by something else."
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
        "data": str(joblib.hash((data.X, data.y))),
        "splits": str(joblib.hash(list(data.splits))),
        "space": space.fingerprint,
        "scoring": _scoring_text(data.scorer),
    }
    if isinstance(storage, BaseStorage):
        mend_journal(storage)
    with quiet_optuna():
        try:
            study = optuna.create_study(
                storage=storage,
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
    found = study.user_attrs.get(FINGERPRINT)
    if found is None and not study.trials:
        study.set_user_attr(FINGERPRINT, wanted)
    elif found != wanted:
        known = found if isinstance(found, dict) else {}
        differing = [part for part in wanted if known.get(part) != wanted[part]]
        raise ValueError(
            f"study_name={study_name!r} is a search with other {' and '.join(differing)}: "
            "resume it with what it was begun with, or give another name."
        )
    return study
