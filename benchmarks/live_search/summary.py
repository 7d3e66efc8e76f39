"""Tables of the results: losses, ranks, ratios to a reference method, and punctuality."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from live_search.job import METHODS, MODELS

Row = dict[str, Any]
LATE_SECONDS = 0.25
# Methods are compared with the first of these that has tuned the model.
REFERENCES = ("flaml", "random", "tpe-hyperband", "halving")
N_RESAMPLES = 5000
# A loss of 0 has no ratio.
SMALLEST_LOSS = 1e-9


@dataclass(frozen=True)
class Pair:
    """A table and a seed: the split on which methods are compared."""

    set: str
    seed: int


@dataclass(frozen=True)
class Ratio:
    """The loss of a method divided by that of the reference on the same split."""

    pair: Pair
    value: float


class Comparison:
    """The searches of one model with one budget."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[str, dict[Pair, Row]] = {}
        for row in rows:
            self._rows.setdefault(row["method"], {})[Pair(row["set"], row["seed"])] = row
        self.methods = [name for name in METHODS if name in self._rows]
        self.reference = next((name for name in REFERENCES if name in self._rows), None)
        self.sets = sorted({pair.set for mine in self._rows.values() for pair in mine})

    def rows(self, method: str) -> list[Row]:
        return list(self._rows[method].values())

    def mean_loss(self, method: str, name: str) -> float | None:
        """Return the mean loss on a table over the seeds that have one."""
        mine = self._rows[method].items()
        losses = [row["loss"] for pair, row in mine if pair.set == name and _has_loss(row)]
        return float(np.mean(losses)) if losses else None

    def n_without_loss(self, method: str, name: str) -> int:
        mine = self._rows[method].items()
        return sum(pair.set == name and not _has_loss(row) for pair, row in mine)

    def ratios(self, method: str) -> list[Ratio]:
        """Return the ratios on the splits on which both methods have a result."""
        theirs = self._rows[self.reference] if self.reference else {}
        return [
            Ratio(pair, _ratio(row["loss"], theirs[pair]["loss"]))
            for pair, row in self._rows[method].items()
            if _has_loss(row) and pair in theirs and _has_loss(theirs[pair])
        ]

    def mean_ratio_over_sets(self, method: str) -> float | None:
        """Return the geometric mean over tables of the ratio of mean losses over shared seeds."""
        if self.reference is None:
            return None
        theirs = self._rows[self.reference]
        found = []
        for name in self.sets:
            pairs = [one.pair for one in self.ratios(method) if one.pair.set == name]
            if pairs:
                mine = np.mean([self._rows[method][pair]["loss"] for pair in pairs])
                found.append(_ratio(float(mine), np.mean([theirs[p]["loss"] for p in pairs])))
        return _geometric_mean(found) if found else None

    def ranks(self) -> dict[str, float]:
        """Return the mean rank on the splits that all methods have searched. None is the last."""
        every = [set(mine) for mine in self._rows.values()]
        pairs = sorted(set.intersection(*every), key=lambda pair: (pair.set, pair.seed))
        if not pairs:
            return {}
        losses = [[_loss_or_inf(self._rows[m][pair]) for m in self.methods] for pair in pairs]
        means = np.mean([rankdata(one) for one in losses], axis=0)
        return dict(zip(self.methods, means.tolist(), strict=True))


def print_summary(rows: Sequence[Row]) -> None:
    """Print the tables of each model and budget."""
    groups = {(row["model"], row["budget"]) for row in rows}
    for model, budget in sorted(groups, key=lambda group: (MODELS.index(group[0]), group[1])):
        mine = [row for row in rows if (row["model"], row["budget"]) == (model, budget)]
        comparison = Comparison(mine)
        print(f"\n{model}, {budget:g} s: {len(mine)} searches")
        _print_losses(comparison)
        _print_methods(comparison)


def _print_losses(comparison: Comparison) -> None:
    print("mean loss on test rows; (n): n of the seeds have no result and are not in the mean")
    print(f"{'':24s}" + "".join(f"{method:>18s}" for method in comparison.methods))
    for name in comparison.sets:
        cells = [_loss_cell(comparison, method, name) for method in comparison.methods]
        print(f"{name[:23]:24s}" + "".join(f"{cell:>18s}" for cell in cells))
    for method in comparison.methods:
        mean = comparison.mean_ratio_over_sets(method)
        if method != comparison.reference and mean is not None:
            label = f"loss of {method} / loss of {comparison.reference}"
            print(f"geometric mean over sets of {label}: {mean:.4f}")


def _loss_cell(comparison: Comparison, method: str, name: str) -> str:
    loss, missing = comparison.mean_loss(method, name), comparison.n_without_loss(method, name)
    cell = "-" if loss is None else f"{loss:.5g}"
    return f"{cell} ({missing})" if missing else cell


def _print_methods(comparison: Comparison) -> None:
    ranks = comparison.ranks()
    heads = ("rank", f"to {comparison.reference}", "95 % interval", "wins")
    heads += (f"late > {LATE_SECONDS:g} s", "latest, s", "no result", "worst ratio")
    print("\n" + _line("method", heads))
    for method in comparison.methods:
        rows = comparison.rows(method)
        late = [row["late"] for row in rows]
        nothing = sum(not _has_loss(row) for row in rows)
        ratio = _ratio_cells([] if method == comparison.reference else comparison.ratios(method))
        cells = (
            f"{ranks[method]:.2f}" if ranks else "-",
            *ratio[:3],
            f"{np.mean([seconds > LATE_SECONDS for seconds in late]):.0%}",
            f"{max(late):.2f}",
            f"{nothing} of {len(rows)}",
            ratio[3],
        )
        print(_line(method, cells))


def _line(method: str, cells: Sequence[str]) -> str:
    widths = (7, 18, 15, 8, 14, 11, 12)
    aligned = [f"{cell:>{width}s}" for cell, width in zip(cells, widths, strict=False)]
    return f"{method:16s}{''.join(aligned)}  {cells[-1]}"


def _ratio_cells(ratios: list[Ratio]) -> list[str]:
    """Return the geometric mean, its interval, the wins and the worst ratio."""
    if not ratios:
        return ["-"] * 4
    values = [ratio.value for ratio in ratios]
    low, high = _interval(values)
    worst = max(ratios, key=lambda ratio: ratio.value)
    return [
        f"{_geometric_mean(values):.4f}",
        f"{low:.3f}-{high:.3f}",
        f"{sum(value < 1 for value in values)}/{len(values)}",
        f"{worst.value:.3f} ({worst.pair.set}, seed {worst.pair.seed})",
    ]


def _has_loss(row: Row) -> bool:
    return row["loss"] is not None and math.isfinite(row["loss"])


def _loss_or_inf(row: Row) -> float:
    return float(row["loss"]) if _has_loss(row) else math.inf


def _ratio(mine: float, theirs: float) -> float:
    return max(mine, SMALLEST_LOSS) / max(theirs, SMALLEST_LOSS)


def _geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the geometric mean."""
    logs, rng = np.log(values), np.random.default_rng(0)
    means = logs[rng.integers(len(logs), size=(N_RESAMPLES, len(logs)))].mean(axis=1)
    low, high = np.exp(np.quantile(means, [0.025, 0.975]))
    return float(low), float(high)
