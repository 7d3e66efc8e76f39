"""What the process of one search does: read, search, and score the winner on the test rows."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

from live_search.job import METHODS, Job
from live_search.problem import Found, Problem

LONGEST_ERROR = 300


def answer(job: Job, path: Path, workers: int) -> dict[str, Any]:
    """Return the row of a search. A failure is described in ``error``."""
    begin, seconds = time.monotonic(), None
    try:
        problem = Problem.read(job, path, workers)
        module = importlib.import_module(f"live_search.{METHODS[job.method].module}")
        begin = time.monotonic()
        found = module.search(problem)
        seconds = time.monotonic() - begin
        return job.row(seconds) | _figures(problem, found)
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"[:LONGEST_ERROR]
        return job.row(time.monotonic() - begin if seconds is None else seconds, error)


def _figures(problem: Problem, found: Found) -> dict[str, Any]:
    score = found.cv_score
    return {
        "loss": problem.table.test_loss(found.model),
        "cv_loss": None if score is None else -score * problem.table.scale,
        "configurations": found.n_configurations,
        "folds": found.n_folds,
        "given_up_share": found.given_up_share,
    }
