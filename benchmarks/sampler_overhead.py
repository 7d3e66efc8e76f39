"""Compares the overhead of our sampler (ask and tell of one trial) with Optuna's samplers.

    python benchmarks/sampler_overhead.py [--sizes 100,1000,10000] [--sqlite-sizes 100,1000]
        [--most-tpe 1000] [--json FILE]

Prints wall milliseconds per trial with five parameters, in memory and in SQLite: the median of the
last 100 trials before each size is reached. Samplers take turns in blocks, so that a busy moment
of the machine affects all of them. The limit of ours over random sampling is 1.5 x RandomSampler
+ 0.5 ms; over TPE it is TPESampler + 0.5 ms.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from f2a_tune import WaitUCBSampler

BLOCK = 10
MEASURED = 100


class Runner:
    """A study that grows in blocks of trials."""

    def __init__(self, sampler: BaseSampler, storage: str | None) -> None:
        self.study = optuna.create_study(sampler=sampler, storage=storage)
        self.rng = np.random.default_rng(0)
        self.n = 0

    def grow(self, count: int) -> list[float]:
        """Run ``count`` trials and return the milliseconds of each."""
        found = []
        for _ in range(count):
            start = time.perf_counter()
            trial = self.study.ask()
            values = [trial.suggest_float(f"x{i}", 0, 1) for i in range(5)]
            middle = time.perf_counter()
            value = float(sum((v - 0.3) ** 2 for v in values) + 0.1 * self.rng.normal())
            again = time.perf_counter()
            self.study.tell(trial, value)
            found.append(1e3 * (time.perf_counter() - again + middle - start))
        self.n += count
        return found


def samplers() -> dict[str, BaseSampler]:
    return {
        "random": RandomSampler(seed=0),
        "ours over random": WaitUCBSampler(base_sampler=RandomSampler(seed=0)),
        "tpe": TPESampler(seed=0),
        "ours over tpe": WaitUCBSampler(seed=0),
    }


def measure(sizes: list[int], most_tpe: int, storage_of) -> dict[str, dict[int, float]]:
    runners = {name: Runner(sampler, storage_of(name)) for name, sampler in samplers().items()}
    results: dict[str, dict[int, float]] = {name: {} for name in runners}
    for size in sizes:
        times: dict[str, list[float]] = {name: [] for name in runners}
        active = {n: r for n, r in runners.items() if "tpe" not in n or size <= most_tpe}
        for name, runner in active.items():
            runner.grow(max(size - MEASURED - runner.n, 0))
            assert runner.n <= size, name
        while any(runner.n < size for runner in active.values()):
            for name, runner in active.items():
                times[name] += runner.grow(min(BLOCK, size - runner.n))
        for name in active:
            results[name][size] = statistics.median(times[name])
    return results


def show(title: str, results: dict[str, dict[int, float]], sizes: list[int]) -> None:
    print(f"{title + ', ms a trial':32s}" + "".join(f"{size:>10d}" for size in sizes))
    for name, row in results.items():
        print(f"{name:32s}" + "".join(f"{row[s]:10.2f}" if s in row else "" for s in sizes))
    for name, base, factor in (("random", "random", 1.5), ("tpe", "tpe", 1.0)):
        ours = results[f"ours over {name}"]
        limits = {size: factor * results[base][size] + 0.5 for size in ours}
        cells = "".join(f"{ours[s] / limits[s]:10.2f}" if s in ours else "" for s in sizes)
        print(f"{'ours over ' + name + ' / its limit':32s}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="100,1000,10000")
    parser.add_argument("--sqlite-sizes", default="100,1000")
    parser.add_argument("--most-tpe", type=int, default=1000, help="TPE gets slow")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    sizes = [int(size) for size in arguments.sizes.split(",")]
    found = {"memory": measure(sizes, arguments.most_tpe, lambda name: None)}
    show("in memory", found["memory"], sizes)
    sizes = [int(size) for size in arguments.sqlite_sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        found["sqlite"] = measure(
            sizes, arguments.most_tpe, lambda name: f"sqlite:///{folder}/{name.replace(' ', '_')}"
        )
    show("SQLite", found["sqlite"], sizes)
    if arguments.json:
        arguments.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
