"""The only module that uses private names of Optuna.

Each function documents what it replaces, and `tests/test_private_names.py` tests each of them. If
a new release of Optuna moves a name, that test fails and names it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial, Trial, TrialState


def storage_of(study: Study) -> BaseStorage:
    """Return the storage of a study, or of a Hyperband bracket, which hides most of the study."""
    return study._storage


def shared_storage(storage: BaseStorage) -> BaseStorage:
    """Return the storage without the cache that Optuna wraps around a database."""
    if type(storage).__name__ != "_CachedStorage":
        return storage
    return cast("BaseStorage", storage._backend)  # type: ignore[attr-defined]


def journal_path(storage: BaseStorage) -> str | None:
    """Return the file of a journal storage, or None for other storages."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    if not isinstance(storage, JournalStorage):
        return None
    backend = storage._backend
    return backend._file_path if isinstance(backend, JournalFileBackend) else None


@contextmanager
def journal_lock(storage: BaseStorage) -> Iterator[None]:
    """Hold the lock of a journal file, so that no other process writes to it."""
    from optuna.storages.journal._file import get_lock_file

    with get_lock_file(storage._backend._lock):  # type: ignore[attr-defined]
        yield


def study_id_of(study: Study) -> int:
    """Return the number of a study in its storage."""
    return int(study._study_id)


def trial_id_of(trial: Trial | FrozenTrial) -> int:
    """Return the number of a trial in its storage."""
    return int(trial._trial_id)


def all_trials(study: Study) -> list[FrozenTrial]:
    """Return all trials of all brackets by number. They are not copies: do not modify them."""
    return storage_of(study).get_all_trials(study_id_of(study), deepcopy=False)


def study_with_trials(
    study: Study, change: Callable[[list[FrozenTrial]], list[FrozenTrial]]
) -> Study:
    """Return a view of the study whose trials are passed through ``change`` when read."""
    return cast("Study", _StudyWithTrials(study, change))


class _StudyWithTrials:
    def __init__(
        self, study: Study, change: Callable[[list[FrozenTrial]], list[FrozenTrial]]
    ) -> None:
        self._study, self._change = study, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)

    @property
    def trials(self) -> list[FrozenTrial]:
        return self.get_trials()

    def get_trials(self, deepcopy: bool = True, states: Any = None) -> list[FrozenTrial]:
        return self._get_trials(deepcopy, states)

    def _get_trials(
        self, deepcopy: bool = True, states: Any = None, use_cache: bool = False
    ) -> list[FrozenTrial]:
        trials = self._change(self._study._get_trials(deepcopy=False, use_cache=use_cache))
        found = [one for one in trials if states is None or one.state in states]
        return copy.deepcopy(found) if deepcopy else found


def open_trials(study: Study) -> list[FrozenTrial]:
    """Return the running trials. They are not copies: do not modify them."""
    from optuna.trial import TrialState

    states = (TrialState.RUNNING,)
    return storage_of(study).get_all_trials(study_id_of(study), deepcopy=False, states=states)


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """Whether a distribution contains a value."""
    try:
        return bool(distribution._contains(distribution.to_internal_repr(value)))
    except (TypeError, ValueError):  # a value of another type
        return False


def is_multi_objective(study: Study) -> bool:
    """Whether a study, or a Hyperband bracket, has several objectives."""
    return bool(study._is_multi_objective())


def check_one_objective(sampler: BaseSampler, study: Study) -> None:
    """Raise the error of Optuna's own samplers if a study has several objectives."""
    sampler._raise_error_if_multi_objective(study)


def is_feasible(trial: FrozenTrial) -> bool:
    """Whether a trial satisfies all of its constraints, as in Optuna's ``best_trial``."""
    values: list[Any] = []
    for key, value in trial.system_attrs.items():
        if key == "constraints" or key.startswith("constraints:"):
            values += list(value) if isinstance(value, (list, tuple)) else [value]
    return all(isinstance(value, (int, float)) and value <= 0 for value in values)


def has_heartbeat(study: Study) -> bool:
    """Whether the storage itself tracks which trials are alive."""
    from optuna.storages._heartbeat import is_heartbeat_enabled

    return bool(is_heartbeat_enabled(storage_of(study)))


def stale_trial_callback(study: Study) -> Callable[[Study, FrozenTrial], None] | None:
    """Return the storage's callback for trials of crashed workers, or None."""
    storage = storage_of(study)
    for name in ("get_heartbeat_stale_trial_callback", "get_failed_trial_callback"):
        if hasattr(storage, name):  # the second is the name before Optuna 4.9
            found: Callable[[Study, FrozenTrial], None] | None = getattr(storage, name)()
            return found
    return None


def fixed_params_of(trial: FrozenTrial) -> dict[str, Any]:
    """Return the fixed parameters of an enqueued trial."""
    return dict(trial.system_attrs.get("fixed_params", {}))


@contextmanager
def optimize_loop(study: Study) -> Iterator[None]:
    """Allow ``study.stop()`` and refuse nested loops in the calling thread."""
    if study._thread_local.in_optimize_loop:
        raise RuntimeError("Nested invocation of `Study.optimize` method isn't allowed.")
    study._thread_local.in_optimize_loop = True
    try:
        yield
    finally:
        study._thread_local.in_optimize_loop = False


def forget_stop(study: Study) -> None:
    """Reset an earlier call of ``study.stop()``."""
    study._stop_flag = False


def request_stop(study: Study) -> None:
    """Stop a study like ``study.stop()``, but from any thread."""
    study._stop_flag = True


def set_system_attr(trial: Trial, key: str, value: Any) -> None:
    """Set a system attribute of a trial, as Optuna's own helpers do."""
    storage_of(trial.study).set_trial_system_attr(trial_id_of(trial), key, value)


def stop_requested(study: Study) -> bool:
    """Whether ``study.stop()`` has been called."""
    return bool(study._stop_flag)


def heartbeat(study: Study, trial: Trial) -> Any:
    """Return a context that shows others that a trial is alive, if the storage supports it."""
    from optuna.storages._heartbeat import get_heartbeat_thread

    return get_heartbeat_thread(trial_id_of(trial), storage_of(study))


def release_session(study: Study) -> None:
    """Release the calling thread's connection to the storage."""
    storage_of(study).remove_session()


def begin_trial(study: Study, template: FrozenTrial) -> Trial:
    """Create a running trial from a template with a single write to the storage."""
    from optuna.trial import Trial

    return Trial(study, study._storage.create_new_trial(study._study_id, template))


def close_trial(
    study: Study, trial: Trial | FrozenTrial, state: TrialState, value: float | None
) -> None:
    """Close an open trial with a single write, in a third of the time of ``study.tell``."""
    from optuna.exceptions import UpdateFinishedTrialError

    with suppress(UpdateFinishedTrialError):
        values = None if value is None else [value]
        study._storage.set_trial_state_values(trial._trial_id, state, values)
