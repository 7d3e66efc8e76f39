"""Checks that resource use does not grow over many pulls in one process.

    python benchmarks/soak.py [--pulls 10000] [--json FILE] [--plot FILE]

``pool``: calls of a CutoffPool, every tenth of which hangs in C code and is killed.
``search``: F2ASearchCV whose configurations hang as often. Its study is in memory and grows with
every configuration, so its memory should grow by a constant amount per pull.
Records the memory of the parent and of the process that starts workers, open descriptors, and the
overhead of a pull in seconds, in blocks of a fiftieth of all pulls.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin

from f2a_tune import CutoffPool, F2ASearchCV

BLOCKS = 50
CUTOFF_SECONDS = 0.05


class Meter:
    """Measures resource use at the end of every block."""

    def __init__(self, pulls: int) -> None:
        self.pulls, self.n, self.kills = pulls, 0, 0
        self.blocks: list[dict[str, float]] = []
        self._overhead, self._last = 0.0, time.monotonic()

    def count(self, own_seconds: float, killed: bool) -> bool:
        """Count one pull, and return whether it was the last."""
        now = time.monotonic()
        self._overhead += now - self._last - own_seconds
        self._last = now
        self.n += 1
        self.kills += killed
        size = max(self.pulls // BLOCKS, 1)
        if self.n % size == 0:
            self._measure(size)
        return self.n >= self.pulls

    def _measure(self, size: int) -> None:
        me = psutil.Process()
        zygotes = [one for one in me.children() if "zygote" in " ".join(one.cmdline())]
        self.blocks.append(
            {
                "pulls": self.n,
                "parent MB": me.memory_info().rss / 1e6,
                "zygote MB": sum(one.memory_info().rss for one in zygotes) / 1e6,
                "files": me.num_fds() + sum(one.num_fds() for one in zygotes),
                "processes": len(me.children(recursive=True)),
                "overhead ms": 1e3 * self._overhead / size,
            }
        )
        self._overhead, self._last = 0.0, time.monotonic()


def work(hang: bool) -> int:
    if hang:
        ctypes.PyDLL(None).pause()
    return os.getpid()


def pool(pulls: int) -> Meter:
    meter = Meter(pulls)
    with CutoffPool(1) as workers:
        meter._last = time.monotonic()
        done = False
        while not done:
            outcome = workers.run(work, meter.n % 10 == 9, cutoff=CUTOFF_SECONDS)
            done = meter.count(outcome.seconds, not outcome.ok)
    return meter


class SometimesHangs(ClassifierMixin, BaseEstimator):
    """A classifier with a given score, whose fit may hang."""

    def __init__(self, quality: float = 0.0, hang: bool = False) -> None:
        self.quality, self.hang = quality, hang

    def fit(self, X: Any, y: Any) -> SometimesHangs:
        self.classes_ = np.unique(y)
        work(self.hang)
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X), dtype=int)

    def score(self, X: Any, y: Any) -> float:
        return self.quality


def search(pulls: int) -> Meter:
    meter = Meter(pulls)
    X, y = np.zeros((20, 2)), np.arange(20) % 2
    meter._last = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        F2ASearchCV(
            SometimesHangs(),
            {"quality": uniform(0, 1), "hang": [False] * 9 + [True]},
            time_budget=3600,
            timeouts=[CUTOFF_SECONDS],
            proposals="random",
            cv=2,
            start=[],
            callbacks=[lambda event: meter.count(event.outcome.seconds, not event.outcome.ok)],
        ).fit(X, y)
    return meter


def growth(meter: Meter, name: str) -> float:
    """Return the growth from the second fifth to the last; the first fifth warms up."""
    values = [block[name] for block in meter.blocks]
    fifth = max(len(values) // 5, 1)
    return float(np.mean(values[-fifth:]) / np.mean(values[fifth : 2 * fifth]))


def draw(meters: dict[str, Meter], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = ["parent MB", "zygote MB", "files", "overhead ms"]
    figure, axes = plt.subplots(1, len(names), figsize=(14, 3), layout="constrained")
    for axis, name in zip(axes, names, strict=True):
        for kind, meter in meters.items():
            axis.plot(
                [b["pulls"] for b in meter.blocks], [b[name] for b in meter.blocks], label=kind
            )
        highest = max(block[name] for meter in meters.values() for block in meter.blocks)
        axis.set(title=name, xlabel="pulls", ylim=(0, 1.15 * highest))
    axes[0].legend()
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pulls", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    meters, figures = {}, {}
    for play in (pool, search):
        begin = time.monotonic()
        meter = meters[play.__name__] = play(arguments.pulls)
        figures[play.__name__] = {
            "pulls": meter.n,
            "kills": meter.kills,
            "seconds": time.monotonic() - begin,
            "growth": {
                name: growth(meter, name)
                for name in ("parent MB", "zygote MB", "files", "processes", "overhead ms")
            },
            "parent kB per pull": 1e3
            * (meter.blocks[-1]["parent MB"] - meter.blocks[len(meter.blocks) // 5]["parent MB"])
            / (0.8 * meter.n),
            "first": meter.blocks[0],
            "last": meter.blocks[-1],
        }
        print(play.__name__, json.dumps(figures[play.__name__], indent=2), flush=True)
    if arguments.json:
        blocks = {name: meter.blocks for name, meter in meters.items()}
        arguments.json.write_text(json.dumps({"figures": figures, "blocks": blocks}))
    if arguments.plot:
        draw(meters, arguments.plot)


if __name__ == "__main__":
    main()
