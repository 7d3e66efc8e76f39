"""The tuner: asked for pulls, told their outcomes, it recommends a configuration at any time.

In flow the seconds spent so far and outcomes; out flow `Pull` objects. There is no clock and no
process in here, and no memory but what it was told: a race that is given the same (pull, outcome)
pairs again decides the same. Which pull comes next is the business of a rule: `rule.RacingRule` by
default, `pool.PoolRule` for the paper's algorithm and its rivals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from f2a_tune.bandit import Policy, WaitUCB
from f2a_tune.checks import (
    known_name,
    positive_integer,
    positive_number,
    real_number,
    rising_numbers,
)
from f2a_tune.outcome import Kind, Outcome
from f2a_tune.racing.contenders import Contenders
from f2a_tune.racing.cutoffs import FirstPulls, at_least, fresh_cutoff
from f2a_tune.racing.ledger import Ledger, is_score
from f2a_tune.racing.offer import Offer
from f2a_tune.racing.pool import PoolRule
from f2a_tune.racing.pull import Pull, Recommendation
from f2a_tune.racing.rule import RacingRule, Rule, Situation

POLICIES = ("race", "wait-ucb")


# What first pulls say is read again when this share more outcomes are there: always at first, and
# later so rarely that a decision costs the same however many came before it.
RELEARN_SHARE = 1 / 32


@dataclass(frozen=True)
class _Learned:
    """What first pulls say about waiting."""

    first_pulls: FirstPulls
    cutoff_seconds: float


class Race:
    """Chooses fold fits and cutoffs inside a budget.

    Parameters
    ----------
    n_folds
        Fits that make a configuration fully validated.
    budget_seconds
        What may be spent; ``now`` counts from 0 to this. ``math.inf``: nobody knows; then the
        first configuration is waited for as long as it takes.
    maximize
        Whether larger scores are better.
    policy
        "race", "wait-ucb" (the paper's algorithm over a fixed pool), or any policy of
        `f2a_tune.bandit`, over the same pool.
    timeouts
        The cutoffs to choose from, in seconds; learned if left out.
    exploration
        Size of Wait-UCB's confidence radius in the race's index; 0 is greedy, and measured best.
    n_workers
        How many pulls run at a time.
    pool_size
        Configurations in the pool of "wait-ucb" or a policy.
    use_cutoffs
        False waits for every fit to the end of the budget.
    paired
        Whether fold 2 of one configuration is the same data as fold 2 of another; False for
        repeated evaluations of something noisy.

    Examples
    --------
    >>> race = Race(n_folds=2, budget_seconds=10.0)
    >>> pull = race.ask(now=0.0)
    >>> pull.fresh, pull.configuration, pull.fold
    (True, 0, 0)
    >>> race.tell(pull, Outcome.finished(0.8, seconds=0.01))
    >>> race.recommend().configuration
    0
    """

    def __init__(
        self,
        n_folds: int,
        budget_seconds: float,
        *,
        maximize: bool = True,
        policy: str | Policy = "race",
        timeouts: Iterable[float] | None = None,
        exploration: float = 0.0,
        n_workers: int = 1,
        pool_size: int = 20,
        seed: int = 0,
        use_cutoffs: bool = True,
        paired: bool = True,
    ) -> None:
        self.n_folds = positive_integer("n_folds", n_folds)
        self.budget_seconds = positive_number("budget_seconds", budget_seconds, endless=True)
        self.n_workers = positive_integer("n_workers", n_workers)
        self.timeouts = None if timeouts is None else rising_numbers("timeouts", timeouts)
        self.exploration = real_number("exploration", exploration)
        if not (math.isfinite(self.exploration) and self.exploration >= 0):
            raise ValueError(f"exploration must be at least 0, got {exploration!r}.")
        self.sign = 1.0 if maximize else -1.0
        self.ledger = Ledger(self.n_folds, paired=paired)
        self.in_flight: dict[int, Pull] = {}
        self.n_pulls = 0
        self.reservoir_open = True
        self._use_cutoffs = use_cutoffs
        self._n_told = self._next_lesson = 0
        self._learned: _Learned | None = None
        """None if the lesson is due."""
        self._contenders: tuple[Contenders | None] | None = None
        """Of the ledger as it is; None if it has changed."""
        self._rule = self._make_rule(policy, positive_integer("pool_size", pool_size), seed)

    def ask(self, now: float, offer: Offer | None = None) -> Pull | None:
        """The next pull to run; None if there is nothing to do now.

        ``offer`` is the configuration that the caller would draw next, with what it expects of
        it. Nothing to do means: out of time, or every configuration is done or in flight.
        """
        pull = self.choose(now, offer)
        if pull is not None:
            pull = replace(pull, number=self.n_pulls)
            self.start(pull)
        return pull

    def choose(self, now: float, offer: Offer | None = None) -> Pull | None:
        """What `ask` would return now, without handing it out."""
        situation = self.situation(now, offer)
        if situation.seconds_left <= 0:
            return None
        pull = self._rule.choose(situation)
        if pull is not None and not self._use_cutoffs:
            pull = replace(pull, cutoff_seconds=situation.seconds_left)
        return pull

    def start(self, pull: Pull) -> None:
        """A pull that was chosen, here or elsewhere, is running under its number."""
        if pull.number in self.in_flight:
            raise ValueError(f"pull number {pull.number} is in flight already.")
        self.n_pulls = max(self.n_pulls, pull.number + 1)
        self.in_flight[pull.number] = pull
        self.ledger.start(pull)
        self._contenders = None

    def tell(self, pull: Pull, outcome: Outcome) -> None:
        """What became of a pull."""
        self._land(pull)
        self._n_told += 1
        lesson = self._n_told > self._next_lesson
        if not lesson:
            self._learn()  # the last lesson is of the time before this outcome
        oriented = outcome
        if outcome.kind is Kind.FINISHED and is_score(outcome.value):
            oriented = replace(outcome, value=self.sign * float(outcome.value))
        self.ledger.finish(pull, oriented)
        self._contenders = None
        if lesson:
            self._learned = None
            self._next_lesson = self._n_told + int(RELEARN_SHARE * self._n_told)
        self._rule.learn(pull, oriented)

    def withdraw(self, pull: Pull) -> None:
        """A pull came to nothing, as if it had never been asked for."""
        self._land(pull)
        self.ledger.withdraw(pull)
        self._contenders = None

    def release(self, pull: Pull) -> None:
        """A pull that somebody else was running is not running any more, and said nothing."""
        self._land(pull)
        self.ledger.release(pull)
        self._contenders = None

    def set_budget(self, budget_seconds: float) -> None:
        """Go on with another budget, of which ``now`` counts from here on."""
        if budget_seconds != self.budget_seconds:
            self.budget_seconds = budget_seconds
            self._learned = None

    def exhausted(self, pull: Pull | None = None) -> None:
        """There is no fresh configuration left; ``pull`` is the one that asked for it in vain."""
        self.reservoir_open = False
        if pull is not None:
            self.withdraw(pull)
        self._rule.close()

    def reopen(self) -> None:
        """There is something fresh after all."""
        self.reservoir_open = True

    def rebuild(self, history: Iterable[tuple[Pull, Outcome | None]]) -> None:
        """Take in what an earlier race with the same arguments did; None is still in flight."""
        for pull, outcome in history:
            self.start(pull)
            if outcome is not None:
                self.tell(pull, outcome)

    def recommend(self, *, final: bool = False) -> Recommendation | None:
        """The configuration to use if the race ended now; None if nothing has finished.

        A mean over few folds is marked down by its standard error. With ``final`` a fully
        validated configuration goes before all others.
        """
        estimates = self.ledger.estimates()
        if not len(estimates.scored):
            return None
        folds = estimates.folds[estimates.scored]
        lack = np.maximum(1.0 / folds - 1.0 / self.n_folds, 0.0)
        marked_down = estimates.value[estimates.scored] - np.sqrt(estimates.noise * lack)
        if final and (folds == self.n_folds).any():
            marked_down = np.where(folds == self.n_folds, marked_down, -np.inf)
        chosen = int(estimates.scored[int(marked_down.argmax())])
        scores = self.ledger.scores[chosen]
        scores = self.sign * scores[~np.isnan(scores)]
        with np.errstate(over="ignore"):  # the spread of scores of 1e300 is infinite
            spread = float(scores.std(ddof=1)) if len(scores) > 1 else 0.0
        return Recommendation(
            configuration=chosen,
            folds_done=len(scores),
            mean=float(scores.mean()),
            spread=spread,
            fully_validated=len(scores) == self.n_folds,
        )

    def fresh_cutoff(self, now: float) -> float:
        """How long a fresh pull would be waited for now."""
        situation = self.situation(now)
        return situation.fresh_cutoff if self._use_cutoffs else situation.seconds_left

    def situation(self, now: float, offer: Offer | None = None) -> Situation:
        """All that a rule may look at."""
        learned = self._learn()
        if self._contenders is None:
            self._contenders = (Contenders.of(self.ledger, self.timeouts),)
        left, contenders = self.budget_seconds - real_number("now", now), self._contenders[0]
        wait = learned.cutoff_seconds
        if offer is not None and offer.least_share > 0:
            wait = max(wait, at_least(offer.least_share * self.budget_seconds, self.timeouts))
        reserved, kept = None, 0.0
        if contenders is not None:
            reserved, kept = contenders.reserve(left, self.n_workers)
        return Situation(
            ledger=self.ledger,
            first_pulls=learned.first_pulls,
            learned_cutoff=wait,
            seconds_left=left,
            reservoir_open=self.reservoir_open,
            timeouts=self.timeouts,
            in_flight=tuple(self.in_flight.values()),
            offer=offer,
            contenders=contenders,
            reserved_for=reserved,
            seconds_kept=kept,
        )

    def _land(self, pull: Pull) -> None:
        if self.in_flight.get(pull.number) != pull:
            raise ValueError(
                f"pull number {pull.number} is not in flight: "
                "tell each pull that ask() returned exactly once."
            )
        del self.in_flight[pull.number]

    def _learn(self) -> _Learned:
        if self._learned is None:
            first_pulls = FirstPulls.of(self.ledger)
            wait = fresh_cutoff(first_pulls, self.budget_seconds, self.timeouts)
            self._learned = _Learned(first_pulls, wait)
        return self._learned

    def _make_rule(self, policy: str | Policy, pool_size: int, seed: int) -> Rule:
        if not isinstance(policy, Policy):
            if known_name("policy", policy, POLICIES) == "race":
                return RacingRule(self.exploration)
            policy = WaitUCB()
        if math.isinf(self.budget_seconds) and self.timeouts is None:
            raise ValueError("timeouts must be given with a bandit policy and no budget.")
        if not self._use_cutoffs:
            raise ValueError("use_cutoffs=False needs policy='race': a bandit chooses its waits.")
        return PoolRule(policy, pool_size, self.n_folds, self.budget_seconds, self.timeouts, seed)
