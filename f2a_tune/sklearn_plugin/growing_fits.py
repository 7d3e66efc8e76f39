"""Growing fits of a search, as the parent process sees them: their calls, results and pauses.

A fit that has reached the level of its pull, or its cutoff, is paused: its worker process is
stopped, keeps its memory, and continues with a later pull. The number of paused fits and their
memory are limited; the race says which ones to keep.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from f2a_tune.cutoff.call import PAUSE, Call
from f2a_tune.cutoff.paused_call import PausedCall
from f2a_tune.cutoff.processes import available_bytes
from f2a_tune.growth.ladder import Ladder
from f2a_tune.outcome import FoldResult, Kind, Outcome
from f2a_tune.racing import Pull, Race
from f2a_tune.sklearn_plugin.growing_fold import RoundsReport
from f2a_tune.sklearn_plugin.growth_plan import Rounds
from f2a_tune.study.fold_record import FoldRecord, LevelResult

# Largest number of paused fits, and the largest share of the available memory that they may use.
MOST_PAUSED = 32
PAUSED_MEMORY_SHARE = 0.25

Key = tuple[int, int]


@dataclass
class Leg:
    """One pull of a growing fit: the part between two pauses."""

    pull: Pull
    parameter: str
    rounds: tuple[int, ...]
    """Rounds of each level."""
    results: list[LevelResult] = field(default_factory=list)

    def answer(self, report: RoundsReport) -> Any:
        """Take the result after some rounds, and decide whether the fit goes on."""
        last = len(self.rounds) - 1
        reached = next(
            (level for level, count in enumerate(self.rounds) if count >= report.rounds), last
        )
        levels = [one for one, count in enumerate(self.rounds) if count == self.rounds[reached]]
        self.results += [
            LevelResult(level, self.rounds[level], report.seconds, report.result)
            for level in levels
        ]
        wanted = last if self.pull.level is None else self.pull.level
        return PAUSE if wanted <= levels[-1] < last else True

    @property
    def last_result(self) -> FoldResult | None:
        """The result of the last level that this pull has reached."""
        return self.results[-1].result if self.results else None

    def outcome(self, ended: Outcome) -> Outcome:
        """The outcome of the pull, given how its call ended."""
        if ended.kind not in (Kind.PAUSED, Kind.FINISHED, Kind.GAVE_UP):
            return ended
        if self.results and (ended.kind is Kind.FINISHED or self._is_done):
            return Outcome.finished(self.last_result, ended.seconds)
        return Outcome.gave_up(self.pull.cutoff_seconds, ended.seconds)

    @property
    def _is_done(self) -> bool:
        wanted = len(self.rounds) - 1 if self.pull.level is None else self.pull.level
        return bool(self.results) and self.results[-1].level >= wanted

    def record(self, ended: Outcome, cutoff_seconds: float, at_seconds: float) -> FoldRecord:
        """The record of the pull; a fit that has been scored counts as finished."""
        base = FoldRecord.of(self.outcome(ended), cutoff_seconds, at_seconds, self.pull.reason)
        stopped = ended.kind is Kind.FINISHED and not self._is_done
        return replace(
            base,
            kind=Kind.FINISHED if self.results else base.kind,
            result=self.last_result,
            curve=tuple(self.results),
            rounds_parameter=self.parameter,
            stopped_itself=stopped,
        )


@dataclass(frozen=True)
class _Paused:
    call: PausedCall
    memory_bytes: int


class GrowingFits:
    """Starts, pauses, continues and drops the growing fits of a search.

    All methods must be called with the lock of the search held.
    """

    def __init__(
        self,
        race: Race,
        ladder: Ladder,
        most_paused: int = MOST_PAUSED,
        most_memory_bytes: float | None = None,
    ) -> None:
        self._race, self._ladder = race, ladder
        self._most_paused = most_paused
        if most_memory_bytes is None:
            most_memory_bytes = PAUSED_MEMORY_SHARE * (available_bytes() or float("inf"))
        self._most_memory_bytes = most_memory_bytes
        self._paused: dict[Key, _Paused] = {}

    def leg(self, pull: Pull, rounds: Rounds) -> Leg:
        """Return the leg for a pull of a configuration that grows in this way."""
        return Leg(pull, rounds.parameter, self._ladder.rounds(rounds.whole))

    def call(self, leg: Leg, call: Call) -> Call:
        """Return ``call``, which starts the fit of a leg, so that it continues a paused fit."""
        pull = leg.pull
        paused = self._paused.pop((pull.configuration, pull.fold), None)
        if paused is not None and paused.call.is_alive:
            call = replace(call, continues=paused.call)
        elif paused is not None:  # its process was killed from outside
            paused.call.drop()
            self._race.lose(pull.configuration, pull.fold)
        return replace(call, answer=leg.answer, pausable=True)

    def keep(self, pull: Pull, outcome: Outcome) -> None:
        """Keep the paused fit of a pull that has ended, and drop fits if there are too many."""
        key = pull.configuration, pull.fold
        if outcome.kind is Kind.PAUSED:
            self._paused[key] = _Paused(outcome.value, outcome.value.memory_bytes)
        elif outcome.kind is not Kind.FINISHED:
            self._race.lose(*key)
        self._make_room()

    def forget(self, pull: Pull) -> None:
        """Report that the process of a pull is gone."""
        self._race.lose(pull.configuration, pull.fold)

    def clear(self) -> None:
        """Drop all paused fits."""
        for key in list(self._paused):
            self._drop(key)

    def _make_room(self) -> None:
        ordered = [key for key in self._race.surplus(0) if key in self._paused]
        memory_bytes, n_kept = 0, 0
        for key in ordered:
            memory_bytes += self._paused[key].memory_bytes
            if n_kept < self._most_paused and memory_bytes <= self._most_memory_bytes:
                n_kept += 1
            else:
                memory_bytes -= self._paused[key].memory_bytes
                self._drop(key)
        for key in self._paused.keys() - set(ordered):
            self._drop(key)

    def _drop(self, key: Key) -> None:
        self._paused.pop(key).call.drop()
        self._race.lose(*key)
