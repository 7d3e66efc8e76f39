"""A tuning job of the command line, which can create its search and read its data.

The job is stored in the study as JSON, so that ``f2a-tune worker`` can create the same search on
another machine. It contains no code, except the name of a factory that the user has passed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from f2a_tune.cli.tables import Table, read_table

if TYPE_CHECKING:
    from f2a_tune import F2ASearchCV

JOB = "f2a:job"
# With few rows, the winner depends on how the folds happen to be drawn. They are drawn again until
# this many rows have been predicted, up to the maximum number of repeats.
PREDICTED_ROWS = 2500
MOST_REPEATS = 3


@dataclass(frozen=True)
class Job:
    """What to tune, and on which data."""

    data: str
    target: str | None
    estimator: str
    space: str | None
    """Contents of a TOML file."""
    metric: str | None
    n_folds: int
    seed: int
    seconds: float
    header: str = "auto"
    task: str = "auto"
    holdout: float = 0.0
    """Fraction of the rows that is held out."""
    n_repeats: int | None = None
    """Number of times the folds are drawn. None: chosen by the number of rows."""

    def table(self) -> Table:
        """Read the data."""
        return read_table(self.data, self.target, self.header, self.task)

    def search(self, table: Table) -> F2ASearchCV:
        """Create the search, without a storage."""
        from f2a_tune import F2ASearchCV

        estimator, space, start = self._estimator_and_space(table)
        return F2ASearchCV(
            estimator,
            space,
            time_budget=self.seconds,
            cv=self._folds(table),
            scoring=self.metric,
            random_state=self.seed,
            start=start,
        )

    def split(self, table: Table) -> tuple[Any, Any, Any, Any]:
        """Split the rows into training and held-out rows; deterministic given the seed."""
        from sklearn.model_selection import train_test_split

        from f2a_tune.cli.presets import CLASSIFICATION

        if self.holdout == 0:
            return table.X, None, table.y, None
        stratify = table.y if table.task == CLASSIFICATION else None
        X, X_kept, y, y_kept = train_test_split(
            table.X, table.y, test_size=self.holdout, random_state=self.seed, stratify=stratify
        )
        return X, X_kept, y, y_kept

    def search_and_data(self) -> tuple[Any, Any, Any]:
        """Return the search, X and y, for a worker that joins."""
        table = self.table()
        X, _, y, _ = self.split(table)
        return self.search(table), X, y

    def to_attribute(self) -> dict[str, Any]:
        """Return the job as JSON values, which every storage accepts."""
        content = asdict(self)
        if Path(self.data).is_file():
            content["data"] = str(Path(self.data).resolve())
        return content

    def _folds(self, table: Table) -> Any:
        from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

        from f2a_tune.cli.presets import CLASSIFICATION

        repeated = RepeatedStratifiedKFold if table.task == CLASSIFICATION else RepeatedKFold
        often = self.n_repeats
        if often is None:
            rows = len(table.y) * (1 - self.holdout)
            often = min(max(round(PREDICTED_ROWS / rows), 1), MOST_REPEATS)
        return repeated(n_splits=self.n_folds, n_repeats=often, random_state=self.seed)

    def _estimator_and_space(self, table: Table) -> tuple[Any, Any, Any]:
        from f2a_tune.cli.preprocessing import prepared
        from f2a_tune.cli.presets import model_names, ready_space

        if ":" in self.estimator:
            from f2a_tune.cli.values import imported

            estimator = imported("--estimator", self.estimator)()
            space: Any = None
            start: Any = None
        else:
            ready = ready_space(model_names(self.estimator), table.task, self.seed)
            estimator = prepared(ready.estimator, table.categorical, table.numeric)
            space, start = ready.space, ready.start
        if self.space is not None:
            space, start = space_of_toml(self.space), None
        if space is None:
            raise ValueError(
                f"--estimator {self.estimator!r} has no built-in search space. Pass one with "
                "--space."
            )
        return estimator, space, start


def space_of_toml(text: str) -> Any:
    """Parse a search space from TOML: lists of values, or tables with low and high.

    Examples
    --------
    >>> space_of_toml('[model__C]\\nlow = 0.1\\nhigh = 10\\nlog = true')
    {'model__C': FloatDistribution(high=10.0, log=True, low=0.1, step=None)}
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"--space cannot be read as TOML: {error}.") from error
    if set(content) == {"spaces"} and isinstance(content["spaces"], list):
        return [_one_space(one) for one in content["spaces"]]
    return _one_space(content)


def _one_space(content: Any) -> dict[str, Any]:
    if not isinstance(content, Mapping) or not content:
        raise ValueError(f"--space must contain a table of parameters, got {content!r}.")
    return {str(name): _parameter(str(name), one) for name, one in content.items()}


def _parameter(name: str, content: Any) -> Any:
    from optuna.distributions import FloatDistribution, IntDistribution

    if isinstance(content, list):
        if not content or any(isinstance(value, (dict, list)) for value in content):
            raise ValueError(f"--space: {name} must be a list of at least one string or number.")
        return content
    known = {"low", "high", "log", "step"}
    if not isinstance(content, Mapping) or not {"low", "high"} <= set(content) <= known:
        raise ValueError(
            f"--space: {name} must be a list of values or a table with low, high and optionally "
            f"log or step, got {content!r}."
        )
    numbers = [content["low"], content["high"]]
    if any(isinstance(n, bool) or not isinstance(n, (int, float)) for n in numbers):
        raise ValueError(f"--space: low and high of {name} must be numbers, got {numbers!r}.")
    whole = all(isinstance(number, int) for number in numbers)
    make: Any = IntDistribution if whole else FloatDistribution
    options = {key: content[key] for key in ("log", "step") if key in content}
    try:
        return make(*numbers, **options)
    except (ValueError, TypeError) as error:
        raise ValueError(f"--space: {name}: {error}") from error


def stored_job(storage: Any, study_name: str) -> Job:
    """Read the job that a study was created with."""
    from f2a_tune.study.storages import loaded_study

    content = loaded_study(storage, study_name, "--study-name ").user_attrs.get(JOB)
    names = {one.name for one in fields(Job)}
    if not isinstance(content, Mapping) or set(content) != names:
        raise ValueError(
            f"study {study_name!r} was not created by this version of f2a-tune tune. Pass the "
            "search with --search module:function or --search FILE.joblib."
        )
    return Job(**content)
