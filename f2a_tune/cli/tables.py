"""Reads the data of the command line from a file or a scikit-learn dataset.

The task and the types of columns are inferred from the values, unless options specify them.
"""

from __future__ import annotations

import csv
import difflib
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from f2a_tune.checks import known_name
from f2a_tune.cli.presets import CLASSIFICATION, REGRESSION

DATASETS = ("breast_cancer", "diabetes", "digits", "iris", "wine")
HEADERS = ("auto", "yes", "no")
TASKS = ("auto", CLASSIFICATION, REGRESSION)
# A target of whole numbers with at most this many distinct values is a class.
MOST_CLASSES = 20


@dataclass(frozen=True)
class Table:
    """Features, target, task and types of columns."""

    X: Any
    y: Any
    task: str
    categorical: list[Any]
    numeric: list[Any]


def read_table(data: str, target: str | None, header: str, task: str) -> Table:
    """Read the data, and infer the task and the types of columns."""
    known_name("--task", task, TASKS)
    pd = _pandas()
    if data in DATASETS:
        frame, y = _dataset(data)
    else:
        known_name("--header", header, HEADERS)
        frame = _file(pd, Path(data), header, target)
        if target is None:
            raise ValueError("--target is missing. Pass the column to predict.")
        name = _column(list(frame.columns), target)
        y = frame.pop(name)
        kept = y.notna()
        frame, y = frame[kept].dropna(axis=1, how="all"), y[kept].infer_objects()
    if not frame.shape[1]:
        raise ValueError(f"{data!r} has no column besides the target. Add columns to learn from.")
    if len(frame) < 10:
        raise ValueError(f"{data!r} has {len(frame)} rows with a target, but 10 are required.")
    frame.columns = [str(column) for column in frame.columns]
    found = _task(pd, y) if task == "auto" else task
    if y.nunique() < 2:
        raise ValueError(f"the target has only one value, {y.iloc[0]!r}. Pass another --target.")
    if found == REGRESSION and not pd.api.types.is_numeric_dtype(y):
        raise ValueError(
            f"--task regression requires a numeric target, but it contains {y.iloc[0]!r}. Use "
            "--task classification or another --target."
        )
    if found == CLASSIFICATION and y.value_counts().min() < 2:
        rare = y.value_counts().idxmin()
        raise ValueError(
            f"the target contains {rare!r} only once, so it cannot be in both training and test "
            "rows. Remove such rows, or pass --task regression."
        )
    numeric = [c for c in frame.columns if pd.api.types.is_numeric_dtype(frame[c])]
    categorical = [c for c in frame.columns if c not in numeric]
    frame[categorical] = frame[categorical].astype(object)
    frame = frame.where(frame.notna(), float("nan"))
    return Table(frame, y.to_numpy(), found, categorical, numeric)


def _dataset(name: str) -> tuple[Any, Any]:
    from sklearn import datasets

    loaded = getattr(datasets, f"load_{name}")(as_frame=True)
    return loaded.data.copy(), loaded.target


def _file(pd: Any, path: Path, header: str, target: str | None) -> Any:
    if not path.is_file():
        near = difflib.get_close_matches(str(path), DATASETS, n=1)
        hint = f" Did you mean the dataset {near[0]!r}?" if near else ""
        raise ValueError(
            f"there is no file {str(path)!r} and no dataset of that name. Datasets: "
            f"{', '.join(DATASETS)}.{hint}"
        )
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pd.read_parquet(path)
        has_header = header == "yes" or (header == "auto" and _looks_like_names(path, target))
        return pd.read_csv(path, header=0 if has_header else None, skipinitialspace=True)
    except ImportError as error:
        raise ImportError('Parquet files require pyarrow: pip install "f2a_tune[cli]".') from error
    except (ValueError, OSError, UnicodeError) as error:
        reason = str(error).splitlines()
        raise ValueError(
            f"{str(path)!r} cannot be read: {reason[0] if reason else error}"
        ) from error


def _looks_like_names(path: Path, target: str | None) -> bool:
    """Whether the first line contains column names.

    It does if it contains the target's name, or if its cells are not empty, distinct, not numbers,
    and do not occur as values of their columns.
    """
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines = itertools.islice(csv.reader(file), 500)
        try:
            rows = [[cell.strip() for cell in row] for row in lines]
        except csv.Error:
            return True  # pandas reports the error
    if rows and target in rows[0]:
        return True
    if not rows or any(not cell or _is_number(cell) for cell in rows[0]):
        return False
    pairs = (pair for row in rows[1:] for pair in zip(rows[0], row, strict=False))
    return len(set(rows[0])) == len(rows[0]) and not any(name == cell for name, cell in pairs)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _column(columns: list[Any], target: str) -> Any:
    by_name = {str(column): column for column in columns}
    if target in by_name:
        return by_name[target]
    try:
        return columns[int(target)]
    except (ValueError, IndexError):
        near = difflib.get_close_matches(target, by_name, n=3, cutoff=0.4) or list(by_name)[:10]
        raise ValueError(
            f"--target {target!r} is not a column. Pass a name such as {', '.join(near)}, or a "
            "zero-based column number (-1: the last column)."
        ) from None


def _task(pd: Any, y: Any) -> str:
    if not pd.api.types.is_numeric_dtype(y) or pd.api.types.is_bool_dtype(y):
        return CLASSIFICATION
    whole = bool((y == y.round()).all())
    return CLASSIFICATION if whole and y.nunique() <= MOST_CLASSES else REGRESSION


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError('tables require pandas: pip install "f2a_tune[cli]".') from error
    return pandas
