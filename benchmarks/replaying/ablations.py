"""Variants of the race without one of its parts, to measure the benefit of that part."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import numpy as np
import optuna

from f2a_tune.racing import Ledger, Offer, Pull, cutoffs, proposals
from f2a_tune.racing.rule import RacingRule
from f2a_tune.racing.situation import Situation
from replaying.engine import Job
from replaying.problem import Problem
from replaying.racers import RaceMethod
from replaying.table import Floats
from replaying.whole import suggest_all


class WholeRule(RacingRule):
    """Evaluates all folds of a configuration before the next one is drawn."""

    def choose(self, situation: Situation) -> Pull | None:
        ledger = situation.ledger
        started = ~np.isnan(ledger.first_seconds) & ~ledger.failed & ~ledger.pending.any(axis=1)
        for row in np.flatnonzero(started & np.isnan(ledger.scores).any(axis=1)):
            mean = float(ledger.estimates().seconds[row])
            wait = cutoffs.later_cutoff(mean, float(ledger.waited[row]), None)
            fold = int(np.flatnonzero(np.isnan(ledger.scores[row]))[0])
            return Pull(int(row), fold, min(wait, situation.seconds_left))
        fresh = self._fresh(situation)
        return None if fresh is None else fresh.pull


def unraced(problem: Problem) -> RaceMethod:
    """A race that evaluates all folds of every configuration."""
    method = RaceMethod(problem)
    method.race._rule = WholeRule()
    return method


class Unranked(RaceMethod):
    """Uses scores instead of ranks, in the model and in the reward of the cutoff."""

    def ask(self, now: float, worker: int) -> Job | None:
        with (
            mock.patch.object(proposals, "_normal_scores", _standardised),
            mock.patch.object(cutoffs, "REWARD_POWER", 1),
        ):
            return super().ask(now, worker)


def _standardised(values: Floats) -> Floats:
    deviation = float(values.std())
    return np.asarray((values - values.mean()) / deviation if deviation > 0 else 0.0 * values)


def with_tpe(problem: Problem) -> RaceMethod:
    """A race with proposals of Optuna's TPE; a quarter is random, as with our model."""
    method = RaceMethod(problem, model=False)
    method.proposals = TpeProposals(problem, method.proposals)
    return method


class TpeProposals:
    """Tells TPE one result per configuration: its first score, or that it was given up."""

    def __init__(self, problem: Problem, random: proposals.Proposals) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(n_startup_trials=5, seed=problem.seed)
        self.study = optuna.create_study(direction="maximize", sampler=sampler)
        self.problem, self.random = problem, random
        self.rng = np.random.default_rng(problem.seed)
        self.open: dict[int, optuna.Trial] = {}
        self.waiting: tuple[optuna.Trial, Floats] | None = None
        self.seen = 0

    def offer(self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float) -> Offer:
        if self.waiting is not None and len(units) - 1 not in self.open and len(units) > self.seen:
            self.open[len(units) - 1], self.waiting = self.waiting[0], None
        self._tell(ledger)
        self.seen = len(units)
        if self.waiting is None:
            self.waiting = self._ask(ledger, units, cutoff_seconds)
        return Offer(self.waiting[1])

    def _ask(
        self, ledger: Ledger, units: Sequence[Floats], cutoff_seconds: float
    ) -> tuple[optuna.Trial, Floats]:
        n_scored = len(ledger.estimates().scored)
        if n_scored < proposals.FEWEST_SCORED or self.rng.random() < proposals.RANDOM_SHARE:
            drawn = self.random.offer(ledger, units, cutoff_seconds)
            if drawn is not None:
                self.study.enqueue_trial(self.problem.space.configuration(drawn.unit))
        trial = self.study.ask()
        return trial, self.problem.space.encode(suggest_all(trial, self.problem))

    def _tell(self, ledger: Ledger) -> None:
        for row, trial in list(self.open.items()):
            if not np.isnan(ledger.first_seconds[row]):
                scores = ledger.scores[row]
                self.study.tell(trial, float(scores[~np.isnan(scores)][0]))
            elif ledger.waited[row] > 0:
                self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            elif ledger.failed[row]:
                self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                continue
            del self.open[row]
