"""Runs the property tests with new seeds for a given time.

    python benchmarks/fuzz.py [--minutes 10] [--factor 10] [--jobs 2] [--tests tests/fuzz]

The tests are repeated, each time with another seed and that many times the examples of the test
command, until the time is up or until the first failure, whose example Hypothesis prints. The
number of examples is counted, also over several runs with the same --count FILE.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--factor", type=float, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tests", default="tests/fuzz", help="files or folders, with commas")
    parser.add_argument("--count", type=Path, help="file that keeps the number of examples")
    arguments = parser.parse_args()
    end, total = time.monotonic() + 60 * arguments.minutes, _kept(arguments.count)
    while time.monotonic() < end:
        total += _round(arguments)
        if arguments.count is not None:
            arguments.count.write_text(str(total))
        print(f"{total} examples so far", flush=True)
    print(f"{total} examples: no failure")


def _kept(path: Path | None) -> int:
    return int(path.read_text()) if path is not None and path.exists() else 0


def _round(arguments: argparse.Namespace) -> int:
    """Run all tests once with a new seed; returns the number of examples."""
    seed = random.SystemRandom().randrange(2**31)
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(arguments.jobs), "-m", ""]
    # A test with many more examples takes longer than the timeout of the test command.
    command += ["--timeout=0", *arguments.tests.split(","), f"--hypothesis-seed={seed}"]
    done = subprocess.run(
        [*command, "--hypothesis-show-statistics"],
        cwd=ROOT,
        env=dict(os.environ, F2A_TUNE_EXPLORE=str(arguments.factor)),
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nseed {seed} found something")
    return sum(int(count) for count in re.findall(r"(\d+) passing[, ]", done.stdout))


if __name__ == "__main__":
    main()
