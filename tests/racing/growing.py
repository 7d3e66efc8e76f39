"""Fits that grow, played in virtual time with any number of workers."""

import heapq
import itertools
import math

import numpy as np

from f2a_tune.outcome import ErrorReport, Outcome
from f2a_tune.racing import CurveProposals, Look, Parameter, Race, Space

EFFORTS = (1.0, 2.0, 4.0, 8.0, 16.0)
TOP = len(EFFORTS) - 1
SPACE = Space((Parameter("x", "float", low=0.0, high=1.0),))
N_FOLDS = 3
OVERHEAD = 0.005


def rising(x, fold, level):
    """Better with every level, and best at x = 0.7."""
    return 1.0 - (x - 0.7) ** 2 - 0.3 / EFFORTS[level] + 0.01 * fold


class World:
    """Curves that are known for every configuration, fold and level.

    ``last(x, fold)`` is the level at which a fit stops by itself, ``breaks(x, fold)`` the level
    that it does not survive.
    """

    def __init__(
        self,
        score=rising,
        seconds=lambda x, effort: 0.05 * effort,
        last=lambda x, fold: TOP,
        breaks=lambda x, fold: math.inf,
    ):
        self.score, self.seconds, self.last, self.breaks = score, seconds, last, breaks
        self.done = {}
        """Seconds that every fit has run and need not run again."""

    def run(self, pull, x, cutoff):
        """Grow a fit to the level of a pull, or to its cutoff; returns outcome and looks."""
        key = pull.configuration, pull.fold
        times = [self.seconds(x, effort) for effort in EFFORTS]
        wanted = TOP if pull.level is None else pull.level
        level = min(wanted, self.last(x, pull.fold))
        begin = self.done.get(key, 0.0)
        end = min(max(times[level], begin), begin + cutoff)
        broken = self.breaks(x, pull.fold)
        looks = [
            Look(passed, self.score(x, pull.fold, passed), times[passed])
            for passed in range(level + 1)
            if begin < times[passed] <= end and passed < broken and pull.level is not None
        ]
        self.done[key] = end
        if broken <= level and times[broken] <= end:
            return Outcome.failed(ErrorReport("ValueError", "it broke"), end - begin), looks
        if times[level] > end:
            return Outcome.gave_up(end - begin), looks
        value = self.score(x, pull.fold, level)
        return Outcome.finished(value, end - begin), looks


class Player:
    """Plays a race in a world until the budget ends."""

    def __init__(
        self,
        world,
        budget=20.0,
        *,
        n_folds=N_FOLDS,
        seed=0,
        n_workers=1,
        space=SPACE,
        grows=None,
        most_paused=None,
        **options,
    ):
        self.world, self.budget, self.n_workers = world, budget, n_workers
        self.race = Race(n_folds, budget, efforts=EFFORTS, n_workers=n_workers, **options)
        self.proposals = CurveProposals(space, budget, seed, grows=grows)
        self.most_paused = most_paused
        self.units, self.history, self.looks = [], [], {}
        self.now, self.idle = 0.0, n_workers
        self._running, self._tickets = [], itertools.count()

    @property
    def pulls(self):
        return [pull for pull, _ in self.history]

    @property
    def curves(self):
        return self.race.ledger.curves

    def ask(self):
        left = self.race.time_left(self.now)
        offer = self.proposals.offer(self.race.ledger, self.units, left)
        if offer is None or not len(offer.unit):
            self.race.exhausted()
        pull = self.race.ask(self.now, offer)
        if pull is not None and pull.fresh:
            self.units.append(offer.unit)
        return pull

    def play(self, most_pulls=math.inf):
        while len(self.history) < most_pulls:
            while self.idle and self.now < self.budget:
                pull = self.ask()
                if pull is None:
                    break
                self._start(pull)
            if not self._running:
                break
            self._end(*heapq.heappop(self._running))
        return self.race.recommend(final=True)

    def _start(self, pull):
        self.idle -= 1
        if self.curves.spent[pull.configuration, pull.fold] == 0:
            self.world.done.pop((pull.configuration, pull.fold), None)  # it starts again
        cutoff = min(pull.cutoff_seconds, self.budget - self.now)
        outcome, looks = self.world.run(pull, self.x_of(pull), cutoff)
        end = self.now + outcome.seconds + OVERHEAD
        heapq.heappush(self._running, (end, next(self._tickets), pull, outcome, looks))

    def _end(self, now, _, pull, outcome, looks):
        self.now, self.idle = now, self.idle + 1
        self.race.tell(pull, outcome, looks)
        self.history.append((pull, outcome))
        self.looks[pull.number] = looks
        if self.most_paused is not None:
            for configuration, fold in self.race.surplus(self.most_paused):
                self.race.lose(configuration, fold)

    def x_of(self, chosen):
        return float(self.units[chosen.configuration][0])

    def regret(self, best):
        """How far the recommended configuration is from the best x, at its level."""
        scores = [self.world.score(self.x_of(best), fold, best.level) for fold in range(N_FOLDS)]
        possible = [self.world.score(0.7, fold, TOP) for fold in range(N_FOLDS)]
        return float(np.mean(possible) - np.mean(scores))
