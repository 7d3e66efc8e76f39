"""The record of one fold of one configuration, and its JSON form in a trial."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from f2a_tune.outcome import ErrorReport, FoldResult, Kind, Outcome, Scores
from f2a_tune.racing import Look
from f2a_tune.study.attributes import finite_or_none, number_or
from f2a_tune.study.limits import LONGEST_ERROR, MOST_LEVELS


@dataclass(frozen=True)
class LevelResult:
    """The result of a growing fit at one level."""

    level: int
    """Index of the level, from 0."""
    rounds: int
    seconds: float
    """Seconds of the fit until this level, scoring included, without pauses."""
    result: FoldResult


@dataclass(frozen=True)
class FoldRecord:
    """The last pull of a fold, and the earlier ones that were given up.

    If the fit grows, it is the record of all its pulls, and ``result`` that of the last level.
    """

    kind: Kind
    seconds: float
    cutoff_seconds: float
    result: FoldResult | None = None
    error: str = ""
    at_seconds: float = math.nan
    """Spent part of the budget when the pull ended."""
    reason: str = ""
    """Why the race chose this pull."""
    before: tuple[tuple[float, float], ...] = ()
    """Earlier pulls, all given up: their seconds, and the spent part of the budget."""
    curve: tuple[LevelResult, ...] = ()
    """Results of a growing fit, by rising level."""
    rounds_parameter: str = ""
    """The parameter of the estimator that is its number of rounds; empty if it does not grow."""
    stopped_itself: bool = False
    """Whether the growing fit has ended before the last level by its own rule."""

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        cutoff_seconds: float,
        at_seconds: float = math.nan,
        reason: str = "",
    ) -> FoldRecord:
        """The record of an outcome."""
        result = outcome.value if outcome.ok else None
        error = "" if outcome.error is None else (outcome.error.traceback or str(outcome.error))
        return cls(
            outcome.kind, outcome.seconds, cutoff_seconds, result, error, at_seconds, reason
        )

    @property
    def total_seconds(self) -> float:
        """Seconds of this pull and the earlier ones."""
        return self.seconds + sum(seconds for seconds, _ in self.before)

    @property
    def grows(self) -> bool:
        """Whether the fit can be scored before its end, and continued."""
        return bool(self.rounds_parameter)

    def at(self, level: int) -> LevelResult | None:
        """The result of a growing fit at a level, if it has reached it.

        A fit that has stopped by itself is the same at all later levels.
        """
        reached = [one for one in self.curve if one.level <= level]
        if reached and (reached[-1].level == level or self.stopped_itself):
            return reached[-1]
        return None

    def after(self, earlier: FoldRecord | None) -> FoldRecord:
        """The same record with an earlier one added to its history."""
        if earlier is not None and self.grows and earlier.grows:
            return self._grown_from(earlier)
        if earlier is None or earlier.kind is not Kind.GAVE_UP:
            return self
        return replace(self, before=(*earlier.before, (earlier.seconds, earlier.at_seconds)))

    def is_newer_than(self, earlier: FoldRecord) -> bool:
        """Whether this record of a growing fit contains more than an earlier one."""
        return self.grows and len(self.curve) > len(earlier.curve)

    def since(self, earlier: FoldRecord | None) -> FoldRecord:
        """The part of this record of a growing fit that an earlier one does not contain."""
        if earlier is None or not (self.grows and earlier.grows):
            return self
        known = {one.level for one in earlier.curve}
        curve = tuple(one for one in self.curve if one.level not in known)
        return replace(self, seconds=max(self.seconds - earlier.seconds, 0.0), curve=curve)

    def _grown_from(self, earlier: FoldRecord) -> FoldRecord:
        """This record of one pull as the record of all pulls so far."""
        levels = {one.level: one for one in (*earlier.curve, *self.curve)}
        curve = tuple(levels[level] for level in sorted(levels))
        return replace(
            self,
            kind=Kind.FINISHED if curve else self.kind,
            seconds=earlier.seconds + self.seconds,
            result=curve[-1].result if curve else self.result,
            curve=curve,
            stopped_itself=self.stopped_itself or earlier.stopped_itself,
        )

    def looks(self, metric: str | None) -> list[Look]:
        """The curve as a race expects it."""
        return [
            Look(one.level, metric_of(one.result.test_scores, metric), one.seconds)
            for one in self.curve
        ]

    def outcome(self, metric: str | None) -> Outcome:
        """The outcome as a race expects it, with a single score."""
        if self.kind is Kind.FINISHED and self.result is not None:
            return Outcome.finished(metric_of(self.result.test_scores, metric), self.seconds)
        if self.kind is Kind.GAVE_UP:
            return Outcome.gave_up(self.cutoff_seconds, self.seconds)
        return Outcome(self.kind, self.seconds, error=ErrorReport("fit", self.error))

    def to_attribute(self) -> dict[str, Any]:
        """JSON that every storage accepts."""
        found: dict[str, Any] = {
            "kind": self.kind.value,
            "seconds": self.seconds,
            "cutoff": finite_or_none(self.cutoff_seconds),
            "at": finite_or_none(self.at_seconds),
        }
        if self.reason:
            found["reason"] = self.reason
        if self.before:
            found["before"] = [[s, finite_or_none(at)] for s, at in self.before]
        if self.error:
            found["error"] = self.error[-LONGEST_ERROR:]
        if self.result is not None:
            found["test"] = _as_json(self.result.test_scores)
            found["times"] = [self.result.fit_seconds, self.result.score_seconds]
            if self.result.train_scores is not None:
                found["train"] = _as_json(self.result.train_scores)
        if self.grows:
            found["rounds"] = self.rounds_parameter
            found["curve"] = [_level_to_json(one) for one in self.curve]
            found["stopped"] = self.stopped_itself
        return found

    @classmethod
    def from_attribute(cls, content: Any) -> FoldRecord | None:
        """Read what `to_attribute` wrote; None if it is invalid."""
        if not isinstance(content, Mapping) or content.get("kind") not in list(Kind):
            return None
        kind = Kind(content["kind"])
        return cls(
            kind,
            number_or(content.get("seconds"), 0.0),
            number_or(content.get("cutoff"), math.inf),
            _result(content) if kind is Kind.FINISHED else None,
            str(content.get("error", "")),
            number_or(content.get("at"), math.nan),
            str(content.get("reason", "")),
            _waits(content.get("before")),
            _curve(content.get("curve")),
            str(content.get("rounds", "")),
            bool(content.get("stopped", False)),
        )


def metric_of(scores: Scores, metric: str | None) -> float:
    """The score that decides."""
    if isinstance(scores, Mapping):
        return float(scores[metric] if metric in scores else next(iter(scores.values()), math.nan))
    return float(scores)


def _result(content: Mapping[str, Any]) -> FoldResult:
    times, train = content.get("times"), content.get("train")
    if not isinstance(times, list) or len(times) != 2:
        times = [0.0, 0.0]
    return FoldResult(
        test_scores=_from_json(content.get("test")),
        fit_seconds=number_or(times[0], 0.0),
        score_seconds=number_or(times[1], 0.0),
        train_scores=None if train is None else _from_json(train),
    )


def _level_to_json(one: LevelResult) -> dict[str, Any]:
    train = one.result.train_scores
    return {
        "level": one.level,
        "rounds": one.rounds,
        "seconds": one.seconds,
        "test": _as_json(one.result.test_scores),
        "times": [one.result.fit_seconds, one.result.score_seconds],
        **({} if train is None else {"train": _as_json(train)}),
    }


def _curve(content: Any) -> tuple[LevelResult, ...]:
    """Read the levels of a curve; those that are invalid are left out."""
    if not isinstance(content, list):
        return ()
    read = [_level_from_json(one) for one in content if isinstance(one, Mapping)]
    found = {one.level: one for one in read if one is not None}
    return tuple(found[level] for level in sorted(found))


def _level_from_json(content: Mapping[str, Any]) -> LevelResult | None:
    level, rounds = content.get("level"), content.get("rounds")
    if not (isinstance(level, int) and 0 <= level <= MOST_LEVELS):
        return None
    if not (isinstance(rounds, int) and rounds >= 1):
        return None
    return LevelResult(level, rounds, number_or(content.get("seconds"), 0.0), _result(content))


def _as_json(scores: Scores) -> Any:
    if isinstance(scores, Mapping):
        return {name: finite_or_none(float(score)) for name, score in scores.items()}
    return finite_or_none(float(scores))


def _from_json(content: Any) -> Scores:
    if isinstance(content, Mapping):
        return {str(name): _number(score) for name, score in content.items()}
    return _number(content)


def _waits(content: Any) -> tuple[tuple[float, float], ...]:
    if not isinstance(content, list):
        return ()
    pairs = [one for one in content if isinstance(one, list) and len(one) == 2]
    return tuple((number_or(s, 0.0), number_or(at, math.nan)) for s, at in pairs)


def _number(content: Any) -> float:
    return float(content) if isinstance(content, (int, float)) else math.nan
