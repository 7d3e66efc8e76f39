"""Summarizes the records of many runs as JSON and as printed tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from replaying.engine import Record
from replaying.table import Floats, Table

CHECKPOINTS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
SHARES = tuple(float(share) for share in np.geomspace(0.002, 1.0, 80))
REFERENCE = "tpe"
# Without a recommendation, a user would take any configuration; half of all are better.
NOTHING_SHARE, NOTHING_REGRET = 0.5, 1.0
# A recommendation whose training diverged has a regret of thousands, and one such table would
# dominate the mean. The printed means (not the JSON) therefore use this maximum.
WORST_REGRET = 5.0
RESAMPLES = 400


@dataclass(frozen=True)
class Run:
    """One method on one table with one seed."""

    table: str
    method: str
    seed: int
    record: Record


def as_json(runs: list[Run], tables: dict[str, Table], budget: float) -> dict[str, Any]:
    """Return the figures of every table and method, one entry per seed."""
    result: dict[str, Any] = {}
    for table in tables.values():
        for method in _methods(runs):
            of_pair = [run for run in runs if (run.table, run.method) == (table.name, method)]
            if of_pair:
                of_pair.sort(key=lambda run: run.seed)
                entry = _entry(of_pair, table, budget)
                result.setdefault(table.name, {})[method] = entry
    return result


def _entry(runs: list[Run], table: Table, budget: float) -> dict[str, Any]:
    records = [run.record for run in runs]
    better, regret = zip(
        *(_figures(record, table, CHECKPOINTS) for record in records), strict=True
    )
    seconds = budget * table.mean_full_seconds
    given_up = [record.seconds_by_kind.get("gave_up", 0.0) for record in records]
    return {
        "checkpoints": list(CHECKPOINTS),
        # One list per checkpoint, one number per seed.
        "regret": np.array(regret).T.tolist(),
        "better_share": np.array(better).T.tolist(),
        "reward_per_second": float(np.mean([record.reward / seconds for record in records])),
        "seconds_given_up": float(np.mean(given_up)),
        "decision_ms": float(
            np.mean([1e3 * record.decision_seconds / max(record.pulls, 1) for record in records])
        ),
        "pulls": float(np.mean([record.pulls for record in records])),
        "budget_seconds": seconds,
        "curve_shares": list(SHARES),
        "curve_better_share": _curve(records, table).tolist(),
    }


def _figures(record: Record, table: Table, shares: tuple[float, ...]) -> tuple[Floats, Floats]:
    rows = [record.row_at(share) for share in shares]
    better = [NOTHING_SHARE if row is None else table.better_share_of(row) for row in rows]
    regret = [NOTHING_REGRET if row is None else table.regret_of(row) for row in rows]
    return np.array(better), np.array(regret)


def _curve(records: list[Record], table: Table) -> Floats:
    """Geometric mean over seeds of the share that is better, over time."""
    curves = [floored(_figures(record, table, SHARES)[0], len(table.truth)) for record in records]
    return np.asarray(np.exp(np.log(curves).mean(axis=0)))


def floored(better: Floats, n: int) -> Floats:
    """Shares with the best configuration counted as half a place, so that a logarithm exists."""
    return np.maximum(better, 0.5 / n)


def _methods(runs: list[Run]) -> list[str]:
    return list(dict.fromkeys(run.method for run in runs))


def print_summary(figures: dict[str, Any], sizes: dict[str, int]) -> None:
    """Print all tables."""
    methods = list(dict.fromkeys(name for entry in figures.values() for name in entry))
    tables = list(figures)
    print(f"\n{len(tables)} tables: {', '.join(tables)}")
    print("\nbetter_share in %: geometric mean [95 % bootstrap interval over tables and seeds]")
    _print_rows(methods, lambda method: _share_cells(figures, sizes, method))
    print(f"\nregret: mean, each at most {WORST_REGRET:g} [95 % bootstrap interval]")
    _print_rows(methods, lambda method: _regret_cells(figures, method))
    _print_speed(figures, methods)
    _print_wins(figures, sizes, methods)
    print("\nbeside it (means over tables)")
    print(f"{'method':22s} {'pulls':>8s} {'ms/pull':>8s} {'given up':>9s} {'reward/s':>9s}")
    for method in methods:
        entries = [figures[table][method] for table in tables if method in figures[table]]
        given_up = np.mean(
            [entry["seconds_given_up"] / entry["budget_seconds"] for entry in entries]
        )
        print(
            f"{method:22s} {np.mean([entry['pulls'] for entry in entries]):8.0f} "
            f"{np.mean([entry['decision_ms'] for entry in entries]):8.2f} {given_up:9.1%} "
            f"{_relative_reward(figures, method):9.2f}"
        )
    print("(reward/s: sum of rank scores of finished fits per second, random search = 1)")


def _relative_reward(figures: dict[str, Any], method: str) -> float:
    """Geometric mean over tables of the ratio to random search; NaN without random search."""
    ratios = [
        entry[method]["reward_per_second"] / entry["random"]["reward_per_second"]
        for entry in figures.values()
        if "random" in entry and method in entry
    ]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")


def _print_rows(methods: list[str], cells: Any) -> None:
    heads = " ".join(f"{share:>18.0%}" for share in CHECKPOINTS)
    print(f"{'method':22s} {heads} {'mean':>8s}")
    for method in methods:
        middle, low, high = cells(method)
        texts = [
            f"{value:7.3g} [{down:.2g}, {up:.2g}]".rjust(18)
            for value, down, up in zip(middle, low, high, strict=True)
        ]
        print(f"{method:22s} {' '.join(texts)} {np.mean(middle):8.4f}")


def _share_cells(figures: dict[str, Any], sizes: dict[str, int], method: str) -> Any:
    blocks = [
        np.log(floored(np.array(entry[method]["better_share"]).T, sizes[table]))
        for table, entry in figures.items()
        if method in entry
    ]
    return tuple(100 * np.exp(cells) for cells in _bootstrap(blocks))


def _regret_cells(figures: dict[str, Any], method: str) -> Any:
    blocks = [
        np.minimum(np.array(entry[method]["regret"]).T, WORST_REGRET)
        for entry in figures.values()
        if method in entry
    ]
    return _bootstrap(blocks)


def _bootstrap(blocks: list[Floats]) -> tuple[Floats, Floats, Floats]:
    """Mean over tables and seeds, with an interval from resampling both."""
    rng = np.random.default_rng(0)
    middle = np.mean([block.mean(axis=0) for block in blocks], axis=0)
    draws = []
    for _ in range(RESAMPLES):
        chosen = rng.integers(len(blocks), size=len(blocks))
        means = [
            blocks[index][rng.integers(len(blocks[index]), size=len(blocks[index]))].mean(axis=0)
            for index in chosen
        ]
        draws.append(np.mean(means, axis=0))
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    return middle, low, high


def speed_ups(figures: dict[str, Any], method: str) -> dict[str, float]:
    """Per table: TPE's time to its own final quality over this method's time to the same.

    A method that never reaches it counts as if it did at twice the budget.
    """
    result = {}
    for table, entry in figures.items():
        if REFERENCE in entry and method in entry:
            goal = entry[REFERENCE]["curve_better_share"][-1]
            times = [
                next(
                    (
                        share
                        for share, better in zip(
                            entry[name]["curve_shares"],
                            entry[name]["curve_better_share"],
                            strict=True,
                        )
                        if better <= goal * (1 + 1e-9)
                    ),
                    2.0,
                )
                for name in (REFERENCE, method)
            ]
            result[table] = times[0] / times[1]
    return result


def _print_speed(figures: dict[str, Any], methods: list[str]) -> None:
    print(f"\nspeed-up to {REFERENCE}'s final quality (its time / the method's), geometric mean")
    for method in methods:
        ratios = speed_ups(figures, method)
        if ratios:
            mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
            each = ", ".join(f"{table} {ratio:.1f}" for table, ratio in ratios.items())
            print(f"{method:22s} {mean:6.2f}   ({each})")


def _print_wins(figures: dict[str, Any], sizes: dict[str, int], methods: list[str]) -> None:
    """Print on how many tables a method has the smallest final share; ties are split."""
    wins = dict.fromkeys(methods, 0.0)
    behind_random = {method: [] for method in methods}
    for table, entry in figures.items():
        finals = {method: _final(entry[method], sizes[table]) for method in entry}
        best = [method for method in finals if finals[method] <= min(finals.values()) * (1 + 1e-9)]
        for method in best:
            wins[method] += 1 / len(best)
        for method in finals:
            if finals[method] > finals.get("random", np.inf) * (1 + 1e-9):
                behind_random[method].append(table)
    print(
        f"\nwins at the end of the budget, of {len(figures)} tables; tables lost to random search"
    )
    for method in methods:
        print(f"{method:22s} {wins[method]:5.1f}   {', '.join(behind_random[method]) or '-'}")


def _final(entry: dict[str, Any], size: int) -> float:
    """Geometric mean over seeds of the share that is better at the end."""
    return float(np.exp(np.log(floored(np.array(entry["better_share"][-1]), size)).mean()))
