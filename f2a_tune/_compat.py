"""The only module that touches private names of Optuna, scikit-learn and joblib.

Each function says what it stands for; `tests/test_compat.py` has a test of each, so that a new
release which moves one of them fails there, by name, and not in the middle of a search.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial, Trial, TrialState


def storage_of(study: Study) -> BaseStorage:
    """The storage of a study; also of Hyperband's bracket, which shows little else."""
    return study._storage


def shared_storage(storage: BaseStorage) -> BaseStorage:
    """The storage without the cache that Optuna wraps around a database."""
    if type(storage).__name__ != "_CachedStorage":
        return storage
    return cast("BaseStorage", storage._backend)  # type: ignore[attr-defined]


def journal_path(storage: BaseStorage) -> str | None:
    """The file of a journal storage; None if it is something else."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    if not isinstance(storage, JournalStorage):
        return None
    backend = storage._backend
    return backend._file_path if isinstance(backend, JournalFileBackend) else None


@contextmanager
def journal_lock(storage: BaseStorage) -> Iterator[None]:
    """While it is open, nobody else writes to the file of this journal storage."""
    from optuna.storages.journal._file import get_lock_file

    with get_lock_file(storage._backend._lock):  # type: ignore[attr-defined]
        yield


def study_id_of(study: Study) -> int:
    """The number of a study in its storage."""
    return int(study._study_id)


def trial_id_of(trial: Trial | FrozenTrial) -> int:
    """The number of a trial in its storage."""
    return int(trial._trial_id)


def all_trials(study: Study) -> list[FrozenTrial]:
    """All trials by number, whatever bracket they are in; not copies, so not to be changed."""
    return storage_of(study).get_all_trials(study_id_of(study), deepcopy=False)


def study_with_trials(
    study: Study, change: Callable[[list[FrozenTrial]], list[FrozenTrial]]
) -> Study:
    """The same study, whose trials are changed so for a sampler that reads them."""
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
    """The running ones; not copies."""
    from optuna.trial import TrialState

    states = (TrialState.RUNNING,)
    return storage_of(study).get_all_trials(study_id_of(study), deepcopy=False, states=states)


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """Whether a value may come from a distribution."""
    try:
        return bool(distribution._contains(distribution.to_internal_repr(value)))
    except (TypeError, ValueError):  # of another kind altogether
        return False


def is_multi_objective(study: Study) -> bool:
    """Whether a study has several directions; also for Hyperband's bracket."""
    return bool(study._is_multi_objective())


def is_feasible(trial: FrozenTrial) -> bool:
    """Whether a trial keeps its constraints, if it has any; as Optuna's ``best_trial`` sees it."""
    values: list[Any] = []
    for key, value in trial.system_attrs.items():
        if key == "constraints" or key.startswith("constraints:"):
            values += list(value) if isinstance(value, (list, tuple)) else [value]
    return all(isinstance(value, (int, float)) and value <= 0 for value in values)


def has_heartbeat(study: Study) -> bool:
    """Whether the storage knows by itself which trials are alive."""
    from optuna.storages._heartbeat import is_heartbeat_enabled

    return bool(is_heartbeat_enabled(storage_of(study)))


def fixed_params_of(trial: FrozenTrial) -> dict[str, Any]:
    """What an enqueued trial has been told to use."""
    return dict(trial.system_attrs.get("fixed_params", {}))


@contextmanager
def optimize_loop(study: Study) -> Iterator[None]:
    """Make ``study.stop()`` work, and nesting be refused, in the calling thread."""
    if study._thread_local.in_optimize_loop:
        raise RuntimeError("Nested invocation of `Study.optimize` method isn't allowed.")
    study._thread_local.in_optimize_loop = True
    try:
        yield
    finally:
        study._thread_local.in_optimize_loop = False


def forget_stop(study: Study) -> None:
    """Begin as if nobody had called ``study.stop()``."""
    study._stop_flag = False


def stop_requested(study: Study) -> bool:
    """Whether somebody has called ``study.stop()``."""
    return bool(study._stop_flag)


