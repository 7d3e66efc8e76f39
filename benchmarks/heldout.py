"""Compares ``f2a-tune tune`` with default models on held-out rows.

    python benchmarks/heldout.py TABLE.csv [--budget 30s] [--splits 20] [--jobs 2] [--repeats auto]
        [--json FILE]

Every split holds out a quarter of the rows. ``f2a-tune tune --estimator auto`` uses the other rows
within its budget, the command's logistic or ridge regression is fitted to the same rows with its
defaults, and both are scored on the held-out rows. One split of a small table says little, so the
mean difference over all splits is reported with its standard error. The splits share rows, so the
standard error is likely to be too small.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from f2a_tune.cli.job import Job

HOLDOUT = 0.25


def main() -> None:
    """Tune and score, split by split."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help="CSV file, the last column is the target")
    parser.add_argument("--budget", default="30s")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--repeats", default="auto", help="as in f2a-tune tune")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for seed in range(options.splits):
        row = {"split": seed, "default": default_score(options.table, seed)}
        row |= tuned(options, seed)
        rows.append(row)
        print(
            f"split {seed}: default {row['default']:.3f}, tuned {row['tuned']:.3f} "
            f"(in its own folds {row['folds']:.3f}) by {row['model']}",
            flush=True,
        )
    found = summary(rows)
    print(json.dumps(found, indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps({"summary": found, "splits": rows}, indent=1))


def default_score(table: str, seed: int) -> float:
    """Return the score of the model that the command tries first, without tuning."""
    job = Job(table, "-1", "linear", None, None, n_folds=5, seed=seed, seconds=1, holdout=HOLDOUT)
    data = job.table()
    X, X_kept, y, y_kept = job.split(data)
    return float(job.search(data).estimator.fit(X, y).score(X_kept, y_kept))


def tuned(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Return the JSON that the command prints."""
    command = [sys.executable, "-m", "f2a_tune", "tune", options.table, "--target", "-1"]
    command += ["--estimator", "auto", "--budget", options.budget, "--jobs", options.jobs]
    command += ["--repeats", options.repeats, "--holdout", str(HOLDOUT), "--json"]
    done = subprocess.run(
        [*command, "--seed", str(seed)], check=True, capture_output=True, text=True
    )
    result = json.loads(done.stdout)
    return {
        "tuned": result["holdout_score"],
        "folds": result["best_score"],
        "model": result["best_params"]["model"].partition("(")[0],
        "fully_validated": result["fully_validated"],
        "n_configurations": result["n_configurations"],
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return means over the splits with their standard error."""
    gains = [row["tuned"] - row["default"] for row in rows]
    error = statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else math.nan
    return {
        "default": statistics.mean(row["default"] for row in rows),
        "tuned": statistics.mean(row["tuned"] for row in rows),
        "gain": statistics.mean(gains),
        "standard error of the gain": error,
        "better, tied, worse": [
            sum(gain > 0 for gain in gains),
            sum(gain == 0 for gain in gains),
            sum(gain < 0 for gain in gains),
        ],
    }


if __name__ == "__main__":
    main()
