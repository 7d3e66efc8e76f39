"""The number of threads inside estimators, when several workers share the cores.

BLAS and OpenMP read their share from the environment. Boosting libraries do not: with their
defaults, each worker would start as many threads as there are cores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from f2a_tune.logging import get_logger

_logger = get_logger("f2a_tune.search")

# The parameter that sets the number of threads, by the package of the estimator.
THREAD_PARAMETERS = {"lightgbm": "n_jobs", "xgboost": "n_jobs", "catboost": "thread_count"}
# Other names of the same parameter. If the user has set one of them, it is not changed.
ALIASES = ("n_jobs", "thread_count", "num_threads", "nthread", "num_thread", "nthreads")


def thread_params(estimator: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters that limit boosting models to this worker's share of the cores.

    Models whose number of threads the user has set are left out.
    """
    share = os.environ.get("OMP_NUM_THREADS", "")
    if not share.isdecimal() or int(share) >= (os.cpu_count() or 1):
        return {}
    found = {}
    for prefix, model in _models(estimator, params):
        name = THREAD_PARAMETERS.get(type(model).__module__.partition(".")[0])
        if name is not None and not _is_set(model, prefix, params):
            found[f"{prefix}{name}"] = int(share)
    return found


def mention_threads(estimator: Any, n_players: int) -> None:
    """Log a warning if parallel fits would each start several threads."""
    decided = decided_threads(estimator)
    if n_players > 1 and decided:
        _logger.warning(
            "%d fits run in parallel, and each starts the threads of %s. Set n_jobs=1 in the "
            "estimator, which is usually faster.",
            n_players,
            ", ".join(decided),
        )


def decided_threads(estimator: Any) -> list[str]:
    """Return parameters with which the user requests more than one thread per fit."""
    found = []
    for prefix, model in _models(estimator, {}):
        for name, value in model.get_params(deep=False).items():
            if name in ALIASES and isinstance(value, int) and value not in (0, 1):
                found.append(f"{prefix}{name}={value}")
    return found


def _models(estimator: Any, params: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the estimator and its nested estimators, with the prefix of their parameters."""
    found = [("", estimator)]
    for name, value in {**estimator.get_params(deep=True), **params}.items():
        if hasattr(value, "get_params") and not isinstance(value, type):
            found.append((f"{name}__", value))
    return found


def _is_set(model: Any, prefix: str, params: Mapping[str, Any]) -> bool:
    own = model.get_params(deep=False)
    return any(own.get(name) is not None or f"{prefix}{name}" in params for name in ALIASES)
