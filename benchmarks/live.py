"""Compares tuners on real tables, with real fits, a wall-clock budget and held-out rows.

    python benchmarks/live.py --data DIR --results live.jsonl [--sets churn,krkopt,…]
        [--models lightgbm,xgboost,hgb,mlp] [--methods ours,flaml,…] [--budget 60] [--seeds 1]
        [--workers 2] [--minutes 30]
    python benchmarks/live.py --results live.jsonl --summary

DIR or DIR/pmlb contains tables as .tsv.gz, with a header and the column ``target``. Every search
is one line in the results file. Searches in the file are not repeated, so that the benchmark can
run in parts. Each search runs in a fresh process, which is killed after four budgets and a minute.
Its seconds begin when the table is read and the libraries are imported, and include the start of
its workers and the refit of the winner. Methods whose library is not installed are skipped.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent))

from live_search.job import LIBRARIES, METHODS, MODELS, Job
from live_search.summary import print_summary

Row = dict[str, Any]
# A search is killed after this many budgets and seconds, which include the imports.
KILL_BUDGETS = 4.0
KILL_SECONDS = 60.0


def main() -> None:
    arguments = _parse()
    if arguments.one is not None:
        _be_child(arguments)
        return
    done = _read(arguments.results)
    if not arguments.summary:
        _run_all(arguments, done)
    print_summary(list(done.values()))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with tables (.tsv.gz)")
    parser.add_argument("--results", type=Path, default=Path("live.jsonl"))
    parser.add_argument("--sets", help="names of tables, separated by commas; by default all")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--budget", type=float, default=60.0, help="seconds, refit included")
    parser.add_argument("--seeds", type=int, default=1, help="number of splits per table")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=math.inf, help="then start no more")
    parser.add_argument("--summary", action="store_true", help="print the results and end")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.data is None and not arguments.summary:
        parser.error("--data is required: the folder with the tables")
    if arguments.data is not None and not _tables(arguments.data):
        parser.error(f"--data: {arguments.data} contains no tables (*.tsv.gz)")
    for option, known in (("models", MODELS), ("methods", METHODS)):
        unknown = set(getattr(arguments, option).split(",")) - set(known)
        if unknown:
            parser.error(f"--{option}: {min(unknown)!r} is unknown. Known: {', '.join(known)}")
    for name in ("budget", "seeds", "workers", "minutes"):
        if not getattr(arguments, name) > 0:
            parser.error(f"--{name} must be above 0, got {getattr(arguments, name)}")
    return arguments


def _tables(folder: Path) -> dict[str, Path]:
    paths = [*sorted(folder.glob("*.tsv.gz")), *sorted((folder / "pmlb").glob("*.tsv.gz"))]
    return {path.name.removesuffix(".tsv.gz"): path for path in paths}


def _read(path: Path) -> dict[Job, Row]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {Job.of_row(row): row for row in map(json.loads, lines)}


def _run_all(arguments: argparse.Namespace, done: dict[Job, Row]) -> None:
    end = time.monotonic() + 60 * arguments.minutes
    for job in _jobs(arguments):
        if job in done:
            continue
        if time.monotonic() > end:
            print("out of time: run it again to go on")
            break
        row = _run(job, arguments) | {"workers": arguments.workers}
        done[job] = row
        with arguments.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)


def _jobs(arguments: argparse.Namespace) -> list[Job]:
    tables = _tables(arguments.data)
    sets = arguments.sets.split(",") if arguments.sets else list(tables)
    missing = sorted(set(sets) - set(tables))
    if missing:
        raise SystemExit(f"--sets: there is no table {missing[0]}. Known: {', '.join(tables)}")
    methods = _installed("method", arguments.methods.split(","))
    models = _installed("model", arguments.models.split(","))
    return [
        Job(name, model, method, arguments.budget, seed)
        for seed in range(arguments.seeds)
        for name in sets
        for model in models
        for method in methods
        if METHODS[method].can_tune(model)
    ]


def _installed(kind: str, names: list[str]) -> list[str]:
    found = []
    for name in names:
        library = LIBRARIES.get(name)
        if library is None or importlib.util.find_spec(library) is not None:
            found.append(name)
        else:
            print(f"{kind} {name} is skipped: {library} is not installed")
    return found


def _run(job: Job, arguments: argparse.Namespace) -> Row:
    """Run one search in a fresh process and return its row, whatever happens to the process."""
    limit = KILL_BUDGETS * job.budget + KILL_SECONDS
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        begin = time.monotonic()
        process = subprocess.Popen(_command(job, arguments, answer), env=_environment())
        try:
            process.wait(limit)
            why = f"the process ended with code {process.returncode}"
        except subprocess.TimeoutExpired:
            why = f"killed after {limit:g} s"
        finally:
            _kill_tree(process)
        if answer.exists():
            return json.loads(answer.read_text())
        return job.row(time.monotonic() - begin, why)


def _command(job: Job, arguments: argparse.Namespace, answer: Path) -> list[str]:
    command = [sys.executable, __file__, "--data", str(arguments.data), "--answer", str(answer)]
    return [*command, "--workers", str(arguments.workers), "--one", json.dumps(asdict(job))]


def _environment() -> dict[str, str]:
    # Fits run beside each other, so each of them gets one core.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return os.environ | threads | {"PYTHONWARNINGS": "ignore"}


def _kill_tree(process: subprocess.Popen) -> None:
    if process.poll() is not None:
        return
    tree = psutil.Process(process.pid)
    for one in [tree, *tree.children(recursive=True)]:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


def _be_child(arguments: argparse.Namespace) -> None:
    from live_search.child import answer

    job = Job(**json.loads(arguments.one))
    row = answer(job, _tables(arguments.data)[job.set], arguments.workers)
    # Written beside and renamed, so that a killed process leaves no half of an answer.
    beside = arguments.answer.with_suffix(".part")
    beside.write_text(json.dumps(row))
    beside.rename(arguments.answer)


if __name__ == "__main__":
    main()
