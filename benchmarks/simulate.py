"""Compares the simulator's ns per epoch with plain Python and with a public bandit library.

    python benchmarks/simulate.py [--budget 1e7] [--json FILE]

All columns come from one run on one machine. The library is MABWiser (UCB1 with the same radius),
used as in its documentation, on the plain-bandit scenario, which ours simulates too.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from f2a_tune.bandit import PAPER_SCENARIOS, POLICIES, scenario, simulate

PLAIN_PYTHON_BUDGET = 4_000.0
LIBRARY_EPOCHS = 3_000


def compiled_ns(name: str, budget: float) -> dict[str, float]:
    """Return CPU nanoseconds per epoch of a policy on every scenario of the paper."""
    speeds = {}
    for game_name in PAPER_SCENARIOS:
        game = scenario(game_name)
        simulate(game, name, 100, runs=1, engine="compiled")
        started = time.thread_time()
        result = simulate(game, name, budget, runs=1, engine="compiled")
        speeds[game_name] = 1e9 * (time.thread_time() - started) / result.epochs.sum()
    return speeds


def plain_python_ns(name: str) -> float:
    """Return CPU nanoseconds per epoch in plain Python on the scenario doubling."""
    started = time.thread_time()
    result = simulate(scenario("doubling"), name, PLAIN_PYTHON_BUDGET, runs=1, engine="python")
    return 1e9 * (time.thread_time() - started) / result.epochs.sum()


def library_ns() -> float:
    """Return CPU nanoseconds per round of MABWiser's UCB1 on the plain bandit's three arms."""
    from mabwiser.mab import MAB, LearningPolicy

    rng = np.random.default_rng(0)
    chances = [0.5, 0.7, 1.0]
    bandit = MAB(arms=[0, 1, 2], learning_policy=LearningPolicy.UCB1(alpha=1.0))
    bandit.fit(decisions=[0, 1, 2], rewards=[int(rng.random() < p) for p in chances])
    started = time.thread_time()
    for _ in range(LIBRARY_EPOCHS):
        arm = bandit.predict()
        bandit.partial_fit(decisions=[arm], rewards=[int(rng.random() < chances[arm])])
    return 1e9 * (time.thread_time() - started) / LIBRARY_EPOCHS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=1e7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    library = library_ns()
    print(f"MABWiser UCB1, plain bandit: {library:,.0f} ns a round\n")
    print(
        f"{'ns an epoch':20}"
        + "".join(f"{name:>10}" for name in PAPER_SCENARIOS)
        + f"{'python':>12}{'python/compiled':>17}{'library/compiled':>18}"
    )
    rows = {}
    for name in POLICIES:
        compiled, plain = compiled_ns(name, options.budget), plain_python_ns(name)
        rows[name] = {
            "compiled_ns": compiled,
            "python_ns": plain,
            "python_ratio": plain / compiled["doubling"],
            "library_ratio": library / compiled["plain"],
        }
        print(
            f"{name:20}"
            + "".join(f"{value:10.0f}" for value in compiled.values())
            + f"{plain:12,.0f}{rows[name]['python_ratio']:16.0f}x"
            + f"{rows[name]['library_ratio']:17.0f}x"
        )
    if options.json:
        options.json.write_text(json.dumps({"library_ns": library, "policies": rows}, indent=1))


if __name__ == "__main__":
    main()
