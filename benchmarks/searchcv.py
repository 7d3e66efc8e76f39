"""Compares `F2ASearchCV` with other searches on real fits, with the same folds and seconds.

    python benchmarks/searchcv.py compare [--data DIR] [--seconds 10] [--seeds 2] [--json FILE]
    python benchmarks/searchcv.py punctual [--seconds 10] [--runs 20] [--json FILE]
    python benchmarks/searchcv.py overhead [--json FILE]

``compare``: a mixed space of SVC, MLP and HistGradientBoosting on digits, breast_cancer and every
CSV file in DIR (last column is the target). Prints the accuracy of the refitted winner on held-out
rows, and by how much each search overran its seconds, including the refit. A search without a time
budget is repeated until the seconds are over. A search that takes five times its seconds is killed
and has no result.
``punctual``: repeated runs of ours with one and two players: when they end, and what they leave.
``overhead``: all folds of the same grid with fits of 20 ms: our seconds over RandomizedSearchCV's.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import psutil
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from f2a_tune import F2ASearchCV, run_with_cutoff

KILL_AFTER = 5  # multiple of its seconds
SVC_SPACE = {
    "kind": ["svc"],
    "C": FloatDistribution(1e-3, 1e5, log=True),
    "gamma": FloatDistribution(1e-6, 1e2, log=True),
    "kernel": ["rbf", "poly", "linear"],
}
MLP_SPACE = {
    "kind": ["mlp"],
    "width": IntDistribution(8, 512, log=True),
    "layers": IntDistribution(1, 3),
    "alpha": FloatDistribution(1e-6, 1.0, log=True),
    "learning_rate": FloatDistribution(1e-4, 1e-1, log=True),
}
BOOSTING_SPACE = {
    "kind": ["boosting"],
    "trees": IntDistribution(10, 1000, log=True),
    "learning_rate": FloatDistribution(1e-3, 1.0, log=True),
    "leaves": IntDistribution(4, 256, log=True),
    "l2": FloatDistribution(1e-6, 1e2, log=True),
}
SPACES = [SVC_SPACE, MLP_SPACE, BOOSTING_SPACE]


class Mixed(ClassifierMixin, BaseEstimator):
    """One of three models, so that every search can use the same flat space."""

    def __init__(
        self,
        kind: str = "svc",
        C: float = 1.0,
        gamma: float = 0.01,
        kernel: str = "rbf",
        width: int = 64,
        layers: int = 1,
        alpha: float = 1e-4,
        learning_rate: float = 1e-2,
        trees: int = 100,
        leaves: int = 31,
        l2: float = 1e-3,
    ) -> None:
        self.kind, self.C, self.gamma, self.kernel = kind, C, gamma, kernel
        self.width, self.layers, self.alpha, self.learning_rate = (
            width,
            layers,
            alpha,
            learning_rate,
        )
        self.trees, self.leaves, self.l2 = trees, leaves, l2

    def _model(self) -> Any:
        if self.kind == "svc":
            return make_pipeline(
                StandardScaler(), SVC(C=self.C, gamma=self.gamma, kernel=self.kernel)
            )
        if self.kind == "mlp":
            layers = (int(self.width),) * int(self.layers)
            return make_pipeline(
                StandardScaler(),
                MLPClassifier(
                    layers, alpha=self.alpha, learning_rate_init=self.learning_rate, random_state=0
                ),
            )
        return HistGradientBoostingClassifier(
            max_iter=int(self.trees),
            learning_rate=self.learning_rate,
            max_leaf_nodes=int(self.leaves),
            l2_regularization=self.l2,
            random_state=0,
        )

    def fit(self, X: Any, y: Any) -> Mixed:
        self.classes_ = np.unique(y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MLPs that have not converged
            self.model_ = self._model().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)


class _Draw:
    """An Optuna distribution with the interface of a scipy distribution."""

    def __init__(self, distribution: FloatDistribution | IntDistribution) -> None:
        self.low, self.high, self.log = distribution.low, distribution.high, distribution.log
        self.whole = isinstance(distribution, IntDistribution)

    def rvs(self, random_state: Any = None) -> Any:
        rng = np.random.RandomState() if random_state is None else random_state
        ends = np.log([self.low, self.high]) if self.log else [self.low, self.high]
        value = rng.uniform(*ends)
        value = float(np.exp(value)) if self.log else value
        return round(value) if self.whole else value


def sklearn_spaces() -> list[dict[str, Any]]:
    return [
        {name: one if isinstance(one, list) else _Draw(one) for name, one in space.items()}
        for space in SPACES
    ]


def flat_space() -> dict[str, Any]:
    found: dict[str, Any] = {"kind": CategoricalDistribution(["svc", "mlp", "boosting"])}
    for space in SPACES:
        for name, one in space.items():
            if name != "kind":
                found[name] = CategoricalDistribution(one) if isinstance(one, list) else one
    return found


Folds = StratifiedKFold
Search = Callable[[Any, Any, Any, float, int], Any]


def ours(X: Any, y: Any, folds: Folds, seconds: float, seed: int) -> Any:
    return F2ASearchCV(Mixed(), SPACES, time_budget=seconds, cv=folds, random_state=seed).fit(X, y)


def randomized(X: Any, y: Any, folds: Folds, seconds: float, seed: int) -> Any:
    begin, best = time.monotonic(), None
    rng = np.random.RandomState(seed)
    while time.monotonic() - begin < seconds:
        found = RandomizedSearchCV(
            Mixed(), sklearn_spaces(), n_iter=1, cv=folds, random_state=rng, refit=False
        ).fit(X, y)
        if best is None or found.best_score_ > best.best_score_:
            best = found
    assert best is not None
    return Mixed(**best.best_params_).fit(X, y)


def halving(X: Any, y: Any, folds: Folds, seconds: float, seed: int) -> Any:
    begin, n_candidates, last = time.monotonic(), 9, None
    while time.monotonic() - begin < seconds:
        last = HalvingRandomSearchCV(
            Mixed(), sklearn_spaces(), n_candidates=n_candidates, cv=folds, random_state=seed
        ).fit(X, y)
        n_candidates *= 3
    return last


def optuna_search(X: Any, y: Any, folds: Folds, seconds: float, seed: int) -> Any:
    from optuna_integration.sklearn import OptunaSearchCV

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return OptunaSearchCV(
        Mixed(), flat_space(), cv=folds, n_trials=None, timeout=seconds, random_state=seed
    ).fit(X, y)


def flaml(X: Any, y: Any, folds: Folds, seconds: float, seed: int) -> Any:
    from flaml import tune

    def space_of(one: Any) -> Any:
        if isinstance(one, CategoricalDistribution):
            return tune.choice(list(one.choices))
        if isinstance(one, IntDistribution):
            return (tune.lograndint if one.log else tune.randint)(one.low, one.high + 1)
        return tune.loguniform(one.low, one.high)

    found = tune.run(
        lambda config: {"score": float(cross_val_score(Mixed(**config), X, y, cv=folds).mean())},
        config={name: space_of(one) for name, one in flat_space().items()},
        metric="score",
        mode="max",
        time_budget_s=seconds,
        num_samples=-1,
        verbose=0,
    )
    return Mixed(**found.best_config).fit(X, y)


SEARCHES: dict[str, Search] = {
    "F2ASearchCV": ours,
    "RandomizedSearchCV": randomized,
    "HalvingRandomSearchCV": halving,
    "OptunaSearchCV": optuna_search,
    "FLAML tune": flaml,
}


def datasets(folder: Path | None) -> dict[str, tuple[Any, Any]]:
    found = {
        "digits": load_digits(return_X_y=True),
        "breast_cancer": load_breast_cancer(return_X_y=True),
    }
    for path in sorted(folder.glob("*.csv")) if folder else []:
        with path.open() as file:
            rows = [row for row in csv.reader(file) if row]
        columns = [
            _column(list(column)) for column in zip(*(row[:-1] for row in rows), strict=True)
        ]
        found[path.stem] = (
            np.hstack(columns),
            np.unique([row[-1] for row in rows], return_inverse=True)[1],
        )
    return found


def _column(values: list[str]) -> Any:
    try:
        return np.array(values, dtype=np.float64)[:, None]
    except ValueError:  # one-hot encode text
        return np.eye(len(set(values)))[np.unique(values, return_inverse=True)[1]]


def one_run(search: str, data: tuple[Any, Any], seconds: float, seed: int) -> dict[str, float]:
    """Run one search in its own process; return the held-out accuracy and its seconds."""
    warnings.simplefilter("ignore")
    X, X_test, y, y_test = train_test_split(*data, test_size=0.3, random_state=seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    begin = time.monotonic()
    model = SEARCHES[search](X, y, folds, seconds, seed)
    elapsed = time.monotonic() - begin
    return {"accuracy": float((model.predict(X_test) == y_test).mean()), "seconds": elapsed}


def compare(folder: Path | None, seconds: float, seeds: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, data in datasets(folder).items():
        found[name] = {search: [] for search in SEARCHES}
        for seed in range(seeds):
            for search in SEARCHES:
                outcome = run_with_cutoff(
                    one_run, search, data, seconds, seed, cutoff=KILL_AFTER * seconds
                )
                result = outcome.value if outcome.ok else {"accuracy": None, "seconds": None}
                if not outcome.ok:
                    result["why"] = (
                        outcome.kind.value if outcome.error is None else str(outcome.error)
                    )
                found[name][search].append(result)
                print(name, seed, search, result, flush=True)
    _print_comparison(found, seconds)
    return found


def _print_comparison(found: dict[str, Any], seconds: float) -> None:
    print(f"\n{'':24s}" + "".join(f"{search:>24s}" for search in SEARCHES))
    ranks = []
    for name, results in found.items():
        means = [
            np.mean(
                [0.0 if one["accuracy"] is None else one["accuracy"] for one in results[search]]
            )
            for search in SEARCHES
        ]
        ranks.append(rankdata([-round(mean, 4) for mean in means]))
        print(f"{name:24s}" + "".join(f"{mean:24.4f}" for mean in means))
    print(f"{'mean rank':24s}" + "".join(f"{rank:24.2f}" for rank in np.mean(ranks, axis=0)))
    overruns = {
        search: [
            KILL_AFTER * seconds if one["seconds"] is None else one["seconds"] - seconds
            for results in found.values()
            for one in results[search]
        ]
        for search in SEARCHES
    }
    print(
        f"{'median overrun, s':24s}" + "".join(f"{np.median(o):24.2f}" for o in overruns.values())
    )
    print(f"{'longest overrun, s':24s}" + "".join(f"{max(o):24.2f}" for o in overruns.values()))


def punctual(seconds: float, runs: int) -> dict[str, Any]:
    """Measure how often ours ends on time, fully validated, with no processes left."""
    X, y = load_digits(return_X_y=True)
    found: dict[str, Any] = {}
    for n_jobs in (1, 2):
        elapsed, partial, accuracy = [], 0, []
        for seed in range(runs):
            search = F2ASearchCV(
                Mixed(), SPACES, time_budget=seconds, n_jobs=n_jobs, cv=5, random_state=seed
            )
            begin = time.monotonic()
            search.fit(X, y)
            elapsed.append(time.monotonic() - begin)
            partial += search.cv_results_["status"][search.best_index_] != "complete"
            accuracy.append(float(search.best_score_))
            print(f"n_jobs={n_jobs} run {seed}: {elapsed[-1]:.3f} s, {search.budget_}", flush=True)
        found[f"n_jobs={n_jobs}"] = {
            "seconds": elapsed,
            "p99": float(np.quantile(elapsed, 0.99)),
            "longest": max(elapsed),
            "not fully validated": int(partial),
            "best score": statistics.mean(accuracy),
        }
        print(found[f"n_jobs={n_jobs}"])
    kept = psutil.Process().children(recursive=True)
    busy = [one for one in kept if _is_busy(one)]
    found["processes kept for the next search"], found["processes still busy"] = (
        len(kept),
        len(busy),
    )
    print(f"kept for the next search: {len(kept)} processes, of which busy: {len(busy)}")
    return found


def _is_busy(process: psutil.Process) -> bool:
    try:
        return bool(process.cpu_percent(interval=0.5) > 5)
    except psutil.NoSuchProcess:
        return False


class Twenty(ClassifierMixin, BaseEstimator):
    """A classifier whose fit computes for 20 ms."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def fit(self, X: Any, y: Any) -> Twenty:
        self.classes_ = np.unique(y)
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X), dtype=int)


