"""Pipelines whose last step grows; the steps before it are fitted once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.pipeline import Pipeline

from f2a_tune.growth.adapter import Growable, Look


def adapted(pipeline: Pipeline, growable: Callable[[Any], Growable | None]) -> Growable | None:
    """Return how the pipeline grows, or None if its last step does not."""
    name, last = pipeline.steps[-1]
    inner = growable(last)
    if inner is None:
        return None

    def grow(
        X: Any, y: Any, fit_params: dict[str, Any], levels: tuple[int, ...], look: Look
    ) -> Any:
        prefix = f"{name}__"
        foreign = [key for key in fit_params if not key.startswith(prefix)]
        if foreign:
            raise ValueError(
                f"fit parameter {foreign[0]!r} cannot be passed to a pipeline that grows. Use "
                f"{prefix}… for its last step."
            )
        own = {key.removeprefix(prefix): value for key, value in fit_params.items()}
        before = pipeline[:-1]
        transformed = before.fit_transform(X, y) if len(before) else X

        def look_at(rounds: int, model: Any) -> None:
            look(rounds, _with_last(pipeline, name, model))

        fitted = inner.grow(transformed, y, own, levels, look_at)
        return _with_last(pipeline, name, fitted)

    return Growable(f"{name}__{inner.parameter}", inner.rounds, grow, inner.repeats_start)


def _with_last(pipeline: Pipeline, name: str, model: Any) -> Pipeline:
    return Pipeline([*pipeline.steps[:-1], (name, model)])
