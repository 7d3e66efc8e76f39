"""Checks that searches with short budgets end on time with a validated result.

    python benchmarks/opening.py --data DIR [--results FILE] [--sets adult,letter,…]
        [--models auto,linear,svc,hgb] [--budgets 3,10,20] [--seeds 3] [--busy] [--minutes 30]

The tables have all sizes. Every search is one line in the results file. Searches in the file are
not repeated, so that the benchmark can run in parts. Each of our searches is compared with random
search with the same splits and cores, stopped at the same second. --busy runs two busy processes
beside the searches. A search is skipped if one default fit, measured first, exceeds its budget.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import loguniform, randint
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import ParameterSampler, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from f2a_tune import F2ASearchCV
from f2a_tune.cli.preprocessing import prepared
from f2a_tune.cli.presets import model_names, ready_space

SETS = ("adult", "letter", "shuttle", "german", "digits")
MODELS = ("auto", "linear", "svc", "hgb")
LATE_SECONDS = {False: 0.25, True: 0.5}
LONGEST_DEFAULT_SECONDS = 40.0


def main() -> None:
    arguments = _parse()
    done = _read(arguments.results)
    if arguments.summary:
        _print_summary(done)
        return
    _warm_up()
    end = time.monotonic() + 60 * arguments.minutes
    neighbours = [_start_busy() for _ in range(2 if arguments.busy else 0)]
    try:
        for job in _jobs(arguments):
            if time.monotonic() > end:
                print("out of time: run it again to go on")
                break
            if _key(job) not in done:
                row = _run(job, arguments, done)
                done[_key(job)] = row
                with arguments.results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)
    finally:
        for process in neighbours:
            process.kill()
    _print_summary(done)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with german.csv and pmlb/")
    parser.add_argument("--results", type=Path, default=Path("opening.jsonl"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--budgets", default="3,10,20")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--no-peer", action="store_true", help="leave random search out")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--summary", action="store_true", help="print the results and end")
    arguments = parser.parse_args()
    if arguments.data is None and not arguments.summary:
        parser.error("--data is needed: the folder with german.csv and pmlb/")
    return arguments


def _jobs(arguments: argparse.Namespace) -> list[dict]:
    jobs = [
        {"set": name, "model": model, "budget": 0.0, "seed": 0, "busy": False, "method": "default"}
        for name in arguments.sets.split(",")
        for model in arguments.models.split(",")
    ]
    methods = ("ours",) if arguments.no_peer else ("ours", "random")
    jobs += [
        {
            "set": name,
            "model": model,
            "budget": float(budget),
            "seed": seed,
            "busy": arguments.busy,
            "method": method,
        }
        for seed in range(arguments.seeds)
        for budget in arguments.budgets.split(",")
        for name in arguments.sets.split(",")
        for model in arguments.models.split(",")
        for method in methods
    ]
    return jobs


def _key(row: dict) -> tuple:
    return tuple(row[name] for name in ("set", "model", "budget", "seed", "busy", "method"))


def _read(path: Path) -> dict[tuple, dict]:
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return {_key(row): row for row in rows}


def _run(job: dict, arguments: argparse.Namespace, done: dict) -> dict:
    if job["method"] == "default":
        return job | _default(job, arguments)
    default = done[(job["set"], job["model"], 0.0, 0, False, "default")]
    if default["fit_seconds"] > job["budget"]:
        return job | {"skipped": True}
    run = _ours if job["method"] == "ours" else _random
    return job | {"skipped": False} | run(job, arguments)


def _ours(job: dict, arguments: argparse.Namespace) -> dict:
    X, y, estimator, space, start = _problem(job, arguments.data)
    search = F2ASearchCV(
        estimator,
        space,
        time_budget=job["budget"],
        n_jobs=2,
        cv=_folds(job),
        random_state=job["seed"],
        start=start,
    )
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            search.fit(X, y)
        except ValueError as error:
            return {"seconds": time.monotonic() - begin, "score": None, "error": str(error)[:300]}
    seconds = time.monotonic() - begin
    results = search.cv_results_
    return {
        "seconds": seconds,
        "score": float(search.best_score_),
        "folds": int(results["n_folds_done"][search.best_index_]),
        "configurations": len(results["params"]),
        "finished": search.budget_.n_finished,
        "given_up_share": search.budget_.given_up_seconds / search.budget_.total_seconds,
        "refitted": hasattr(search, "best_estimator_"),
    }


def _random(job: dict, arguments: argparse.Namespace) -> dict:
    """Run random search in its own process, which is killed at the end of the budget."""
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_random_search, args=(job, arguments.data, writer))
    process.start()
    writer.close()
    reader.recv()  # imports and reading the data do not count
    begin, scores = time.monotonic(), []
    while time.monotonic() - begin < job["budget"]:
        try:
            if reader.poll(max(job["budget"] - (time.monotonic() - begin), 0)):
                scores.append(reader.recv())
        except EOFError:
            break
    _kill_tree(process.pid)
    process.join()
    score = max(scores, default=None)
    return {"seconds": job["budget"], "score": score, "configurations": len(scores)}


def _random_search(job: dict, data: Path, writer: object) -> None:
    warnings.simplefilter("ignore")
    X, y, estimator, space, start = _problem(job, data)
    cross_validate(clone(estimator), X[:200], y[:200], cv=3, n_jobs=2, error_score=0.0)
    writer.send("ready")
    drawn = ParameterSampler(_scipy(space), 10_000, random_state=job["seed"])
    for params in [*(start or [{}]), *drawn]:
        model = clone(estimator).set_params(**clone(params, safe=False))
        found = cross_validate(model, X, y, cv=_folds(job), n_jobs=2, error_score=0.0)
        writer.send(float(np.mean(found["test_score"])))


def _scipy(space: object) -> object:
    """Convert Optuna's distributions to lists of draws for scikit-learn's sampler."""
    rng = np.random.default_rng(0)

    def one(spec: object) -> object:
        if not hasattr(spec, "low"):
            return list(spec.choices) if hasattr(spec, "choices") else spec
        if spec.log:
            draws = np.exp(rng.uniform(np.log(spec.low), np.log(spec.high), 500))
        else:
            draws = rng.uniform(spec.low, spec.high, 500)
        whole = type(spec).__name__.startswith("Int")
        return [round(float(value)) if whole else float(value) for value in draws]

    dicts = space if isinstance(space, list) else [space]
    return [{name: one(spec) for name, spec in content.items()} for content in dicts]


def _default(job: dict, arguments: argparse.Namespace) -> dict:
    """Fit all folds of the first configuration on one core each, for at most a minute."""
    X, y, estimator, _, start = _problem(job, arguments.data)
    model = clone(estimator).set_params(**clone((start or [{}])[0], safe=False))
    from f2a_tune import cross_val_score

    scores = cross_val_score(
        model, X, y, cv=_folds(job), n_jobs=2, cutoff=LONGEST_DEFAULT_SECONDS, error_score=math.nan
    )
    seconds = [outcome.seconds for outcome in scores.outcomes]
    finite = bool(np.isfinite(np.asarray(scores)).all())
    return {
        "fit_seconds": float(np.mean(seconds)),
        "score": float(np.mean(scores)) if finite else None,
        "noise": float(np.std(scores, ddof=1) / math.sqrt(len(scores))) if finite else None,
        # Two workers need three rounds for five folds, and a refit has a quarter more rows.
        "half_needs": 2 * float(np.mean(seconds)) * (3 + 1.25**2),
    }


def _problem(job: dict, data: Path) -> tuple:
    X, y = _table(job["set"], data)
    if job["model"] in ("auto", "linear"):
        ready = ready_space(model_names(job["model"]), "classification", 0)
        numeric = [c for c in X.columns if pd.api.types.is_numeric_dtype(X[c])]
        categorical = [c for c in X.columns if c not in numeric]
        estimator = prepared(ready.estimator, categorical, numeric)
        return X, y, estimator, ready.space, ready.start
    X = pd.get_dummies(X).to_numpy(dtype=float)
    if job["model"] == "svc":
        space = {"svc__C": loguniform(1e-2, 1e3), "svc__gamma": loguniform(1e-4, 1e1)}
        return X, y, make_pipeline(StandardScaler(), SVC()), space, None
    space = {
        "learning_rate": loguniform(1e-2, 1.0),
        "max_leaf_nodes": randint(4, 256),
        "max_iter": randint(10, 500),
    }
    return X, y, HistGradientBoostingClassifier(random_state=0), space, None


def _table(name: str, data: Path) -> tuple:
    if name == "digits":
        return load_digits(return_X_y=True, as_frame=True)
    if name == "german":
        frame = pd.read_csv(data / "german.csv", header=None)
        frame.columns = [str(column) for column in frame.columns]
        y = frame.pop(frame.columns[-1])
        for column in frame.columns:
            if not pd.api.types.is_numeric_dtype(frame[column]):
                frame[column] = frame[column].astype(object)
        return frame, y.to_numpy()
    frame = pd.read_csv(data / "pmlb" / f"{name}.tsv.gz", sep="\t")
    return frame, frame.pop("target").to_numpy()


def _folds(job: dict) -> StratifiedKFold:
    return StratifiedKFold(5, shuffle=True, random_state=job["seed"])


def _warm_up() -> None:
    """Start the workers, which happens once per process, before the measurement."""
    X, y = load_digits(return_X_y=True)
    F2ASearchCV(SVC(), {"C": [1.0]}, time_budget=60, n_jobs=2).fit(X[:200], y[:200])


def _start_busy() -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", "while True: pass"])


def _kill_tree(pid: int) -> None:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    for child in children.read_text().split() if children.exists() else []:
        _kill_tree(int(child))
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _print_summary(done: dict[tuple, dict]) -> None:
    for busy in (False, True):
        ours = [
            row
            for row in done.values()
            if row["method"] == "ours" and row["busy"] == busy and not row["skipped"]
        ]
        if ours:
            print(f"\n{'beside two busy processes' if busy else 'quiet'}: {len(ours)} searches")
            _print_figures(ours, done, LATE_SECONDS[busy])


def _print_figures(ours: list[dict], done: dict, late: float) -> None:
    nothing = [row for row in ours if row["score"] is None]
    promised = [row for row in ours if _default_of(row, done)["half_needs"] < row["budget"]]
    partial = [row for row in promised if row.get("folds") != 5]
    below = [row for row in ours if row["score"] is not None and _is_below(row, done)]
    overdue = [row for row in ours if row["seconds"] > row["budget"] + late]
    for label, rows in (
        ("ended with nothing", nothing),
        (f"not validated, of {len(promised)} promised", partial),
        ("below the default by more than two standard errors", below),
        (f"later than {late} s", overdue),
    ):
        names = ", ".join(f"{r['set']}/{r['model']}/{r['budget']:g}/{r['seed']}" for r in rows[:8])
        print(f"{label:52s} {len(rows):4d}  {names}")
    print(f"{'latest, s':52s} {max(row['seconds'] - row['budget'] for row in ours):7.2f}")
    pairs = [(row, done.get((*_key(row)[:-1], "random"))) for row in ours]
    pairs = [(row, peer) for row, peer in pairs if peer is not None and not peer["skipped"]]
    if pairs:
        lost = sum(peer["score"] is None for _, peer in pairs)
        both = [(r, p) for r, p in pairs if r["score"] is not None and p["score"] is not None]
        better = sum(row["score"] > peer["score"] for row, peer in both)
        equal = sum(row["score"] == peer["score"] for row, peer in both)
        print(f"random search, {len(pairs)} of them: nothing {lost}; where both have a score ours")
        print(f"is better in {better}, equal in {equal}, worse in {len(both) - better - equal}")


def _default_of(row: dict, done: dict) -> dict:
    return done[(row["set"], row["model"], 0.0, 0, False, "default")]


def _is_below(row: dict, done: dict) -> bool:
    default = _default_of(row, done)
    if default["score"] is None:
        return False
    # A winner with fewer folds has a noisier mean than the default with five.
    noise = default["noise"] * math.sqrt(1 + 5 / row["folds"])
    return row["score"] < default["score"] - 2 * noise


if __name__ == "__main__":
    main()
