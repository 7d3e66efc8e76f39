"""The trials of a search: one trial per configuration, one intermediate value per fold.

A trial stays RUNNING while its configuration races. It becomes COMPLETE with the mean score when
all folds have finished, and PRUNED when the search ends before that. An open trial belongs to one
run; other runs only read it. When that run is gone, another one closes the trial and continues the
configuration in a new trial. Everything that a search needs to continue after a crash is in the
study.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState, create_trial

from f2a_tune import clock
from f2a_tune.outcome import FAILED, FoldResult, Kind
from f2a_tune.study import optuna_private
from f2a_tune.study.attributes import CONTINUES, DEFAULT, FOLD, OWNER, UNIT
from f2a_tune.study.configuration_record import (
    ConfigurationRecord,
    Floats,
    News,
    ParameterSpace,
    plain_value,
    point_to_json,
    stored_point,
)
from f2a_tune.study.fold_record import FoldRecord, metric_of
from f2a_tune.study.limits import WRITES_PER_PULL, WRITES_REMEMBERED
from f2a_tune.study.stale_trials import predecessors
from f2a_tune.study.storage_retry import StorageRetry

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial

T = TypeVar("T")


class TrialStore:
    """Writes fold records to the study, and reads what other runs have written.

    Configurations are addressed by their index in the order in which they were drawn.

    Parameters
    ----------
    owner
        The name of this run.
    retry
        How to repeat calls while the storage cannot be reached.
    """

    def __init__(
        self,
        study: Study,
        space: ParameterSpace,
        n_folds: int,
        metric: str | None,
        owner: str = "",
        retry: StorageRetry | None = None,
    ) -> None:
        self.study, self.space, self.n_folds, self.metric = study, space, n_folds, metric
        self.owner = owner
        self.configurations: list[ConfigurationRecord] = []
        self.units: list[Floats] = []
        """Points of all configurations, for proposals."""
        self.retry = StorageRetry() if retry is None else retry
        self._indices: dict[bytes, int] = {}
        self._closed_trials: set[int] = set()
        """Numbers of closed trials that have been read; they cannot change any more."""
        self._n_open = 0
        """Number of open trials of this run."""
        self._open_lock = threading.Lock()
        self._is_closing = False
        self._openings: deque[float] = deque(maxlen=WRITES_REMEMBERED)
        self._closings: deque[float] = deque(maxlen=WRITES_REMEMBERED)
        """Seconds of the last writes that opened and closed a trial."""
        self._elsewhere: dict[int, FrozenTrial] = {}
        """Open trials of other runs."""

    @property
    def records(self) -> list[FoldRecord]:
        """The last record of every fold of every configuration."""
        return [record for one in self.configurations for record in one.folds.values()]

    @property
    def results(self) -> list[FoldResult]:
        """Results of all folds that have finished."""
        return [record.result for record in self.records if record.result is not None]

    @property
    def open_elsewhere(self) -> tuple[int, ...]:
        """Configurations that another run evaluates."""
        return tuple(self._elsewhere)

    def begin(self, unit: Floats) -> int:
        """Open a trial for a new configuration; returns its index."""
        index = self._index(unit)
        self._own(self.configurations[index], self._new_trial(unit))
        return index

    def _index(self, unit: Floats) -> int:
        index = self._indices.setdefault(unit.tobytes(), len(self.configurations))
        if index == len(self.configurations):
            self.units.append(unit)
            params, in_space = self.space.params(unit), self.space.is_in_space(unit)
            self.configurations.append(
                ConfigurationRecord(
                    unit,
                    params,
                    None,
                    in_space=in_space,
                    n_folds=self.n_folds,
                    metric=self.metric,
                )
            )
        return index

    def _new_trial(
        self,
        unit: Floats,
        folds: Mapping[int, FoldRecord] | None = None,
        continues: int | None = None,
    ) -> Trial:
        """Open a trial in a single write, so that a crash leaves all of it or nothing."""
        stored = self.space.stored(unit)
        known = folds or {}
        attributes: dict[str, Any] = {
            OWNER: self.owner,
            UNIT: point_to_json(unit),
        }
        if continues is not None:
            attributes[CONTINUES] = continues
        if not self.space.is_in_space(unit):
            own = self.space.own_params
            attributes[DEFAULT] = {name: plain_value(value) for name, value in own.items()}
        attributes |= {f"{FOLD}{fold}": record.to_attribute() for fold, record in known.items()}
        template = create_trial(
            state=TrialState.RUNNING,
            params={name: value for name, (value, _) in stored.items()},
            distributions={name: distribution for name, (_, distribution) in stored.items()},
            user_attrs=attributes,
            intermediate_values=self._scores(known),
        )
        return self._timed(
            self._openings, lambda: optuna_private.begin_trial(self.study, template)
        )

    def _timed(self, seconds_of_writes: deque[float], call: Callable[[], T]) -> T:
        """Write with retries; remember the seconds of the attempt that succeeded."""

        def attempt() -> tuple[T, float]:
            begin = clock.monotonic_seconds()
            return call(), clock.monotonic_seconds() - begin

        result, seconds = self.retry(attempt)
        seconds_of_writes.append(seconds)
        if not self._is_closing:  # when the storage is back, the trials must still be closed
            self.retry.reserved_seconds = self.closing_seconds(1)
        return result

    def _own(
        self, configuration: ConfigurationRecord, trial: Trial, known: Iterable[int] = ()
    ) -> None:
        """Make this its open trial, belonging to this run, with ``known`` steps reported."""
        with self._open_lock:
            self._n_open += configuration.trial is None
            configuration.trial, configuration.owner = trial, self.owner
            configuration.reported = set(known)

    def _disown(self, configuration: ConfigurationRecord, trial: Trial | None) -> None:
        """Forget the open trial if it is this one; two players may notice that at once."""
        with self._open_lock:
            if trial is not None and configuration.trial is trial:
                configuration.trial, configuration.owner = None, ""
                self._n_open -= 1

    def _scores(self, folds: Mapping[int, FoldRecord]) -> dict[int, float]:
        """The intermediate values of a trial.

        They are the scores of the folds by their index; if fits grow, those of the first fold by
        the number of rounds.
        """
        results = {
            one.rounds: one.result for fold in folds if fold == 0 for one in folds[fold].curve
        }
        if not any(record.grows for record in folds.values()):
            results = {fold: one.result for fold, one in folds.items() if one.result is not None}
        scores = {
            step: metric_of(result.test_scores, self.metric) for step, result in results.items()
        }
        return {step: score for step, score in scores.items() if math.isfinite(score)}

    def add(self, index: int, fold: int, record: FoldRecord) -> None:
        """Keep the outcome of a pull in memory; `store` writes it to the study."""
        configuration = self.configurations[index]
        earlier = configuration.folds.get(fold)
        if record.result is None and not record.grows and _has_result(earlier):
            return  # another run has finished what was given up here
        configuration.stored.discard(fold)
        configuration.folds[fold] = record.after(earlier)

    def record_of(self, index: int, fold: int) -> FoldRecord | None:
        """The record of a fold; None if it was never pulled."""
        return self.configurations[index].folds.get(fold)

    def store(self, index: int, fold: int) -> None:
        """Write the record of a fold; a configuration with all folds becomes complete.

        This waits for the storage, and only pulls of the same configuration wait with it.
        """
        self._store(self.configurations[index], fold)

    def _store(self, configuration: ConfigurationRecord, *needed: int) -> None:
        with configuration.lock:
            # Also folds that other runs have finished: a complete trial has all folds.
            for fold in {*needed, *list(configuration.folds)}:
                if fold not in configuration.stored:
                    self._write_fold(configuration, fold)
            self._complete(configuration)

    def _write_fold(self, configuration: ConfigurationRecord, fold: int) -> None:
        trial = configuration.trial
        try:
            self.retry(lambda: self._write(configuration, fold))
        except UpdateFinishedTrialError:  # another run believed us gone, and closed it
            self._disown(configuration, trial)
            self.retry(lambda: self._write(configuration, fold))

    def _write(self, configuration: ConfigurationRecord, fold: int) -> None:
        trial = configuration.trial
        if trial is None:  # a closed trial cannot be written to: continue in a new one
            known = dict(configuration.folds)
            trial = self._new_trial(configuration.unit, known)
            self._own(configuration, trial, self._scores(known))
            configuration.stored = {f for f, p in known.items() if configuration.folds[f] is p}
            return
        record = configuration.folds[fold]
        trial.set_user_attr(f"{FOLD}{fold}", record.to_attribute())
        for step, score in self._scores({fold: record}).items():
            if step not in configuration.reported:
                trial.report(score, step)
                configuration.reported.add(step)
        if configuration.folds[fold] is record:  # nothing newer was added meanwhile
            configuration.stored.add(fold)

    def _complete(self, configuration: ConfigurationRecord) -> None:
        """Close the trial if all folds are in it; of two players, the last one does it."""
        trial = configuration.trial
        if trial is None or configuration.count(Kind.FINISHED) < self.n_folds:
            return
        if len(configuration.stored) < self.n_folds:
            return
        scores = [self._score(configuration, fold) for fold in range(self.n_folds)]
        mean = float(np.mean(scores))
        if mean == configuration.completed_mean:
            return  # it grows further, and is not better so far
        configuration.completed_mean = mean
        if math.isfinite(mean):
            self._end_trial(configuration, trial, TrialState.COMPLETE, mean)
        else:
            self._end_trial(configuration, trial, TrialState.FAIL, None)

    def close(self) -> None:
        """Close all open trials of this run."""
        self._is_closing, self.retry.reserved_seconds = True, 0.0
        for configuration in self.configurations:
            if configuration.trial is not None:
                self._store(configuration)  # records added when the search was interrupted
            if configuration.trial is not None:
                self._close(configuration, configuration.trial)
        # If a database stops after it opened a trial and before it could say so, the call is
        # repeated, and the trial of the first attempt is left over.
        for trial in self.retry(lambda: optuna_private.open_trials(self.study)):
            if self.owner and trial.user_attrs.get(OWNER) == self.owner:
                self._prune(trial, None)

    def _close(self, configuration: ConfigurationRecord, trial: Trial) -> None:
        if configuration.count(*FAILED) > 0:
            self._end_trial(configuration, trial, TrialState.FAIL, None)
            return
        self._end_trial(configuration, trial, TrialState.PRUNED, self._last_score(configuration))

    def _last_score(self, configuration: ConfigurationRecord) -> float | None:
        """The value of a pruned trial, as Optuna defines it."""
        scores = self._scores(configuration.folds)
        return scores[max(scores)] if scores else None

    def _end_trial(
        self,
        configuration: ConfigurationRecord,
        trial: Trial,
        state: TrialState,
        value: float | None,
    ) -> None:
        self._timed(
            self._closings,
            lambda: optuna_private.close_trial(self.study, trial, state, value),
        )
        self._disown(configuration, trial)

    def closing_seconds(self, n_players: int) -> float:
        """Expected seconds to write the last records and close all open trials."""
        # One slow write means little: others wait for the same disk, or a cache is cold.
        per_write = min(self._openings, default=0.0)
        if self._closings:
            per_write = float(np.median(self._closings))
        return (self._n_open + WRITES_PER_PULL * n_players) * per_write

    def claim(self, index: int) -> bool:
        """Continue an open trial whose run is gone; returns False if another run does it.

        Several runs may try this at the same time. Each opens a new trial that names the old one.
        Storages number trials in the order in which they were created, so all runs agree that the
        first of these trials is the one to continue.
        """
        old, configuration = self._elsewhere.pop(index), self.configurations[index]
        known = dict(configuration.folds)
        trial = self._new_trial(configuration.unit, known, continues=old.number)
        trials = self.retry(lambda: optuna_private.all_trials(self.study))
        first = next(one for one in trials if one.user_attrs.get(CONTINUES) == old.number)
        last_score = self._last_score(configuration)
        if first.number != trial.number:
            self._prune(trial, last_score)
            configuration.owner = ""
            return False
        self._own(configuration, trial, self._scores(known))
        configuration.stored = set(known)
        for one in predecessors(trials, old):
            self._prune(one, last_score)
        self._store(configuration)
        return True

    def _prune(self, trial: Trial | FrozenTrial, value: float | None) -> None:
        pruned = TrialState.PRUNED
        self.retry(lambda: optuna_private.close_trial(self.study, trial, pruned, value))

    def read_news(self) -> list[News]:
        """Read what other runs have written since the last call; first, all there is."""
        news: list[News] = []
        for trial in self.retry(lambda: optuna_private.all_trials(self.study)):
            if trial.number in self._closed_trials:
                continue
            owner = str(trial.user_attrs.get(OWNER, ""))
            if trial.state.is_finished():
                self._closed_trials.add(trial.number)
            elif owner == self.owner and owner:
                continue
            unit = stored_point(trial.user_attrs.get(UNIT), self.space.n_parameters)
            if unit is not None:
                index = self._index(unit)
                news += self._new_folds(index, trial)
                self._update_owner(index, trial, owner)
        return news

    def _update_owner(self, index: int, trial: FrozenTrial, owner: str) -> None:
        configuration = self.configurations[index]
        ours = configuration.trial
        if ours is not None and ours.number == trial.number:
            self._disown(configuration, ours)  # closed, or taken over by a run that missed us
        if configuration.trial is not None:
            return
        if trial.state.is_finished():
            known = self._elsewhere.get(index)
            if known is None or known.number == trial.number:
                configuration.owner = ""
                self._elsewhere.pop(index, None)
        else:
            configuration.owner = owner
            self._elsewhere[index] = trial

    def _new_folds(self, index: int, trial: FrozenTrial) -> Iterator[News]:
        known = self.configurations[index].folds
        for fold in range(self.n_folds):
            record = FoldRecord.from_attribute(trial.user_attrs.get(f"{FOLD}{fold}"))
            if record is None or known.get(fold) == record:
                continue
            before = known.get(fold)
            if _has_result(before) and not record.is_newer_than(before):
                continue  # a finished fold does not change
            seen = 0 if before is None else 1 + len(before.before)
            missed = tuple(seconds for seconds, _ in record.before[seen:])
            known[fold] = record
            yield News(index, fold, record.since(before), missed, before)

    def _score(self, configuration: ConfigurationRecord, fold: int) -> float:
        result = configuration.finished(fold)
        assert result is not None
        return metric_of(result.test_scores, self.metric)


def _has_result(record: FoldRecord | None) -> TypeGuard[FoldRecord]:
    return record is not None and record.result is not None
