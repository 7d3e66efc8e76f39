"""`F2ASearchCV`, also without growing fits in versions that have them."""

from __future__ import annotations

import inspect

from f2a_tune import F2ASearchCV
from live_search.problem import Found, Problem


def search(problem: Problem) -> Found:
    """Search with the budget; the refit is part of it."""
    job, table = problem.job, problem.table
    options = {}
    has_growth = "growth" in inspect.signature(F2ASearchCV).parameters
    if job.method == "ours-no-growth" and has_growth:
        options["growth"] = None
    found = F2ASearchCV(
        problem.estimator,
        problem.space,
        time_budget=job.budget,
        scoring=table.scoring,
        cv=table.splits,
        n_jobs=problem.workers,
        random_state=job.seed,
        **options,
    ).fit(table.X, table.y)
    results, used = found.cv_results_, found.budget_
    return Found(
        found.best_estimator_,
        float(found.best_score_),
        len(results["params"]),
        int(results["n_folds_done"][found.best_index_]),
        used.given_up_seconds / used.total_seconds,
    )
