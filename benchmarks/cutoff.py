"""Compares hard cutoffs of several tools: overhead of a call, delay of a kill, and recovery.

    python benchmarks/cutoff.py [--calls 200] [--kills 100] [--json FILE]

Prints one table; the other tools need the extra [bench]. Columns, all in milliseconds:
- overhead: time of a finished call (a small scikit-learn fit, with data shared in advance if the
  tool can) minus that of the same call in this process just before; median of the differences
- overshoot: time that the caller waits beyond the cutoff of an endless call, median and p99; the
  cutoff is 0.2 s, but 1 s for pynisher, which accepts no less
- recovery: time from when the caller knows of a kill to the result of the next, trivial call
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# One BLAS thread everywhere, to compare the tools and not how libraries share two cores.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from f2a_tune.cutoff import CutoffPool

X, y = make_classification(400, 20, random_state=0)


def fit(features: Any, target: Any) -> float:
    return float(LogisticRegression(max_iter=50).fit(features, target).score(features, target))


def fit_here() -> float:
    return fit(X, y)


def spin() -> None:
    while True:
        pass


def one() -> int:
    return 1


class Contender:
    """A tool that can stop a call."""

    cutoff = 0.2
    most_kills = 1000


class Ours(Contender):
    """f2a_tune.cutoff with one worker and its standby."""

    def __init__(self) -> None:
        self.pool = CutoffPool(1)
        self.data = self.pool.share("X", X), self.pool.share("y", y)

    def fit(self) -> None:
        assert self.pool.run(fit, *self.data, cutoff=60).ok

    def hang(self) -> None:
        assert not self.pool.run(spin, cutoff=self.cutoff).ok

    def next(self) -> None:
        assert self.pool.run(one, cutoff=60).value == 1

    def close(self) -> None:
        self.pool.close()


class Pebble(Contender):
    """pebble.ProcessPool with forked workers, which inherit the data."""

    def __init__(self) -> None:
        from pebble import ProcessPool

        self.pool = ProcessPool(max_workers=1, context=multiprocessing.get_context("fork"))

    def fit(self) -> None:
        self.pool.schedule(fit_here, timeout=60).result()

    def hang(self) -> None:
        try:
            self.pool.schedule(spin, timeout=self.cutoff).result()
        except TimeoutError:
            return
        raise AssertionError

    def next(self) -> None:
        assert self.pool.schedule(one, timeout=60).result() == 1

    def close(self) -> None:
        self.pool.stop()
        self.pool.join()


class Pynisher(Contender):
    """pynisher.limit, which starts a process for every call."""

    cutoff = 1.0
    most_kills = 20

    def fit(self) -> None:
        self._limit(fit_here, 60)()

    def hang(self) -> None:
        from pynisher import WallTimeoutException

        try:
            self._limit(spin, self.cutoff)()
        except WallTimeoutException:
            return
        raise AssertionError

    def next(self) -> None:
        assert self._limit(one, 60)() == 1

    def _limit(self, function: Callable[[], Any], seconds: float) -> Any:
        import pynisher

        return pynisher.limit(function, wall_time=seconds, context="fork")

    def close(self) -> None:
        pass


class Loky(Contender):
    """loky's reusable pool: the caller waits with a timeout, then restarts the whole pool."""

    def __init__(self) -> None:
        self._executor()

    def _executor(self) -> Any:
        from loky import get_reusable_executor

        return get_reusable_executor(max_workers=1, timeout=600)

    def fit(self) -> None:
        self._executor().submit(fit_here).result()

    def hang(self) -> None:
        executor = self._executor()
        try:
            executor.submit(spin).result(timeout=self.cutoff)
        except TimeoutError:
            executor.shutdown(kill_workers=True)
            return
        raise AssertionError

    def next(self) -> None:
        assert self._executor().submit(one).result() == 1

    def close(self) -> None:
        self._executor().shutdown(kill_workers=True)


class OneProcessACall(Contender):
    """One forked multiprocessing.Process per call, which the caller kills."""

    def _call(self, function: Callable[[], Any], seconds: float) -> Any:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        process = context.Process(target=lambda: theirs.send(function()))
        process.start()
        try:
            return ours.recv() if ours.poll(seconds) else None
        finally:
            process.kill()
            process.join()
            ours.close()
            theirs.close()

    def fit(self) -> None:
        assert self._call(fit_here, 60) is not None

    def hang(self) -> None:
        assert self._call(spin, self.cutoff) is None

    def next(self) -> None:
        assert self._call(one, 60) == 1

    def close(self) -> None:
        pass


CONTENDERS = {
    "f2a_tune": Ours,
    "pebble": Pebble,
    "pynisher": Pynisher,
    "loky, pool restart": Loky,
    "Process per call": OneProcessACall,
}


def milliseconds(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    function()
    return 1000 * (time.perf_counter() - started)


def measure(make: Callable[[], Any], calls: int, kills: int) -> dict[str, float]:
    contender = make()
    for _ in range(5):
        contender.fit()
    alone, extra = [], []
    for _ in range(calls):
        alone.append(milliseconds(fit_here))
        extra.append(milliseconds(contender.fit) - alone[-1])
    overshoots, recoveries = [], []
    for _ in range(min(kills, contender.most_kills)):
        overshoots.append(milliseconds(contender.hang) - 1000 * contender.cutoff)
        recoveries.append(milliseconds(contender.next))
    contender.close()
    return {
        "fit_alone": float(np.median(alone)),
        "overhead": float(np.median(extra)),
        "overshoot_median": float(np.median(overshoots)),
        "overshoot_p99": float(np.quantile(overshoots, 0.99)),
        "recovery": float(np.median(recoveries)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--only", help="names of contenders, comma separated")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    for _ in range(20):
        fit_here()
    columns = ("fit_alone", "overhead", "overshoot_median", "overshoot_p99", "recovery")
    print(f"{'milliseconds':20}" + "".join(f"{column:>18}" for column in columns))
    rows = {}
    wanted = options.only.split(",") if options.only else list(CONTENDERS)
    for name in wanted:
        rows[name] = measure(CONTENDERS[name], options.calls, options.kills)
        print(f"{name:20}" + "".join(f"{rows[name][column]:18.2f}" for column in columns))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
