"""Measures pulls per second of a search by storage, number of players and duration of fits.

    python benchmarks/players.py [--seconds 5] [--players 1,2,4,8,16] [--fits 0.001,0.01,0.05]
        [--storages memory,sqlite,journal,postgres] [--json FILE]

Fits sleep, so that many players can run on few cores and only the search and its storage are
measured. With ``--compute``, fits use the CPU, which shows the limit of the cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.storages.journal import JournalFileBackend
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin

sys.path.insert(0, str(Path(__file__).parents[1]))

from f2a_tune import F2ASearchCV
from tests.postgres import PostgresServer, program_folder

X = np.zeros((40, 2))
Y = np.arange(40) % 2


class Sleeper(ClassifierMixin, BaseEstimator):
    """A classifier whose fit sleeps or computes for a given time."""

    def __init__(self, quality: float = 0.5, seconds: float = 0.01, compute: bool = False) -> None:
        self.quality, self.seconds, self.compute = quality, seconds, compute

    def fit(self, X: Any, y: Any) -> Sleeper:
        self.classes_ = np.unique(y)
        if self.compute:
            end = time.thread_time() + self.seconds
            while time.thread_time() < end:
                pass
        else:
            time.sleep(self.seconds)
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X), dtype=int)

    def score(self, X: Any, y: Any) -> float:
        return self.quality


def storage(kind: str, folder: str, server: PostgresServer | None, count: int) -> Any:
    if kind == "sqlite":
        return f"sqlite:///{folder}/{count}.db"
    if kind == "journal":
        return optuna.storages.JournalStorage(JournalFileBackend(f"{folder}/{count}.journal"))
    if kind == "postgres":
        assert server is not None
        return server.new_database()
    return None


def rate(kind: Any, players: int, fit_seconds: float, seconds: float, compute: bool) -> float:
    """Return the finished pulls per second."""
    ends: list[float] = []

    def note(event: object) -> bool:
        ends.append(time.monotonic())
        return False

    search = F2ASearchCV(
        Sleeper(seconds=fit_seconds, compute=compute),
        {"quality": uniform(0, 1)},
        time_budget=seconds + 4,
        cv=5,
        n_jobs=players,
        refit=False,
        proposals="random",
        storage=kind,
        study_name="s",
        callbacks=[note],
    )
    search.fit(X, Y)
    middle = [end for end in ends if ends[0] + 1 < end]  # excludes the startup
    return len(middle) / (middle[-1] - middle[0]) if len(middle) > 2 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--players", default="1,2,4,8,16")
    parser.add_argument("--fits", default="0.001,0.01,0.05")
    parser.add_argument("--storages", default="memory,sqlite,journal,postgres")
    parser.add_argument("--compute", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kinds = options.storages.split(",")
    if "postgres" in kinds and program_folder() is None:
        kinds.remove("postgres")
    server = PostgresServer() if "postgres" in kinds else None
    found: dict[str, float] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for kind in kinds:
                for fit_seconds in map(float, options.fits.split(",")):
                    for players in map(int, options.players.split(",")):
                        place = storage(kind, folder, server, len(found))
                        name = f"{kind}, {1e3 * fit_seconds:g} ms, {players} players"
                        found[name] = rate(
                            place, players, fit_seconds, options.seconds, options.compute
                        )
                        print(f"{name}: {found[name]:.1f} pulls a second", flush=True)
    finally:
        if server is not None:
            server.close()
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
