"""What a search has done, in an Optuna study: one trial is one configuration, one report one fold.

Outcomes of pulls go in as they come; out comes all that a search needs to go on after it was
killed. A trial stays RUNNING while its configuration races, becomes COMPLETE with the mean of all
folds, and PRUNED when the search ends without them. An open trial belongs to the run that has it:
others read it, and take it over when that run is gone.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState, create_trial

from f2a_tune import _compat, clock
from f2a_tune.optuna_plugin.plan import finite_or_none, number_or
from f2a_tune.outcome import FAILED, Kind
from f2a_tune.sklearn_plugin.fold import FoldResult
from f2a_tune.sklearn_plugin.patience import Patience
from f2a_tune.sklearn_plugin.pulls import PullRecord, metric_of

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial

    from f2a_tune.sklearn_plugin.candidates import CandidateSpace

Floats = NDArray[np.float64]

UNIT = "f2a:unit"
FOLD = "f2a:fold:"
OWNER = "f2a:owner"
METRIC = "f2a:metric"  # of the study: which of several scores decides
FOLDS = "f2a:folds"  # of the study: how many there are
# How many of the last writes say how fast the storage is, and how many writes a pull may need.
PACES = 9
WRITES_OF_A_PULL = 3

T = TypeVar("T")


@dataclass
class ConfigurationRecord:
    """One configuration with what became of its folds."""

    unit: Floats
    params: dict[str, Any]
    trial: Trial | None
    """Open, and ours; None: closed, or of another run."""
    owner: str = ""
    """The run that has its open trial."""
    pulls: dict[int, PullRecord] = field(default_factory=dict)
    stored: set[int] = field(default_factory=set)
    """Folds whose last pull is in the open trial."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while its trial is written to."""

    def finished(self, fold: int) -> FoldResult | None:
        """The fold's result, if it has one."""
        pull = self.pulls.get(fold)
        return None if pull is None else pull.result

    def count(self, *kinds: Kind) -> int:
        """How many folds ended so."""
        # A copy: another player may note a pull meanwhile.
        return sum(pull.kind in kinds for pull in list(self.pulls.values()))

    @property
    def seconds(self) -> float:
        """Of the last pull of every fold."""
        return sum(pull.seconds for pull in self.pulls.values())


@dataclass(frozen=True)
class News:
    """What another run wrote."""

    place: int
    fold: int
    pull: PullRecord
    missed_seconds: tuple[float, ...] = ()
    """Of earlier pulls of this fold that were given up, and never seen here."""


