"""Data for the command line: a file or a name in, rows, a target and kinds of columns out."""

from __future__ import annotations

import csv
import difflib
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from f2a_tune.checks import known_name
from f2a_tune.sklearn_plugin.models import CLASSIFICATION, REGRESSION

DATASETS = ("breast_cancer", "diabetes", "digits", "iris", "wine")
HEADERS = ("auto", "yes", "no")
TASKS = ("auto", CLASSIFICATION, REGRESSION)
# A column of whole numbers with no more different ones than this is a class.
MOST_CLASSES = 20


@dataclass(frozen=True)
class Table:
    """Rows to learn from."""

    X: Any
    y: Any
    task: str
    categorical: list[Any]
    numeric: list[Any]


def read_table(data: str, target: str | None, header: str, task: str) -> Table:
    """Read the data and find out what it is."""
    known_name("--task", task, TASKS)
    pd = _pandas()
    if data in DATASETS:
        frame, y = _dataset(data)
    else:
        known_name("--header", header, HEADERS)
        frame = _file(pd, Path(data), header, target)
        if target is None:
            raise ValueError("--target is missing: which column is to be predicted?")
        name = _column(list(frame.columns), target)
        y = frame.pop(name)
        kept = y.notna()
        frame, y = frame[kept].dropna(axis=1, how="all"), y[kept].infer_objects()
    if not frame.shape[1]:
        raise ValueError(f"{data!r} has no column but the target.")
    if len(frame) < 10:
        raise ValueError(f"{data!r} has {len(frame)} rows with a target: too few to learn from.")
    frame.columns = [str(column) for column in frame.columns]
    found = _task(pd, y) if task == "auto" else task
    if y.nunique() < 2:
        raise ValueError(f"the target has one value only, {y.iloc[0]!r}: nothing to learn.")
    if found == REGRESSION and not pd.api.types.is_numeric_dtype(y):
        raise ValueError(f"--task regression needs numbers, but the target has {y.iloc[0]!r}.")
    if found == CLASSIFICATION and y.value_counts().min() < 2:
        rare = y.value_counts().idxmin()
        raise ValueError(
            f"the target has {rare!r} once only, so it cannot be in training and test rows: "
            "leave such rows out, or give --task regression."
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
            f"there is no file {str(path)!r}, and no dataset of that name "
            f"({', '.join(DATASETS)}).{hint}"
        )
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pd.read_parquet(path)
        has_header = header == "yes" or (header == "auto" and _looks_like_names(path, target))
        return pd.read_csv(path, header=0 if has_header else None, skipinitialspace=True)
    except ImportError as error:
        raise ImportError('Parquet files need pyarrow: pip install "f2a_tune[cli]".') from error
    except (ValueError, OSError, UnicodeError) as error:
        reason = str(error).splitlines()
        raise ValueError(
            f"{str(path)!r} cannot be read: {reason[0] if reason else error}"
        ) from error


def _looks_like_names(path: Path, target: str | None) -> bool:
    """Names are all there, all different and no numbers, and do not come again as values.

    A first line that has the target's name has names.
    """
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines = itertools.islice(csv.reader(file), 500)
        try:
            rows = [[cell.strip() for cell in row] for row in lines]
        except csv.Error:
            return True  # pandas will say what is wrong
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
            f"--target {target!r} is no column: did you mean {', '.join(near)}? A number counts "
            "columns from 0, from the end with a minus."
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
        raise ImportError('tables need pandas: pip install "f2a_tune[cli]".') from error
    return pandas
