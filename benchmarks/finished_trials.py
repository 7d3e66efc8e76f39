"""Counts the trials that finish in a time budget, with `optimize` and with plain Optuna.

    python benchmarks/finished_trials.py [--seconds 12] [--repeats 3]

Cutoffs cannot help with these objectives, so they should cost next to nothing: all trials of the
first one take a second, and the second one loads its data for a second in every new process.
"""

from __future__ import annotations

import argparse
import random
import time

import optuna

from f2a_tune import WaitUCBSampler, optimize

loaded: list[float] = []


def equal(trial: optuna.Trial) -> float:
    """Take one second, whatever the parameter is."""
    x = trial.suggest_float("x", 0, 1)
    time.sleep(1.0)
    return x


def loading(trial: optuna.Trial) -> float:
    """Load for a second in a new process, then take 0.05 to 0.4 s."""
    if not loaded:
        time.sleep(1.0)
        loaded.append(1.0)
    x = trial.suggest_float("x", 0, 1)
    time.sleep(0.05 + 0.35 * random.Random(x).random())
    return x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for objective in (equal, loading):
        for seed in range(arguments.repeats):
            ours, plain = _finished(objective, arguments.seconds, seed)
            print(f"{objective.__name__}, seed {seed}: {ours} of {plain} ({ours / plain:.0%})")


def _finished(objective, seconds: float, seed: int) -> tuple[int, int]:
    loaded.clear()
    plain = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    plain.optimize(objective, timeout=seconds)
    loaded.clear()
    ours = optuna.create_study(sampler=WaitUCBSampler(seed=seed))
    optimize(ours, objective, time_budget=seconds)
    return _count(ours), _count(plain)


def _count(study: optuna.Study) -> int:
    return sum(trial.state is optuna.trial.TrialState.COMPLETE for trial in study.trials)


if __name__ == "__main__":
    main()
