"""What a search has done, in an Optuna study: one trial is one configuration, one report one fold.

Outcomes of pulls go in as they come; out comes all that a search needs to go on after it was
killed. A trial stays RUNNING while its configuration races, becomes COMPLETE with the mean of all
folds, and PRUNED when the search ends without them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from optuna.trial import TrialState

from f2a_tune import _compat
from f2a_tune.optuna_plugin.plan import finite_or_none, number_or
from f2a_tune.outcome import FAILED, ErrorReport, Kind, Outcome
from f2a_tune.sklearn_plugin.fold import FoldResult, Scores

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import Trial

    from f2a_tune.sklearn_plugin.candidates import CandidateSpace

Floats = NDArray[np.float64]

UNIT = "f2a:unit"
FOLD = "f2a:fold:"
LONGEST_ERROR = 1000


@dataclass(frozen=True)
class PullRecord:
    """What became of one fold of a configuration, the last time it was pulled."""

    kind: Kind
    seconds: float
    cutoff_seconds: float
    result: FoldResult | None = None
    error: str = ""

    @classmethod
    def of(cls, outcome: Outcome, cutoff_seconds: float) -> PullRecord:
        """From what a worker said."""
        result = outcome.value if outcome.ok else None
        error = "" if outcome.error is None else (outcome.error.traceback or str(outcome.error))
        return cls(outcome.kind, outcome.seconds, cutoff_seconds, result, error)

    def outcome(self, metric: str | None) -> Outcome:
        """As the race hears it: one score, or what came in its place."""
        if self.kind is Kind.FINISHED and self.result is not None:
            return Outcome.finished(metric_of(self.result.test_scores, metric), self.seconds)
        if self.kind is Kind.GAVE_UP:
            return Outcome.gave_up(self.cutoff_seconds, self.seconds)
        return Outcome(self.kind, self.seconds, error=ErrorReport("fit", self.error))

    def to_attribute(self) -> dict[str, Any]:
        """As JSON that every storage takes."""
        found: dict[str, Any] = {
            "kind": self.kind.value,
            "seconds": self.seconds,
            "cutoff": finite_or_none(self.cutoff_seconds),
        }
        if self.error:
            found["error"] = self.error[-LONGEST_ERROR:]
        if self.result is not None:
            found["test"] = _as_json(self.result.test_scores)
            found["times"] = [self.result.fit_seconds, self.result.score_seconds]
            if self.result.train_scores is not None:
                found["train"] = _as_json(self.result.train_scores)
        return found

    @classmethod
    def from_attribute(cls, content: Any) -> PullRecord | None:
        """Read it back; None if it makes no sense."""
        if not isinstance(content, Mapping) or content.get("kind") not in set(Kind):
            return None
        kind = Kind(content["kind"])
        result = None
        if kind is Kind.FINISHED:
            times = content.get("times", [0.0, 0.0])
            train = content.get("train")
            result = FoldResult(
                test_scores=_from_json(content.get("test")),
                fit_seconds=float(times[0]),
                score_seconds=float(times[1]),
                train_scores=None if train is None else _from_json(train),
            )
        return cls(
            kind,
            number_or(content.get("seconds"), 0.0),
            number_or(content.get("cutoff"), math.inf),
            result,
            str(content.get("error", "")),
        )


@dataclass
class ConfigurationRecord:
    """One configuration with what became of its folds."""

    unit: Floats
    params: dict[str, Any]
    trial: Trial | None
    pulls: dict[int, PullRecord] = field(default_factory=dict)

    def finished(self, fold: int) -> FoldResult | None:
        """The fold's result, if it has one."""
        pull = self.pulls.get(fold)
        return None if pull is None else pull.result

    def count(self, *kinds: Kind) -> int:
        """How many folds ended so."""
        return sum(pull.kind in kinds for pull in self.pulls.values())

    @property
    def seconds(self) -> float:
        """Of the last pull of every fold."""
        return sum(pull.seconds for pull in self.pulls.values())


