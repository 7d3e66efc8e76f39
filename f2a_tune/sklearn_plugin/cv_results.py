"""Builds ``cv_results_``, the table of a search.

Rows are configurations in the order in which they were drawn. Means are over the folds that a
configuration has; configurations with all folds are ranked before the others.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from f2a_tune.outcome import FAILED, FoldResult, Kind, Scores
from f2a_tune.study.configuration_record import ConfigurationRecord
from f2a_tune.study.fold_levels import chosen_rounds, kind_at
from f2a_tune.study.fold_record import FoldRecord
from f2a_tune.study.status import configuration_status

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class PartialValidationWarning(UserWarning):
    """The winner has not been validated on all folds."""


def cv_results(
    configurations: Sequence[ConfigurationRecord],
    n_folds: int,
    error_score: float,
    *,
    train: bool,
) -> dict[str, Any]:
    """The table as scikit-learn makes it, with a few columns of our own."""
    found: dict[str, Any] = {}
    results = [[one.finished(fold) for fold in range(n_folds)] for one in configurations]
    evaluated = np.array(
        [
            [result is not None or _failed(one, fold) for fold, result in enumerate(row)]
            for one, row in zip(configurations, results, strict=True)
        ]
    ).reshape(-1, n_folds)
    full = np.array([one.count(Kind.FINISHED, *FAILED) == n_folds for one in configurations])
    for name, pick in (("fit_time", _fit_seconds), ("score_time", _score_seconds)):
        times = _table(
            [
                [pick(result, one.folds.get(fold)) for fold, result in enumerate(row)]
                for one, row in zip(configurations, results, strict=True)
            ]
        )
        found[f"mean_{name}"] = _mean(times, evaluated)
        found[f"std_{name}"] = _deviation(times, evaluated)
    all_params = [one.chosen_params for one in configurations]
    found.update(_param_columns(all_params))
    found["params"] = all_params
    for metric in _metrics(results):
        scores = _table([[_score(r, "test_scores", metric) for r in row] for row in results])
        for row, one in enumerate(configurations):
            for fold, pull in one.folds.items():
                if pull.kind in FAILED:
                    scores[row, fold] = error_score
        _store(found, f"test_{metric}", scores, evaluated)
        means = found[f"mean_test_{metric}"]
        found[f"rank_test_{metric}"] = _ranks(means, full)
        if train:
            table = [[_score(r, "train_scores", metric) for r in row] for row in results]
            _store(found, f"train_{metric}", _table(table), evaluated)
    found.update(_own_columns(configurations, n_folds))
    return found


def _own_columns(configurations: Sequence[ConfigurationRecord], n_folds: int) -> dict[str, Any]:
    """Return the columns that scikit-learn does not have."""
    return {
        "n_folds_done": _counts(configurations, Kind.FINISHED),
        "n_given_up": _counts(configurations, Kind.GAVE_UP),
        "n_failed": _counts(configurations, *FAILED),
        "seconds": np.array([one.seconds for one in configurations], dtype=np.float64),
        "rounds": np.array([_rounds(one) for one in configurations], dtype=np.int64),
        "cutoff": np.array([_last_cutoff(one) for one in configurations], dtype=np.float64),
        "in_space": np.array([one.in_space for one in configurations], dtype=bool),
        "status": np.array([_status(one, n_folds) for one in configurations], dtype=object),
    }


def _failed(configuration: ConfigurationRecord, fold: int) -> bool:
    return fold in configuration.folds and configuration.folds[fold].kind in FAILED


def _fit_seconds(result: FoldResult | None, pull: FoldRecord | None) -> float | None:
    if result is not None:
        return result.fit_seconds
    return pull.seconds if pull is not None and pull.kind in FAILED else None


def _score_seconds(result: FoldResult | None, pull: FoldRecord | None) -> float | None:
    if result is not None:
        return result.score_seconds
    return 0.0 if pull is not None and pull.kind in FAILED else None


def _rounds(configuration: ConfigurationRecord) -> int:
    """Return the rounds at the chosen level; 0 if the configuration does not grow."""
    records = list(configuration.folds.values())
    return next(iter(chosen_rounds(records, configuration.level).values()), 0)


def _metrics(results: list[list[FoldResult | None]]) -> list[str]:
    """Names of the metrics; a single one is called "score"."""
    for row in results:
        for result in row:
            if result is not None and isinstance(result.test_scores, Mapping):
                return list(result.test_scores)
            if result is not None:
                return ["score"]
    return ["score"]


def _score(result: FoldResult | None, which: str, metric: str) -> float | None:
    scores: Scores | None = None if result is None else getattr(result, which)
    if scores is None or not isinstance(scores, Mapping):
        return scores
    return scores.get(metric)


def _table(rows: list[list[float | None]]) -> Floats:
    numbers = [[math.nan if value is None else value for value in row] for row in rows]
    return np.array(numbers, dtype=np.float64)


def _store(found: dict[str, Any], name: str, scores: Floats, evaluated: Flags) -> None:
    for fold in range(scores.shape[1]):
        found[f"split{fold}_{name}"] = scores[:, fold].copy()
    found[f"mean_{name}"] = _mean(scores, evaluated)
    found[f"std_{name}"] = _deviation(scores, evaluated)


def warn_of_non_finite(results: dict[str, Any], finished: Sequence[FoldResult]) -> None:
    """As scikit-learn does, if a fit has finished with a score that is no number."""
    for which in ("test", "train"):
        scores = [getattr(result, f"{which}_scores") for result in finished]
        flat = [v for s in scores if s is not None for v in _values(s)]
        if all(math.isfinite(value) for value in flat):
            continue
        for name in [key for key in results if key.startswith(f"mean_{which}_")]:
            text = f"One or more of the {which} scores are non-finite: {results[name]}"
            warnings.warn(text, UserWarning, stacklevel=5)


def _values(scores: Scores) -> list[float]:
    return list(scores.values()) if isinstance(scores, Mapping) else [float(scores)]


def _mean(table: Floats, evaluated: Flags) -> Floats:
    """Over the folds that were evaluated, of which one without a number leaves none."""
    counts = evaluated.sum(axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        partial = np.where(evaluated, table, 0.0).sum(axis=1) / np.where(
            counts > 0, counts, np.nan
        )
        return np.where(evaluated.all(axis=1), np.average(table, axis=1), partial)


def _deviation(table: Floats, evaluated: Flags) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.sqrt(_mean((table - _mean(table, evaluated)[:, None]) ** 2, evaluated))


def _ranks(means: Floats, full: NDArray[np.bool_]) -> NDArray[np.int32]:
    """1 is best; those with all folds come first, those without any score last."""
    if not np.isfinite(means).any():
        return np.ones(len(means), dtype=np.int32)
    known = ~np.isnan(means)
    order = np.full(len(means), -np.inf)
    order[known & ~full] = rankdata(means[known & ~full])
    order[known & full] = len(means) + rankdata(means[known & full])
    return np.asarray(rankdata(-order, method="min"), dtype=np.int32)


def _counts(configurations: Sequence[ConfigurationRecord], *kinds: Kind) -> NDArray[np.int64]:
    return np.array([one.count(*kinds) for one in configurations], dtype=np.int64)


def _last_cutoff(configuration: ConfigurationRecord) -> float:
    cutoffs = [pull.cutoff_seconds for pull in configuration.folds.values()]
    return cutoffs[-1] if cutoffs else math.nan


def _status(configuration: ConfigurationRecord, n_folds: int) -> str:
    level = configuration.level
    kinds = [kind_at(one, level) for one in configuration.folds.values()]
    return configuration_status([str(kind) for kind in kinds if kind is not None], n_folds)


def _param_columns(all_params: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Masked columns, as scikit-learn makes them."""
    names = sorted({name for params in all_params for name in params})
    columns: dict[str, Any] = {}
    for name in names:
        present = [params[name] for params in all_params if name in params]
        column = np.ma.MaskedArray(np.empty(len(all_params), dtype=_dtype(present)), mask=True)
        for row, params in enumerate(all_params):
            if name in params:
                column[row] = params[name]
        columns[f"param_{name}"] = column
    return columns


def _dtype(values: list[Any]) -> Any:
    try:
        found = np.result_type(*[np.min_scalar_type(value) for value in values])
        array = np.array(values)
    except (TypeError, ValueError):
        return object
    plain = array.ndim == 1 and found.kind in "biuf" and array.dtype.kind in "biuf"
    return array.dtype if plain else object


def warn_partial(results: dict[str, Any], index: int, n_folds: int, fits: float) -> None:
    """Say that the winner lacks folds; ``fits`` in a row would validate and refit it."""
    done = results["n_folds_done"][index]
    seconds = results["mean_fit_time"][index] + results["mean_score_time"][index]
    warnings.warn(
        f"The best configuration was validated on only {done} of {n_folds} folds. "
        f"One fit takes about {seconds:.2g} s on this machine; increase time_budget to "
        f"{max(2 * fits * seconds, 1):.0f} or more, or use fewer folds.",
        PartialValidationWarning,
        stacklevel=4,
    )
