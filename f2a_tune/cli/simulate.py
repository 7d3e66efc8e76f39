"""The command ``f2a-tune simulate``, which compares bandit policies by their regret."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from f2a_tune import clock
from f2a_tune.checks import known_name, positive_integer, positive_number
from f2a_tune.cli.values import check_writable

if TYPE_CHECKING:
    from f2a_tune.bandit import Game, Simulation

EXAMPLE = """example:
  f2a-tune simulate --scenario all --policy paper --budget 1e5 --plot regret.png

Scenarios: doubling, middle, first, plain, ads-1, ads-2 (paper: these six of the paper),
crowdsourcing, auction, advertising (all: these nine), cross-validation (requires --table).
Policies: wait-ucb, wait-ucb-side, wait-ucb-full, ucb-simplex, budget-ucb, ucb-bv1, ucb1,
omega-ucb, budgeted-thompson, hazard-thompson, wilson-programming, constant, uniform; paper or
all.
Regret is the sum of (best rate x expected cost - expected reward) over all pulls."""

# A run of this length compiles everything, so that timings exclude compilation.
WARM_UP_COSTS = 30.0


@dataclass(frozen=True)
class Measured:
    """A simulation and its CPU time per epoch in nanoseconds."""

    simulation: Simulation
    ns_per_epoch: float


def add_command(commands: Any) -> None:
    """Add ``simulate`` to the parser."""
    parser = commands.add_parser(
        "simulate",
        help="simulate the games of the paper and compare policies",
        description="Simulate Farewell-to-Arms games and compare policies by their regret.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--scenario", default="paper", help="names, 'paper' or 'all' (default paper)"
    )
    parser.add_argument(
        "--policy", default="paper", help="names, 'paper' or 'all' (default paper)"
    )
    parser.add_argument("--budget", default="1e6", help="total cost of a run (default 1e6)")
    parser.add_argument("--runs", default="10", help="number of independent runs (default 10)")
    parser.add_argument("--seed", default="0", help="random seed, a whole number (default 0)")
    parser.add_argument("--table", help="replay table (.npz) for the scenario cross-validation")
    parser.add_argument(
        "--jobs", default=str(os.cpu_count() or 1), help="number of threads (default: all cores)"
    )
    parser.add_argument("--json", metavar="FILE", help="write all results to this file as JSON")
    parser.add_argument("--plot", metavar="FILE", help="plot regret curves (.png, .svg, .html …)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Check all options, simulate, then write and print the results."""
    from f2a_tune.bandit import PAPER_POLICIES, PAPER_SCENARIOS, POLICIES, SCENARIOS, scenario

    budget = positive_number("--budget", _number("--budget", options.budget))
    runs = positive_integer("--runs", _number("--runs", options.runs))
    jobs = positive_integer("--jobs", _number("--jobs", options.jobs))
    seed = _whole_number("--seed", options.seed)
    known = [*SCENARIOS, "cross-validation"]
    scenarios = _names("--scenario", options.scenario, known, PAPER_SCENARIOS, list(SCENARIOS))
    policies = _names("--policy", options.policy, list(POLICIES), PAPER_POLICIES, list(POLICIES))
    check_writable("--json", options.json)
    check_writable("--plot", options.plot)
    save_plot = _plot_writer(options.plot)
    if options.table is not None and "cross-validation" not in scenarios:
        raise ValueError("--table requires --scenario cross-validation.")
    games = {
        name: scenario(name, table=options.table if name == "cross-validation" else None)
        for name in scenarios
    }
    results = _simulate_all(games, policies, budget, runs, seed, jobs)
    # Write files first, so that minutes of work are kept even if printing fails.
    if options.json is not None:
        Path(options.json).write_text(json.dumps(_figures(results), indent=1) + "\n")
    if save_plot is not None:
        save_plot([m.simulation for row in results.values() for m in row.values()])
    print(_table(results))