class SearchRecord:
    """Writes to the study, and reads from it when a search is resumed."""

    def __init__(self, study: Study, space: CandidateSpace, n_folds: int, metric: str | None):
        self.study, self.space, self.n_folds, self.metric = study, space, n_folds, metric
        self.configurations: list[ConfigurationRecord] = []
        self.units: list[Floats] = []
        """Rows of all configurations, as proposals want them."""

    @property
    def pulls(self) -> list[PullRecord]:
        """The last pull of every fold of every configuration."""
        return [pull for one in self.configurations for pull in one.pulls.values()]

    @property
    def results(self) -> list[FoldResult]:
        """Of all folds that have finished."""
        return [pull.result for pull in self.pulls if pull.result is not None]

    def begin(self, unit: Floats) -> int:
        """A new configuration; returns its place."""
        trial = self._open(unit)
        self._append(unit, trial)
        return len(self.configurations) - 1

    def _append(self, unit: Floats, trial: Trial | None) -> None:
        self.units.append(unit)
        self.configurations.append(ConfigurationRecord(unit, self.space.params(unit), trial))

    def _open(self, unit: Floats) -> Trial:
        trial = self.study.ask()
        for name, (value, distribution) in self.space.stored(unit).items():
            _compat.set_param(self.study, trial, name, value, distribution)
        trial.set_user_attr(UNIT, [finite_or_none(float(number)) for number in unit])
        return trial

    def _reopen(self, configuration: ConfigurationRecord) -> Trial:
        """A finished trial cannot be written to: the configuration goes on in a new one."""
        trial = self._open(configuration.unit)
        for fold, pull in configuration.pulls.items():
            self._write_fold(trial, fold, pull)
        return trial

    def _write_fold(self, trial: Trial, fold: int, pull: PullRecord) -> None:
        trial.set_user_attr(f"{FOLD}{fold}", pull.to_attribute())
        if pull.result is not None:
            score = metric_of(pull.result.test_scores, self.metric)
            if math.isfinite(score):
                trial.report(score, fold)

    def write(self, place: int, fold: int, pull: PullRecord) -> None:
        """What became of a pull; a configuration with all folds is complete."""
        configuration = self.configurations[place]
        if configuration.trial is None:
            configuration.trial = self._reopen(configuration)
        trial = configuration.trial
        configuration.pulls[fold] = pull
        self._write_fold(trial, fold, pull)
        if configuration.count(Kind.FINISHED) == self.n_folds:
            scores = [self._score(configuration, fold) for fold in range(self.n_folds)]
            mean = float(np.mean(scores))
            state = None if math.isfinite(mean) else TrialState.FAIL
            self.study.tell(trial, mean if state is None else None, state=state)

    def end(self) -> None:
        """Close what is still open."""
        for configuration in self.configurations:
            trial = configuration.trial
            if trial is not None and configuration.count(Kind.FINISHED) < self.n_folds:
                failed = configuration.count(*FAILED) > 0
                state = TrialState.FAIL if failed else TrialState.PRUNED
                self.study.tell(trial, state=state, skip_if_finished=True)

    def restore(self) -> None:
        """Read what an earlier search wrote."""
        places: dict[bytes, int] = {}
        for trial in _compat.all_trials(self.study):
            unit = trial.user_attrs.get(UNIT)
            if not isinstance(unit, list) or len(unit) != len(self.space.space.parameters):
                continue
            row = np.array([math.nan if number is None else number for number in unit])
            live = None if trial.state.is_finished() else _compat.live_trial(self.study, trial)
            place = places.setdefault(row.tobytes(), len(self.configurations))
            if place == len(self.configurations):
                self._append(row, live)
            configuration = self.configurations[place]
            configuration.trial = live
            for fold in range(self.n_folds):
                pull = PullRecord.from_attribute(trial.user_attrs.get(f"{FOLD}{fold}"))
                if pull is not None:
                    configuration.pulls[fold] = pull

    def _score(self, configuration: ConfigurationRecord, fold: int) -> float:
        result = configuration.finished(fold)
        assert result is not None
        return metric_of(result.test_scores, self.metric)


def metric_of(scores: Scores, metric: str | None) -> float:
    """The score that decides."""
    if isinstance(scores, Mapping):
        return float(scores[metric] if metric in scores else next(iter(scores.values())))
    return float(scores)


def _as_json(scores: Scores) -> Any:
    if isinstance(scores, Mapping):
        return {name: finite_or_none(float(score)) for name, score in scores.items()}
    return finite_or_none(float(scores))


def _from_json(content: Any) -> Scores:
    if isinstance(content, Mapping):
        return {str(name): _number(score) for name, score in content.items()}
    return _number(content)


def _number(content: Any) -> float:
    return float(content) if isinstance(content, (int, float)) else math.nan
