"""Random search in worker processes that are killed when only the time for the refit is left."""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.pool import Pool
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterSampler

from live_search.problem import FoldScore, Found, NothingFoundError, Problem, refit_seconds
from live_search.space import draws
from live_search.table import N_FOLDS

MOST_DRAWS = 10_000_000
_problems: list[Problem] = []  # of this worker process


@dataclass(frozen=True)
class _Best:
    params: Mapping[str, Any]
    score: float
    refit_seconds: float


def search(problem: Problem) -> Found:
    """Evaluate random configurations on all folds until the time is up, and refit the best."""
    end, best, count = time.monotonic() + problem.job.budget, None, 0
    sampler = ParameterSampler(
        draws(problem.space), MOST_DRAWS, random_state=np.random.RandomState(problem.job.seed)
    )
    context = multiprocessing.get_context("spawn")
    with context.Pool(problem.workers, _keep, (problem,)) as pool:
        for params in sampler:
            left = end - time.monotonic() - (best.refit_seconds if best else 0.0)
            folds = _folds(pool, params, left)
            if folds is None:
                break
            count += 1
            score = float(np.mean([fold.score for fold in folds]))
            if score > (best.score if best else -math.inf):
                best = _Best(params, score, refit_seconds(folds))
    if best is None:
        raise NothingFoundError("no configuration was validated in time")
    return Found(problem.refit(best.params), best.score, count, N_FOLDS)


def _folds(pool: Pool, params: Mapping[str, Any], seconds: float) -> list[FoldScore] | None:
    """Return the scores of all folds, or None if they take longer than the given seconds."""
    tasks = [(params, place) for place in range(N_FOLDS)]
    try:
        return pool.starmap_async(_evaluate, tasks, chunksize=1).get(max(seconds, 0.0))
    except multiprocessing.TimeoutError:
        return None


def _keep(problem: Problem) -> None:
    _problems.append(problem)


def _evaluate(params: Mapping[str, Any], place: int) -> FoldScore:
    try:
        return _problems[0].evaluate(params, place)
    except Exception:  # the next configuration may succeed
        return FoldScore(-math.inf, 0.0)
