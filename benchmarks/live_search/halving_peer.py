"""scikit-learn's successive halving over the number of rounds. It knows no budget."""

from __future__ import annotations

from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV

from live_search.problem import Found, Problem
from live_search.space import draws
from live_search.table import N_FOLDS

FACTOR = 3
# Four rungs. By default there would be as many candidates as rounds, which takes hours.
N_CANDIDATES = FACTOR**3


def search(problem: Problem) -> Found:
    """Search until the last rung is finished, and refit."""
    others = {name: one for name, one in problem.space.items() if name != problem.rounds}
    found = HalvingRandomSearchCV(
        problem.estimator,
        draws(others),
        n_candidates=N_CANDIDATES,
        factor=FACTOR,
        resource=problem.rounds,
        min_resources="exhaust",
        max_resources=problem.space[problem.rounds].high,
        scoring=problem.table.scoring,
        cv=problem.table.splits,
        n_jobs=problem.workers,
        random_state=problem.job.seed,
    ).fit(problem.table.X, problem.table.y)
    return Found(
        found.best_estimator_, float(found.best_score_), int(found.n_candidates_[0]), N_FOLDS
    )
