"""FLAML's AutoML with one learner, which validates by a holdout or by folds of its own."""

from __future__ import annotations

import logging

from flaml import AutoML

from live_search.problem import Found, Problem
from live_search.table import N_FOLDS

LEARNERS = {"lightgbm": "lgbm", "xgboost": "xgboost"}


def search(problem: Problem) -> Found:
    """Search with the budget and FLAML's defaults; each fit uses all workers as threads."""
    job, table = problem.job, problem.table
    logging.getLogger("flaml").setLevel(logging.ERROR)
    folds = {"eval_method": "cv", "n_splits": N_FOLDS} if job.method == "flaml-cv" else {}
    automl = AutoML()
    automl.fit(
        table.X,
        table.y,
        task="classification" if table.n_classes else "regression",
        metric="log_loss" if table.n_classes else "rmse",
        estimator_list=[LEARNERS[job.model]],
        time_budget=job.budget,
        n_jobs=problem.workers,
        seed=job.seed,
        verbose=0,
        **folds,
    )
    if automl.model is None:
        raise RuntimeError("FLAML ended without a model")
    return Found(
        automl,
        -float(automl.best_loss) if folds else None,
        # FLAML has no public number of trials.
        int(automl._track_iter) + 1,
        N_FOLDS if folds else None,
    )