def _simulate_all(
    games: dict[str, Game],
    policies: Sequence[str],
    budget: float,
    runs: int,
    seed: int,
    jobs: int,
) -> dict[str, dict[str, Measured]]:
    from tqdm import tqdm

    from f2a_tune.bandit import simulate

    def play(name: str, policy: str) -> Measured:
        started = clock.thread_cpu_seconds()
        result = simulate(games[name], policy, budget, runs, seed)
        seconds = clock.thread_cpu_seconds() - started
        return Measured(result, 1e9 * seconds / max(int(result.epochs.sum()), 1))

    pairs = [(name, policy) for policy in policies for name in games]
    results: dict[str, dict[str, Measured]] = {name: {} for name in games}
    threads = ThreadPoolExecutor(jobs)
    try:
        with tqdm(total=len(pairs), unit="game", disable=not sys.stderr.isatty()) as bar:
            if importlib.util.find_spec("numba") is not None:
                # Compile sequentially, because the compiler holds the GIL anyway.
                for policy in policies:
                    bar.set_description(f"compiling {policy}")
                    game = next(iter(games.values()))
                    simulate(game, policy, WARM_UP_COSTS * game.levels.smallest_cost, 1, seed)
            futures = [threads.submit(play, *pair) for pair in pairs]
            for (name, policy), future in zip(pairs, futures, strict=True):
                results[name][policy] = future.result()
                bar.set_description(f"{policy} on {name}")
                bar.update()
    finally:
        # After Ctrl-C, do not wait for running simulations: they cannot be stopped.
        threads.shutdown(wait=False, cancel_futures=True)
    return results


def _table(results: dict[str, dict[str, Measured]]) -> str:
    names = list(results)
    first = next(iter(results.values()))
    budget = next(iter(first.values())).simulation.checkpoints[-1]
    runs = len(next(iter(first.values())).simulation.epochs)
    rows = [["regret", *names, "ns/epoch"]]
    for policy in first:
        cells = [results[name][policy].simulation for name in names]
        speeds = [results[name][policy].ns_per_epoch for name in names]
        rows.append(
            [
                policy,
                *(f"{_short(cell.mean()[-1])} ± {_short(cell.sd()[-1])}" for cell in cells),
                f"{min(speeds):.0f}–{max(speeds):.0f}",
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    head = f"budget {budget:g}, {runs} run{'s' if runs > 1 else ''}: mean ± sd of the regret"
    return "\n".join([head, lines[0], "-" * len(lines[0]), *lines[1:]])


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _figures(results: dict[str, dict[str, Measured]]) -> dict[str, dict[str, dict[str, Any]]]:
    return {
        name: {policy: _figures_of(measured) for policy, measured in row.items()}
        for name, row in results.items()
    }


def _figures_of(measured: Measured) -> dict[str, Any]:
    result = measured.simulation
    means = result.mean()
    return {
        "regret": float(means[-1]),
        "regret_sd": float(result.sd()[-1]),
        "paper_regret": float(result.paper_regret[:, -1].mean()),
        "paper_regret_sd": float(result.paper_regret[:, -1].std(ddof=int(len(result.epochs) > 1))),
        "epochs": float(result.epochs.mean()),
        "ns_per_epoch": measured.ns_per_epoch,
        "checkpoints": {
            f"{mark:g}": float(mean) for mark, mean in zip(result.checkpoints, means, strict=True)
        },
    }


def _plot_writer(path: str | None) -> Callable[[list[Simulation]], None] | None:
    """Return the function that draws; called early, as the plotting library may be missing."""
    if path is None:
        return None
    kind = Path(path).suffix.lower()
    if kind in (".html", ".htm"):
        import plotly  # noqa: F401

        from f2a_tune.visualization import plot_regret

        return lambda simulations: plot_regret(simulations).write_html(path)
    from matplotlib.figure import Figure

    from f2a_tune.visualization.matplotlib import plot_regret as plot_still

    known = Figure().canvas.get_supported_filetypes()
    if kind.removeprefix(".") not in known:
        raise ValueError(
            f"--plot {path!r} has an unknown extension. Use one of {', '.join(sorted(known))} or "
            "html."
        )
    return lambda simulations: plot_still(simulations).savefig(path, dpi=150)


def _names(
    argument: str, text: str, known: list[str], paper: Sequence[str], everything: list[str]
) -> list[str]:
    groups = {"paper": list(paper), "all": everything}
    names: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        known_name(argument, part, [*known, *groups])
        names += [name for name in groups.get(part, [part]) if name not in names]
    return names


def _whole_number(argument: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{argument} must be a whole number, got {text!r}.") from None


def _number(argument: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{argument} must be a number such as 1e6, got {text!r}.") from None
