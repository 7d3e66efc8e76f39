"""Compares the overhead of a trial in `optimize` with Optuna's ``study.optimize``.

    python benchmarks/trial_overhead.py [--trials 300] [--rounds 5]

Prints milliseconds per trial of an empty objective with one parameter, median of the rounds. The
methods take turns, so that a busy moment of the machine affects all of them.
"""

from __future__ import annotations

import argparse
import statistics
import time

import optuna
from optuna.samplers import RandomSampler

import f2a_tune
from f2a_tune import WaitUCBSampler, optimize


def objective(trial):
    return trial.suggest_float("x", 0, 1)


def plain(n_trials: int) -> None:
    optuna.create_study(sampler=RandomSampler(seed=0)).optimize(objective, n_trials=n_trials)


def ours(n_trials: int) -> None:
    optimize(optuna.create_study(sampler=RandomSampler(seed=0)), objective, n_trials=n_trials)


def ours_with_sampler(n_trials: int) -> None:
    sampler = WaitUCBSampler(base_sampler=RandomSampler(seed=0))
    optimize(optuna.create_study(sampler=sampler), objective, n_trials=n_trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    f2a_tune.logging.set_verbosity(f2a_tune.logging.WARNING)
    methods = {
        "study.optimize": plain,
        "optimize": ours,
        "optimize + WaitUCBSampler": ours_with_sampler,
    }
    times: dict[str, list[float]] = {name: [] for name in methods}
    ours(5)  # starts the workers
    for _ in range(arguments.rounds):
        for name, method in methods.items():
            begin = time.perf_counter()
            method(arguments.trials)
            times[name].append(1e3 * (time.perf_counter() - begin) / arguments.trials)
    for name, found in times.items():
        print(f"{name:28s} {statistics.median(found):7.3f} ms a trial")


if __name__ == "__main__":
    main()
