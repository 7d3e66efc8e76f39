"""The function that runs in a worker to fit one fold of an estimator that grows.

It asks the search after every level, and the search may pause it there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from f2a_tune.cutoff.callback_channel import current_channel
from f2a_tune.growth import growable
from f2a_tune.outcome import FoldResult
from f2a_tune.sklearn_plugin import sklearn_private
from f2a_tune.sklearn_plugin.fold import FoldData, KeepModel
from f2a_tune.sklearn_plugin.inner_threads import thread_params


@dataclass(frozen=True)
class RoundsReport:
    """The result of a fit after some rounds, sent to the search."""

    rounds: int
    seconds: float
    """Seconds since the start of the call, without pauses."""
    result: FoldResult


def grow_fold(
    data: FoldData,
    params: dict[str, Any],
    fold: int,
    rounds: tuple[int, ...],
    keep: KeepModel | None = None,
) -> None:
    """Fit a clone with ``params`` on the training rows of a fold, and report at these rounds."""
    train, test = data.splits[fold]
    estimator = clone(data.estimator)
    estimator.set_params(**clone(params, safe=False), **thread_params(estimator, params))
    parts = sklearn_private.split_fold(
        estimator, data.X, data.y, train, test, data.fit_params, data.score_params
    )
    channel, scoring_seconds = current_channel(), 0.0

    def look(done: int, model: Any) -> None:
        nonlocal scoring_seconds
        begin = channel.running_seconds()
        fit_seconds = begin - scoring_seconds
        test_scores = parts.test_scores(model, data.scorer)
        scored = channel.running_seconds()
        train_scores = parts.train_scores(model, data.scorer) if data.return_train_score else None
        if keep is not None and fit_seconds >= keep.least_seconds:
            keep.write(model)
        end = channel.running_seconds()
        scoring_seconds += end - begin
        result = FoldResult(test_scores, fit_seconds, scored - begin, train_scores)
        channel.ask(RoundsReport(done, end, result))

    growth = growable(estimator)
    if growth is None:
        raise TypeError(f"{estimator!r} does not grow. Pass growth=None to the search.")
    growth.fit(parts.X_train, parts.y_train, rounds, look, parts.fit_params)
