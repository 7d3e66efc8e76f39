"""Proposes configurations that an Optuna sampler draws.

The sampler sees an in-memory study with one trial per configuration. A trial is told as soon as
the race knows a score of its configuration or has given it up; until then it is RUNNING. A draw
that the race does not take is offered again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from f2a_tune.racing import Ledger, Offer, RandomProposals
from f2a_tune.racing.space import Floats
from f2a_tune.sklearn_plugin.search_space import SearchSpace
from f2a_tune.study import optuna_private
from f2a_tune.study.storages import quiet_optuna

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial


class OptunaProposals:
    """Proposes what ``sampler`` suggests, or a random configuration if it repeats itself."""

    def __init__(self, space: SearchSpace, sampler: BaseSampler, seed: int) -> None:
        self.space = space
        self._random = RandomProposals(space.space, seed)
        with quiet_optuna():
            self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._running: dict[bytes, Trial] = {}
        self._told: set[int] = set()
        self._offered: Floats | None = None

    def offer(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> Offer | None:
        """Return the sampler's next suggestion without a forecast, or None if it has stopped."""
        with optuna_private.optimize_loop(self._study):  # a sampler may call study.stop()
            return self._offer(ledger, units, cutoff_seconds)

    def _offer(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> Offer | None:
        self._tell(ledger, units)
        drawn = {unit.tobytes() for unit in units}
        if self._offered is None or self._offered.tobytes() in drawn:
            if optuna_private.stop_requested(self._study):
                return None
            self._offered = self._suggest(drawn)
        if self._offered is None:
            return self._random.offer(ledger, units, cutoff_seconds)
        return Offer(self._offered)

    def _suggest(self, drawn: set[bytes]) -> Floats | None:
        trial = self._study.ask()
        unit = self.space.drawn(lambda name, distribution: _suggest(trial, name, distribution))
        if unit.tobytes() in drawn:
            self._study.tell(trial, state=TrialState.FAIL)
            return None
        self._running[unit.tobytes()] = trial
        return unit

    def _tell(self, ledger: Ledger, units: Sequence[Floats]) -> None:
        for row, unit in enumerate(units):
            if row in self._told or row >= ledger.n:
                continue
            value, state = _what_is_known(ledger, row)
            if state is None:
                continue
            self._told.add(row)
            trial = self._running.pop(unit.tobytes(), None)
            if trial is not None:
                self._study.tell(trial, value, state=None if value is not None else state)
                continue
            stored = self.space.stored(unit)  # drawn by another process, or before a resume
            self._study.add_trial(
                optuna.trial.create_trial(
                    params={name: value for name, (value, _) in stored.items()},
                    distributions={name: one for name, (_, one) in stored.items()},
                    value=value,
                    state=state,
                )
            )


def _what_is_known(ledger: Ledger, row: int) -> tuple[float | None, TrialState | None]:
    scores = ledger.scores[row]
    scores = scores[~np.isnan(scores)]
    if len(scores):
        return float(scores.mean()), TrialState.COMPLETE
    if ledger.failed[row]:
        return None, TrialState.FAIL
    return None, TrialState.PRUNED if ledger.waited[row] > 0 else None


def _suggest(trial: Trial, name: str, distribution: BaseDistribution) -> Any:
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(
            name, distribution.low, distribution.high, step=distribution.step, log=distribution.log
        )
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(
            name, distribution.low, distribution.high, step=distribution.step, log=distribution.log
        )
    assert isinstance(distribution, CategoricalDistribution)
    return trial.suggest_categorical(name, distribution.choices)