def overhead() -> dict[str, Any]:
    X, y = load_digits(return_X_y=True)
    grid = {"number": list(range(40))}
    found = {}
    for n_jobs in (1, 2):

        def theirs(n_jobs: int = n_jobs) -> None:
            RandomizedSearchCV(Twenty(), grid, n_iter=40, cv=5, n_jobs=n_jobs).fit(X, y)

        for proposals in ("random", "model"):

            def mine(n_jobs: int = n_jobs, proposals: str = proposals) -> None:
                search = F2ASearchCV(
                    Twenty(), grid, time_budget=600, cv=5, n_jobs=n_jobs, proposals=proposals
                ).fit(X, y)
                assert (search.cv_results_["n_folds_done"] == 5).all()

            mine(), theirs()  # starts the workers, which later searches reuse
            ratios = [_seconds(mine) / _seconds(theirs) for _ in range(5)]
            median = statistics.median(ratios)
            found[f"n_jobs={n_jobs}, {proposals}"] = {"ratio": median, "ratios": ratios}
            print(f"n_jobs={n_jobs}, {proposals}: {median:.3f} x", [round(r, 3) for r in ratios])
    return found


def _seconds(call: Callable[[], None]) -> float:
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["compare", "punctual", "overhead"])
    parser.add_argument("--data", type=Path, help="folder of CSV files")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.what == "compare":
        found = compare(options.data, options.seconds, options.seeds)
    elif options.what == "punctual":
        found = punctual(options.seconds, options.runs)
    else:
        found = overhead()
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
