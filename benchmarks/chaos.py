"""Runs searches with random combinations of injected faults for a given time.

    python benchmarks/chaos.py [--minutes 10] [--seed 0] [--json FILE]

Each search runs in its own process with fits that crash, hang, leak, fork, exhaust memory, close
files and flood the output. Meanwhile its workers are killed or suspended, their launcher is
killed, its database is restarted, its clock is set back, and the whole search is killed and
resumed. Then the benchmark checks that the search ended on time, that every finished fold is in
the study once, that the result can be computed from the study, and that no process, file or shared
memory is left. It exits with 1 if any check failed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from tests.chaos.clocks import clock_that_goes_back
from tests.chaos.engine import HARMS, Scenario, Verdict, play
from tests.chaos.faults import FAULTS
from tests.postgres import PostgresServer, program_folder

STORAGES = ("sqlite", "journal", "postgres", "none")
DATABASE_AWAY_SECONDS = 3.0


class Outage:
    """A temporary outage of the database."""

    def __init__(self, server: PostgresServer, after: float) -> None:
        self._server, self._after = server, after
        self.state = "before"

    def meddle(self, seconds: float) -> None:
        if self.state == "before" and seconds > self._after:
            self._server.stop()
            self.state = "away"
        elif self.state == "away" and seconds > self._after + DATABASE_AWAY_SECONDS:
            self.end()

    def end(self) -> None:
        if self.state == "away":
            self._server.start()
        self.state = "over"


def one_search(
    rng: random.Random, folder: Path, server: PostgresServer | None
) -> tuple[str, Verdict]:
    kinds = [kind for kind in STORAGES if kind != "postgres" or server is not None]
    kind = rng.choice(kinds)
    options: dict[str, Any] = {
        "budget": rng.choice([10.0, 15.0, 20.0]),
        "players": rng.choice([1, 2, 4]),
        "faults": ("nothing", *rng.sample(sorted(FAULTS), rng.randint(1, len(FAULTS)))),
        "harms": tuple(rng.sample(HARMS, rng.randint(0, len(HARMS)))),
        "seconds": rng.choice([0.001, 0.01, 0.1]),
        "files": rng.choice([0, 0, 64]),
        "seed": rng.randrange(2**31),
    }
    storage = {
        "sqlite": f"sqlite:///{folder}/s.db",
        "journal": f"{folder}/s.journal",
        "none": None,
        "postgres": server.new_database() if server is not None else None,
    }[kind]
    if storage is not None and rng.random() < 0.3:
        options["kill_after"] = 0.5 * options["budget"]
    outage = None
    if kind == "postgres" and rng.random() < 0.5 and server is not None:
        outage = Outage(server, after=0.6 * options["budget"])
        options |= {"meddle": outage.meddle, "mend": outage.end}
    elif rng.random() < 0.2 and (clock := clock_that_goes_back(folder, after=5)):
        options |= {"environment": clock.environment, "meddle": clock.meddle}
    verdict = play(Scenario(folder / "run", storage=storage, **options))
    if outage is not None:
        verdict.faults["database stopped"] += outage.state == "over"
    verdict.faults["clock set back"] += "environment" in options
    verdict.faults["64 files"] += options["files"] > 0
    return f"{kind}, {options}", verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    server = PostgresServer() if program_folder() is not None else None
    faults, outcomes = Counter[str](), Counter[str]()
    late, wrong = [], []
    end = time.monotonic() + 60 * arguments.minutes
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            told, verdict = one_search(rng, Path(folder), server)
        faults += verdict.faults
        outcomes += verdict.outcomes
        late.append(verdict.late_seconds)
        line = "ok" if not verdict.wrong else f"WRONG {verdict.wrong}"
        print(f"{len(late)}: {verdict.late_seconds:+.2f} s, {line}", flush=True)
        if verdict.wrong:
            print(told, flush=True)
            wrong.append({"scenario": told, "wrong": verdict.wrong})
    if server is not None:
        server.close()
    figures = {
        "searches": len(late),
        "faults": dict(faults.most_common()),
        "faults in all": sum(count for name, count in faults.items() if name != "nothing"),
        "outcomes": dict(outcomes.most_common()),
        "seconds after the budget": {
            "median": float(np.median(late)),
            "longest": max(late),
        },
        "wrong": wrong,
    }
    print(json.dumps(figures, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
