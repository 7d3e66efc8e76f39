"""Tuning in virtual time for tests: tables of seconds and scores take the place of fits."""

import heapq
import itertools
from dataclasses import dataclass, field

import numpy as np

from f2a_tune.outcome import ErrorReport, Outcome
from f2a_tune.racing import Pull

OVERHEAD_SECONDS = 0.001


@dataclass
class Play:
    """What happened."""

    history: list[tuple[Pull, Outcome | None]] = field(default_factory=list)
    now: float = 0.0
    busiest: int = 0

    @property
    def pulls(self):
        return [pull for pull, _ in self.history]

    @property
    def decisions(self):
        """All that a race decided, without the words."""
        return [(p.configuration, p.fold, p.cutoff_seconds, p.fresh) for p in self.pulls]

    def seconds(self, kind):
        return sum(o.seconds for _, o in self.history if o is not None and o.kind == kind)


def play(race, seconds, scores, *, n_workers=1, most_pulls=100_000, until=None):
    """Run a race over a table until it has nothing to ask for; configuration i is row i."""
    done, running, ticket = Play(), [], itertools.count()
    now, idle = 0.0, n_workers
    while len(done.history) < most_pulls:
        while idle and (until is None or now < until):
            pull = race.ask(now)
            if pull is None:
                break
            if pull.fresh and pull.configuration >= len(scores):
                race.exhausted(pull)
                continue
            idle -= 1
            outcome = fit(pull, seconds, scores)
            end = now + OVERHEAD_SECONDS + outcome.seconds
            heapq.heappush(running, (end, next(ticket), pull, outcome))
            done.busiest = max(done.busiest, len(running))
        if not running:
            break
        now, _, pull, outcome = heapq.heappop(running)
        idle += 1
        race.tell(pull, outcome)
        done.history.append((pull, outcome))
        done.now = now
    return done


def fit(pull, seconds, scores):
    """The recorded fit: NaN fails, None in an object table raises the question elsewhere."""
    took = float(seconds[pull.configuration, pull.fold])
    if took > pull.cutoff_seconds:
        return Outcome.gave_up(pull.cutoff_seconds)
    score = scores[pull.configuration, pull.fold]
    if isinstance(score, float) and np.isneginf(score):
        return Outcome.failed(ErrorReport("ValueError", "no"), took)
    return Outcome.finished(score, took)


def table(n=200, k=5, seed=0, slow_is_better=0.0, noise=0.1, spread=1.5):
    """Seconds with a heavy tail, scores that may rise with them."""
    rng = np.random.default_rng(seed)
    log_seconds = spread * rng.normal(size=n)
    quality = rng.normal(size=n) + slow_is_better * log_seconds
    seconds = np.exp(log_seconds)[:, None] * rng.uniform(0.8, 1.2, (n, k))
    scores = quality[:, None] + noise * rng.normal(size=(n, k)) + rng.normal(size=k) * 0.2
    return seconds, scores


def regret(race, scores):
    """(best − recommended)/(best − median) of the mean over all folds; 1 for nothing."""
    recommendation = race.recommend(final=True)
    truth = scores.mean(axis=1)
    if recommendation is None:
        return 1.0
    gap = truth.max() - truth[recommendation.configuration]
    return gap / (truth.max() - np.median(truth))