class SearchRecord:
    """Writes to the study, and reads what earlier searches and other runs have written.

    Parameters
    ----------
    owner
        The name of this run.
    """

    def __init__(
        self,
        study: Study,
        space: CandidateSpace,
        n_folds: int,
        metric: str | None,
        owner: str = "",
    ) -> None:
        self.study, self.space, self.n_folds, self.metric = study, space, n_folds, metric
        self.owner = owner
        self.configurations: list[ConfigurationRecord] = []
        self.units: list[Floats] = []
        """Rows of all configurations, as proposals want them."""
        self._places: dict[bytes, int] = {}
        self._read: set[int] = set()
        """Numbers of closed trials, which cannot change any more."""
        self.patiently = Patience()
        self._n_open = 0
        """Trials that are open and ours."""
        self._open_lock = threading.Lock()
        self._openings: deque[float] = deque(maxlen=PACES)
        self._closings: deque[float] = deque(maxlen=PACES)
        """Seconds of the last writes that opened and closed a trial."""
        self._open: dict[int, FrozenTrial] = {}
        """Open trials of others, by place."""

    @property
    def pulls(self) -> list[PullRecord]:
        """The last pull of every fold of every configuration."""
        return [pull for one in self.configurations for pull in one.pulls.values()]

    @property
    def results(self) -> list[FoldResult]:
        """Of all folds that have finished."""
        return [pull.result for pull in self.pulls if pull.result is not None]

    @property
    def places_of_others(self) -> tuple[int, ...]:
        """Configurations that another run has open."""
        return tuple(self._open)

    def begin(self, unit: Floats) -> int:
        """A new configuration; returns its place."""
        place = self._place(unit)
        self._take_up(self.configurations[place], self._new_trial(unit))
        return place

    def _place(self, unit: Floats) -> int:
        place = self._places.setdefault(unit.tobytes(), len(self.configurations))
        if place == len(self.configurations):
            self.units.append(unit)
            self.configurations.append(ConfigurationRecord(unit, self.space.params(unit), None))
        return place

    def _new_trial(self, unit: Floats, pulls: Mapping[int, PullRecord] | None = None) -> Trial:
        """Written in one piece: a process that is killed leaves all of it, or nothing."""
        stored = self.space.stored(unit)
        folds = pulls or {}
        attributes: dict[str, Any] = {
            OWNER: self.owner,
            UNIT: [finite_or_none(float(number)) for number in unit],
        }
        attributes |= {f"{FOLD}{fold}": pull.to_attribute() for fold, pull in folds.items()}
        template = create_trial(
            state=TrialState.RUNNING,
            params={name: value for name, (value, _) in stored.items()},
            distributions={name: distribution for name, (_, distribution) in stored.items()},
            user_attrs=attributes,
            intermediate_values=self._reported(folds),
        )
        return self._timed(self._openings, lambda: _compat.begin_trial(self.study, template))

    def _timed(self, paces: deque[float], call: Callable[[], T]) -> T:
        """Write patiently; the seconds of the attempt that went well are kept."""

        def attempt() -> tuple[T, float]:
            begin = clock.monotonic_seconds()
            return call(), clock.monotonic_seconds() - begin

        result, seconds = self.patiently(attempt)
        paces.append(seconds)
        return result

    def _take_up(self, configuration: ConfigurationRecord, trial: Trial) -> None:
        """Its open trial is this one, and ours."""
        with self._open_lock:
            self._n_open += configuration.trial is None
            configuration.trial, configuration.owner = trial, self.owner

    def _let_go(self, configuration: ConfigurationRecord, trial: Trial | None) -> None:
        """It has no open trial of ours any more, if this was it; two may notice that at once."""
        with self._open_lock:
            if trial is not None and configuration.trial is trial:
                configuration.trial, configuration.owner = None, ""
                self._n_open -= 1

    def _reported(self, pulls: Mapping[int, PullRecord]) -> dict[int, float]:
        scores = {
            fold: metric_of(pull.result.test_scores, self.metric)
            for fold, pull in pulls.items()
            if pull.result is not None
        }
        return {fold: score for fold, score in scores.items() if math.isfinite(score)}

    def note(self, place: int, fold: int, pull: PullRecord) -> None:
        """What became of a pull, in memory; `store` writes it to the study."""
        configuration = self.configurations[place]
        earlier = configuration.pulls.get(fold)
        if earlier is not None and earlier.result is not None and pull.result is None:
            return  # another run has finished what was given up here
        configuration.stored.discard(fold)
        configuration.pulls[fold] = pull.after(earlier)

    def store(self, place: int, fold: int) -> None:
        """Write down what was noted of a fold; a configuration with all folds is complete.

        It waits for the storage, but only pulls of the same configuration wait for it.
        """
        self._store(self.configurations[place], fold)

    def _store(self, configuration: ConfigurationRecord, *needed: int) -> None:
        with configuration.lock:
            # Also what other runs have finished: a complete trial has all folds.
            for fold in {*needed, *list(configuration.pulls)}:
                if fold not in configuration.stored:
                    self._write_anyhow(configuration, fold)
            self._complete(configuration)

    def _write_anyhow(self, configuration: ConfigurationRecord, fold: int) -> None:
        trial = configuration.trial
        try:
            self.patiently(lambda: self._write(configuration, fold))
        except UpdateFinishedTrialError:  # somebody took us for dead, and closed it
            self._let_go(configuration, trial)
            self.patiently(lambda: self._write(configuration, fold))

    def _write(self, configuration: ConfigurationRecord, fold: int) -> None:
        trial = configuration.trial
        if trial is None:  # a closed trial cannot be written to: it goes on anew
            known = dict(configuration.pulls)
            self._take_up(configuration, self._new_trial(configuration.unit, known))
            configuration.stored = {f for f, p in known.items() if configuration.pulls[f] is p}
            return
        pull = configuration.pulls[fold]
        trial.set_user_attr(f"{FOLD}{fold}", pull.to_attribute())
        for step, score in self._reported({fold: pull}).items():
            trial.report(score, step)
        if configuration.pulls[fold] is pull:  # nothing newer has been noted meanwhile
            configuration.stored.add(fold)

    def _complete(self, configuration: ConfigurationRecord) -> None:
        """Close the trial if all folds are in it; of two that end at once, the last does it."""
        trial = configuration.trial
        if trial is None or configuration.count(Kind.FINISHED) < self.n_folds:
            return
        if len(configuration.stored) < self.n_folds:
            return
        scores = [self._score(configuration, fold) for fold in range(self.n_folds)]
        mean = float(np.mean(scores))
        if math.isfinite(mean):
            self._end_trial(configuration, trial, TrialState.COMPLETE, mean)
        else:
            self._end_trial(configuration, trial, TrialState.FAIL, None)

    def end(self) -> None:
        """Close what is still open of ours."""
        for configuration in self.configurations:
            if configuration.trial is not None:
                self._store(configuration)  # what was noted when it was interrupted
            if configuration.trial is not None:
                self._close(configuration, configuration.trial)
        # A database that is stopped after it has begun a trial, and before it could say so, is
        # asked again, by us or by Optuna: what the first write has begun is nobody's.
        close = partial(_compat.close_trial, self.study, state=TrialState.PRUNED, value=None)
        for trial in self.patiently(lambda: _compat.open_trials(self.study)):
            if self.owner and trial.user_attrs.get(OWNER) == self.owner:
                self.patiently(partial(close, trial))

    def _close(self, configuration: ConfigurationRecord, trial: Trial) -> None:
        if configuration.count(*FAILED) > 0:
            self._end_trial(configuration, trial, TrialState.FAIL, None)
            return
        reported = self._reported(configuration.pulls)
        last = reported[max(reported)] if reported else None  # as Optuna values a pruned trial
        self._end_trial(configuration, trial, TrialState.PRUNED, last)

    def _end_trial(
        self,
        configuration: ConfigurationRecord,
        trial: Trial,
        state: TrialState,
        value: float | None,
    ) -> None:
        self._timed(self._closings, lambda: _compat.close_trial(self.study, trial, state, value))
        self._let_go(configuration, trial)

    def closing_seconds(self, n_players: int) -> float:
        """What it will take to write down the last pulls and close all that is open."""
        # One slow write says little: others wait for the same disk, or a cache is cold.
        pace = min(self._openings, default=0.0)
        if self._closings:
            pace = float(np.median(self._closings))
        return (self._n_open + WRITES_OF_A_PULL * n_players) * pace

    def claim(self, place: int) -> None:
        """Take over an open trial whose run is gone."""
        frozen = self._open.pop(place)
        trial = self.patiently(lambda: _compat.live_trial(self.study, frozen))
        configuration = self.configurations[place]
        try:
            self.patiently(lambda: trial.set_user_attr(OWNER, self.owner))
        except UpdateFinishedTrialError:  # it was not gone after all
            configuration.owner = ""
            return
        self._take_up(configuration, trial)
        # Its run may have ended between the two writes of a fold.
        scores = self._reported(configuration.pulls)
        lacking = scores.keys() - frozen.intermediate_values.keys()
        configuration.stored = configuration.pulls.keys() - lacking
        self._store(configuration)

    def catch_up(self) -> list[News]:
        """Read what others have written since the last time, or what there is the first time."""
        news: list[News] = []
        for trial in self.patiently(lambda: _compat.all_trials(self.study)):
            if trial.number in self._read:
                continue
            owner = str(trial.user_attrs.get(OWNER, ""))
            unit = trial.user_attrs.get(UNIT)
            if trial.state.is_finished():
                self._read.add(trial.number)
            elif owner == self.owner and owner:
                continue
            row = _row(unit, len(self.space.space.parameters))
            if row is None:
                continue
            place = self._place(row)
            configuration = self.configurations[place]
            news += self._folds(place, trial)
            ours = configuration.trial
            if ours is not None and ours.number == trial.number:
                self._let_go(configuration, ours)  # closed, or taken over by who missed us
            if configuration.trial is None:  # not ours
                open_now = not trial.state.is_finished()
                configuration.owner = owner if open_now else ""
                if open_now:
                    self._open[place] = trial
                else:
                    self._open.pop(place, None)
        return news

    def _folds(self, place: int, trial: FrozenTrial) -> Iterator[News]:
        known = self.configurations[place].pulls
        for fold in range(self.n_folds):
            pull = PullRecord.from_attribute(trial.user_attrs.get(f"{FOLD}{fold}"))
            if pull is None or known.get(fold) == pull:
                continue
            if fold in known and known[fold].result is not None:
                continue  # a fold that has finished stays as it is
            seen = 1 + len(known[fold].before) if fold in known else 0
            known[fold] = pull
            yield News(place, fold, pull, tuple(s for s, _ in pull.before[seen:]))

    def _score(self, configuration: ConfigurationRecord, fold: int) -> float:
        result = configuration.finished(fold)
        assert result is not None
        return metric_of(result.test_scores, self.metric)


def _row(content: Any, length: int) -> Floats | None:
    """A row of the unit cube as it was stored; None if it is none."""
    if not isinstance(content, list) or len(content) != length:
        return None
    numbers = [math.nan if one is None else number_or(one, -1.0) for one in content]
    inside = all(math.isnan(number) or 0.0 <= number <= 1.0 for number in numbers)
    return np.array(numbers) if inside else None
