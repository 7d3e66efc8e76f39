"""Records learning curves of real fits, for ``replay.py --curves``.

    python benchmarks/record.py --data DIR --out DIR [--problems lgbm-magic,…]
        [--configurations 64] [--minutes 30] [--jobs 1]

Every problem is a search space on a real table. Each of its random configurations is fitted on
five folds. At a doubling ladder of rounds (trees or epochs) the model is scored on the fold's own
test part and on rows that no fold has seen. A fit that has taken eight seconds is not continued to
its next level, so curves differ in length. Every configuration is one line in
``DIR/PROBLEM.jsonl``; those in the file are not repeated, so that recording can go on in parts. At
the end the lines become ``DIR/PROBLEM.npz``.

Seconds are processor seconds of a fit with one thread, and include scoring the fold at every level
but not the unseen rows. So other programs may run beside the recording.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from joblib import Parallel, delayed

from recording.curves import Curve, record_curve
from recording.problems import PROBLEMS, CurveProblem, load

N_FOLDS = 5


def main() -> None:
    arguments = _parse()
    names = arguments.problems.split(",") if arguments.problems else list(PROBLEMS)
    unknown = [name for name in names if name not in PROBLEMS]
    if unknown:
        raise SystemExit(f"--problems: {unknown[0]!r} is unknown. Known: {', '.join(PROBLEMS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * arguments.minutes
    # One configuration of every problem in turn, so that a short recording has all problems.
    jobs = [
        (name, index)
        for index in range(arguments.configurations)
        for name in names
        if index not in _recorded(arguments.out / f"{name}.jsonl")
    ]
    Parallel(n_jobs=arguments.jobs)(
        delayed(_record)(name, index, arguments.data, arguments.out, end) for name, index in jobs
    )
    for name in names:
        _pack(PROBLEMS[name], arguments.out)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with pmlb/ and .csv sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for the recordings")
    parser.add_argument("--problems", help="names, separated by commas; all by default")
    parser.add_argument("--configurations", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--jobs", type=int, default=1, help="fits at the same time")
    return parser.parse_args()


def _recorded(path: Path) -> dict[int, dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {row["index"]: row for row in map(json.loads, lines)}


def _record(name: str, index: int, data: Path, out: Path, end: float) -> None:
    if time.monotonic() > end:
        return
    warnings.simplefilter("ignore")
    problem = PROBLEMS[name]
    configuration = problem.configuration(index)
    curves = [
        record_curve(problem, configuration, load(problem, data, fold, N_FOLDS))
        for fold in range(N_FOLDS)
    ]
    row = {"index": index, "configuration": configuration, "curves": [_lists(c) for c in curves]}
    # One write of one line: several processes may append to the same file.
    with (out / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    longest = max(curve.seconds[-1] for curve in curves)
    print(f"{name} {index}: {longest:.1f} s, {len(curves[0].seconds)} levels", flush=True)


def _lists(curve: Curve) -> dict[str, list[float]]:
    return {
        "seconds": [round(value, 5) for value in curve.seconds],
        "scores": [round(value, 6) for value in curve.scores],
        "test": [round(value, 6) for value in curve.test],
    }


def _pack(problem: CurveProblem, out: Path) -> None:
    """Write all recorded configurations of a problem as one table."""
    rows = _recorded(out / f"{problem.name}.jsonl")
    if not rows:
        return
    ordered = [rows[index] for index in sorted(rows)]
    shape = (len(ordered), N_FOLDS, len(problem.levels))
    tables = {name: np.full(shape, np.nan) for name in ("seconds", "scores", "test")}
    for place, row in enumerate(ordered):
        for fold, curve in enumerate(row["curves"]):
            for name, table in tables.items():
                table[place, fold, : len(curve[name])] = curve[name]
    np.savez_compressed(
        out / f"{problem.name}.npz",
        **{name: table.astype(np.float32) for name, table in tables.items()},
        levels=np.array(problem.levels),
        configurations=json.dumps([row["configuration"] for row in ordered]),
        space=json.dumps(problem.space_as_json()),
    )
    print(f"{problem.name}: {len(ordered)} configurations")


if __name__ == "__main__":
    main()