def heartbeat(study: Study, trial: Trial) -> Any:
    """A context in which other workers see that this trial is alive, if the storage can."""
    from optuna.storages._heartbeat import get_heartbeat_thread

    return get_heartbeat_thread(trial_id_of(trial), storage_of(study))


def release_session(study: Study) -> None:
    """Let go of the calling thread's connection to the storage."""
    storage_of(study).remove_session()


def begin_trial(study: Study, template: FrozenTrial) -> Trial:
    """A running trial with all that the template has, in one write to the storage."""
    from optuna.trial import Trial

    return Trial(study, study._storage.create_new_trial(study._study_id, template))


def close_trial(
    study: Study, trial: Trial | FrozenTrial, state: TrialState, value: float | None
) -> None:
    """End a trial in one write, a third of what ``study.tell`` takes; nothing if it has ended."""
    from optuna.exceptions import UpdateFinishedTrialError

    with contextlib.suppress(UpdateFinishedTrialError):
        values = None if value is None else [value]
        study._storage.set_trial_state_values(trial._trial_id, state, values)


def live_trial(study: Study, trial: FrozenTrial) -> Trial:
    """A trial that some process has begun, to go on with it."""
    import optuna

    return optuna.Trial(study, trial_id_of(trial))


def chosen_backend() -> str | None:
    """The joblib backend that the user chose, if its players cannot share memory with us."""
    from joblib.parallel import get_active_backend

    # A preference is followed only where nothing was chosen.
    backend = get_active_backend(prefer="threads")[0]
    return None if getattr(backend, "supports_sharedmem", False) else type(backend).__name__


def base_search_cv() -> Any:
    """The base class of scikit-learn's searches."""
    from sklearn.model_selection._search import BaseSearchCV

    return BaseSearchCV


def fit_context() -> Any:
    """The decorator of a meta-estimator's ``fit``: checks parameters, tears callbacks down."""
    from sklearn.base import _fit_context

    return _fit_context(prefer_skip_nested_validation=False)


def scorers_of(search: Any) -> tuple[Any, Any]:
    """Scorer or scorers of a search, and the name of the metric to refit by."""
    scorers, refit_metric = search._get_scorers()
    return scorers, refit_metric


def scorers_by_name(scorers: Any) -> Any:
    """What a search shows as ``scorer_``: a dict if there are several."""
    return getattr(scorers, "_scorers", scorers)


def checked_params(X: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Fit parameters, those with a value for each row made sliceable."""
    from sklearn.utils.validation import _check_method_params

    found: dict[str, Any] = _check_method_params(X, params=params)
    return found


def routed_for_fit(search: Any, params: dict[str, Any]) -> Any:
    """Which of a search's fit parameters go to estimator, scorer and splitter."""
    return search._get_routed_params_for_fit(params)


def check_refit_for_multimetric(search: Any, scores: Any) -> None:
    """Raise unless ``refit`` names one of several metrics, is a function, or False."""
    search._check_refit_for_multimetric(scores)


def best_index_of(search: Any, refit_metric: Any, results: dict[str, Any]) -> int:
    """The row that ``refit`` chooses."""
    return int(search._select_best_index(search.refit, refit_metric, results))


def callback_root(search: Any, n_subtasks: int) -> Any:
    """The context of scikit-learn's callbacks, from version 1.9 on; None before."""
    begin = getattr(search, "_init_callback_context", None)
    return None if begin is None else begin(max_subtasks=n_subtasks)


def fit_and_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    scorer: Any,
    train: Any,
    test: Any,
    parameters: dict[str, Any] | None,
    fit_params: dict[str, Any],
    score_params: dict[str, Any],
    return_train_score: bool = False,
) -> dict[str, Any]:
    """One fold as scikit-learn's own searches do it: slicing, fitting, scoring; errors raise."""
    from sklearn.model_selection._validation import _fit_and_score

    found: dict[str, Any] = _fit_and_score(
        estimator,
        X,
        y,
        scorer=scorer,
        train=train,
        test=test,
        verbose=0,
        parameters=parameters,
        fit_params=fit_params,
        score_params=score_params,
        return_train_score=return_train_score,
        return_times=True,
        return_n_test_samples=True,
        error_score="raise",
    )
    return found
