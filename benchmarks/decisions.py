"""Measures the cost of a decision, and how it grows with the number of configurations.

    python benchmarks/decisions.py [--most 10000] [--json FILE]

Fits are synthetic and run in virtual time. Prints CPU milliseconds per pull (ask and tell) at each
number of configurations: for the race alone, with proposals of its model or of Optuna's TPE, for a
race of fits that grow through six levels, and for TPE alone in the same study. The last column is
the exponent of the total: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
import optuna

from f2a_tune.outcome import Outcome
from f2a_tune.racing import CurveProposals, Look, ModelProposals, Parameter, Race, Space

SPACE = Space(tuple(Parameter(f"x{i}", "float", 0.0, 1.0) for i in range(5)))
SIZES = (100, 300, 1000, 3000, 10000)
N_FOLDS = 5
EFFORTS = (1, 2, 4, 8, 16, 32)


class Fits:
    """Scores and heavy-tailed durations of random configurations."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def outcome(self, unit: np.ndarray, cutoff: float) -> Outcome:
        seconds = math.exp(1.5 * self.rng.normal())
        if seconds > cutoff:
            return Outcome.gave_up(cutoff)
        score = -float(((unit - 0.3) ** 2).sum()) + 0.1 * self.rng.normal()
        return Outcome.finished(score, seconds)


@dataclass(frozen=True)
class Mark:
    """CPU seconds and pulls when a number of configurations was reached."""

    pulls: int
    cpu_seconds: float


def race(most: int, *, model: bool = False, tpe: bool = False) -> dict[int, Mark]:
    """Return the cost at each number of configurations."""
    fits, runner, units = Fits(), Race(N_FOLDS, 1e9), []
    proposals = ModelProposals(SPACE) if model else None
    study = _study() if tpe else None
    reached, pulls, start = {}, 0, time.process_time()
    while len(units) < most:
        pulls += 1
        offer = None
        if proposals is not None:
            offer = proposals.offer(runner.ledger, units, runner.fresh_cutoff(0.0))
        pull = runner.ask(0.0, offer)
        if pull.fresh:
            trial = None if study is None else study.ask()
            units.append(_unit(trial, offer, fits))
            reached[len(units)] = Mark(pulls, time.process_time() - start)
        outcome = fits.outcome(units[pull.configuration], pull.cutoff_seconds)
        runner.tell(pull, outcome)
        if pull.fresh and trial is not None:
            state = None if outcome.ok else optuna.trial.TrialState.PRUNED
            study.tell(trial, outcome.value, state=state)
    return reached


def growing(most: int) -> dict[int, Mark]:
    """Return the cost at each number of configurations whose fits grow."""
    budget = 20.0 * most
    runner, units = Race(N_FOLDS, budget, efforts=EFFORTS), []
    proposals = CurveProposals(SPACE, budget)
    reached, pulls, now, start = {}, 0, 0.0, time.process_time()
    while len(units) < most:
        pulls += 1
        offer = proposals.offer(runner.ledger, units, runner.time_left(now))
        pull = runner.ask(now, offer)
        if pull.fresh:
            units.append(offer.unit)
            reached[len(units)] = Mark(pulls, time.process_time() - start)
        quality = -float(((units[pull.configuration] - 0.3) ** 2).sum())
        before = int(runner.ledger.curves.reached[pull.configuration, pull.fold])
        looks = [
            Look(level, quality - 1 / EFFORTS[level], 0.3 * EFFORTS[level])
            for level in range(before + 1, pull.level + 1)
        ]
        seconds = 0.3 * (EFFORTS[pull.level] - (EFFORTS[before] if before >= 0 else 0))
        now = min(now + seconds, 0.99 * budget)  # the time must not run out
        runner.tell(pull, Outcome.finished(quality, seconds), looks)
    return reached


def tpe_alone(most: int) -> dict[int, Mark]:
    fits, study, reached, start = Fits(), _study(), {}, time.process_time()
    for count in range(1, most + 1):
        trial = study.ask()
        study.tell(trial, fits.outcome(_unit(trial, None, fits), math.inf).value)
        reached[count] = Mark(count, time.process_time() - start)
    return reached


def _study() -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))


def _unit(trial: optuna.Trial | None, offer, fits: Fits) -> np.ndarray:
    if trial is not None:
        return np.array([trial.suggest_float(f"x{i}", 0, 1) for i in range(5)])
    return SPACE.sample(fits.rng, 1)[0] if offer is None else offer.unit


def _milliseconds(marks: dict[int, Mark], size: int) -> float:
    """Milliseconds per pull, over the last fifth of the way to ``size`` configurations."""
    before, after = marks[int(0.8 * size)], marks[size]
    return 1e3 * (after.cpu_seconds - before.cpu_seconds) / (after.pulls - before.pulls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=10_000)
    parser.add_argument("--most-tpe", type=int, default=1000, help="TPE gets slow")
    parser.add_argument("--most-growing", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sizes = [size for size in SIZES if size <= arguments.most]
    print(f"{'ms a pull, at configurations':32s}" + "".join(f"{size:>9d}" for size in sizes))
    results = {}
    for name, run, most in (
        ("race", race, arguments.most),
        ("race + model", lambda most: race(most, model=True), arguments.most),
        ("race of growing fits", growing, arguments.most_growing),
        ("race + TPE", lambda most: race(most, tpe=True), arguments.most_tpe),
        ("TPE alone", tpe_alone, arguments.most_tpe),
    ):
        marks = run(min(most, arguments.most))
        row = {size: _milliseconds(marks, size) for size in sizes if size in marks}
        last, tenth = max(row), max(row) // 10
        growth = marks[last].cpu_seconds / marks[tenth].cpu_seconds
        exponent = math.log(growth) / math.log(last / tenth)
        results[name] = {"ms": row, "exponent": exponent}
        cells = "".join(f"{row[size]:9.2f}" if size in row else " " * 9 for size in sizes)
        print(f"{name:32s}{cells}   total ~ n^{exponent:.2f}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results))


if __name__ == "__main__":
    main()
