"""`Race`, the tuner: an ask-and-tell interface that can recommend a configuration at any time.

The caller passes the seconds spent so far and runs the pulls; this module uses no clock and no
processes. The state depends only on what the race was told: with the same (pull, outcome) pairs,
it makes the same decisions. A rule chooses the next pull: `rule.RacingRule` by default, or
`arm_pool.PoolRule` for the algorithm of the paper and other bandit policies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from f2a_tune.bandit import Policy, WaitUCB
from f2a_tune.checks import (
    known_name,
    positive_integer,
    positive_number,
    real_number,
    rising_numbers,
)
from f2a_tune.outcome import Kind, Outcome
from f2a_tune.racing.arm_pool import PoolRule
from f2a_tune.racing.contenders import BASELINE_SHARE, OVERHEAD_SECONDS, Contenders, Reservation
from f2a_tune.racing.curve_model import TimeLeft
from f2a_tune.racing.cutoffs import SHORTEST_SECONDS, FirstPulls, Learned, fresh_cutoff
from f2a_tune.racing.growth_rule import GrowthRule, longest_first_look, longest_whole_fit
from f2a_tune.racing.ledger import Ledger, is_score
from f2a_tune.racing.offer import Offer
from f2a_tune.racing.opening import fresh_wait
from f2a_tune.racing.paused import paused_fits
from f2a_tune.racing.pull import Look, Pull, Recommendation
from f2a_tune.racing.recommendation import recommended
from f2a_tune.racing.rule import RacingRule, Rule
from f2a_tune.racing.situation import Situation

POLICIES = ("race", "wait-ucb")

# First pulls are evaluated again when the number of outcomes has grown by this share: after every
# outcome at first, and later so rarely that the cost of a decision does not grow with the history.
RELEARN_SHARE = 1 / 32
# While fewer configurations than PATIENT_SCORES have a score, the baseline may run beyond its
# cutoff, by EXTENSION_SHARE of the budget at a time.
PATIENT_SCORES = 3
EXTENSION_SHARE = 1 / 50


class Race:
    """Chooses which configuration to fit next, on which fold and with which cutoff.

    Call `ask` for the next pull, run it, and pass the result to `tell`. `recommend` returns the
    best configuration at any time.

    Parameters
    ----------
    n_folds : int
        Number of folds. A configuration with scores on all folds is fully validated.
    budget_seconds : float
        Time budget in seconds. The argument ``now`` of the methods runs from 0 to this value. With
        ``math.inf`` (no known limit), there is no cutoff for the first configuration.
    maximize : bool, default=True
        Whether larger scores are better.
    policy : {"race", "wait-ucb"} or Policy, default="race"
        ``"wait-ucb"`` is the algorithm of the paper over a fixed pool of configurations. A policy
        object of `f2a_tune.bandit` plays over the same pool. Both are for comparisons; ``"race"``
        finds better configurations in the replay benchmark.
    timeouts : iterable of float, default=None
        Allowed cutoffs in seconds, strictly increasing. None means that cutoffs are learned.
    exploration : float, default=0.0
        Factor of Wait-UCB's confidence radius in the race's index. 0 is greedy, which was best in
        the replay benchmark.
    n_workers : int, default=1
        Number of pulls that run at the same time.
    pool_size : int, default=20
        Number of configurations in the pool; ignored with ``policy="race"``.
    seed : int, default=0
        Seed of the bandit policy; ignored with ``policy="race"``, which draws no random numbers.
    use_cutoffs : bool, default=True
        If False, every fit may run until the end of the budget.
    paired : bool, default=True
        Whether the same fold of two configurations uses the same data. Pass False for repeated
        evaluations of a noisy objective.
    refit_fits : float, default=0.0
        Seconds of refitting the winner per second of a fit on one fold; 0 without a refit. The
        caller must count the expected time of the refit as already spent in ``now``.
    shortest_cutoff_seconds : float, default=0.01
        Shortest cutoff. Increase it if killing a fit and starting another process is expensive.
    efforts : iterable of float, default=None
        Efforts of the levels of fits that grow, strictly increasing, such as numbers of rounds.
        Pulls then have a level, and a fit that has reached it can be continued to the next one.
        A pull without a level is a whole fit, for configurations that cannot grow. None means that
        all fits are whole.
    resumable : bool, default=True
        Whether a growing fit can be paused and continued. If False, it must start again.
    baseline_level : int, default=None
        Level at which the baseline is to be beaten. None means its best level.

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
        refit_fits: float = 0.0,
        shortest_cutoff_seconds: float = SHORTEST_SECONDS,
        efforts: Iterable[float] | None = None,
        resumable: bool = True,
        baseline_level: int | None = None,
    ) -> None:
        self.n_folds = positive_integer("n_folds", n_folds)
        self.budget_seconds = positive_number("budget_seconds", budget_seconds, endless=True)
        self.n_workers = positive_integer("n_workers", n_workers)
        self.timeouts = None if timeouts is None else rising_numbers("timeouts", timeouts)
        self.exploration = real_number("exploration", exploration)
        if not (math.isfinite(self.exploration) and self.exploration >= 0):
            raise ValueError(f"exploration must be at least 0, got {exploration!r}.")
        self.sign = 1.0 if maximize else -1.0
        self.efforts = None if efforts is None else rising_numbers("efforts", efforts)
        self.resumable = resumable
        self.baseline_level = baseline_level
        self.ledger = Ledger(self.n_folds, paired=paired, efforts=self.efforts)
        self.in_flight: dict[int, Pull] = {}
        self.n_pulls = 0
        self.reservoir_open = True
        self.refit_fits = refit_fits
        self.shortest_cutoff_seconds = shortest_cutoff_seconds
        self.overhead_seconds = OVERHEAD_SECONDS
        """Seconds of a pull in addition to the fit; callers that run real fits measure it."""
        self.baseline: int | None = None
        """The configuration that is always a contender; see `set_baseline`."""
        self.has_last_resort = False
        """Whether the caller can offer a fallback configuration if nothing else finishes."""
        self._use_cutoffs = use_cutoffs
        self._n_told = self._next_lesson = 0
        self._learned: Learned | None = None  # if the first pulls must be evaluated again
        self._contenders: tuple[Contenders | None] | None = None
        """Cached contenders of the current ledger; None if the ledger has changed."""
        self._rule = self._make_rule(policy, positive_integer("pool_size", pool_size), seed)

    def ask(self, now: float, offer: Offer | None = None) -> Pull | None:
        """Return the next pull to run, or None if there is nothing to do now.

        ``now`` is the number of seconds spent so far. ``offer`` is the configuration that the
        caller would try next, with its forecast; use it if the returned pull is ``fresh``. There
        is nothing to do if the budget is spent, or every configuration is done or running.
        """
        pull = self.choose(now, offer)
        if pull is not None:
            pull = replace(pull, number=self.n_pulls)
            self.start(pull)
        return pull

    def choose(
        self, now: float, offer: Offer | None = None, pulls_left: int | None = None
    ) -> Pull | None:
        """Return the pull that `ask` would return, without registering it.

        ``pulls_left`` is the number of pulls still allowed, including this one (None: no limit).
        """
        situation = replace(self.situation(now, offer), pulls_left=pulls_left)
        if situation.seconds_left <= 0:
            return None
        pull = self._rule.choose(situation)
        if pull is not None and not self._use_cutoffs:
            pull = replace(pull, cutoff_seconds=situation.seconds_left)
        return pull

    def start(self, pull: Pull) -> None:
        """Register a pull as running; another process may have chosen it."""
        if pull.number in self.in_flight:
            raise ValueError(f"pull {pull.number} is in flight already. Start each pull once.")
        self.n_pulls = max(self.n_pulls, pull.number + 1)
        self.in_flight[pull.number] = pull
        self.ledger.start(pull)
        self._contenders = None

    def tell(self, pull: Pull, outcome: Outcome, looks: Sequence[Look] = ()) -> None:
        """Report the outcome of a pull that `ask` returned; its value is the score of the fit.

        A growing fit also has ``looks``, its scores at the levels it has passed. They count even
        if the pull was given up afterwards. Without looks, a finished pull has one at its level. A
        finished pull whose looks end below its level has stopped by itself.
        """
        self._land(pull)
        self._n_told += 1
        lesson = self._n_told > self._next_lesson
        if not lesson:
            self._learn()  # must be computed before the ledger contains this outcome
        oriented = outcome
        if outcome.kind is Kind.FINISHED and is_score(outcome.value):
            oriented = replace(outcome, value=self.sign * float(outcome.value))
            if self.efforts is not None and not looks:
                level = len(self.efforts) - 1 if pull.level is None else pull.level
                looks = (Look(level, float(outcome.value), outcome.seconds),)
        looks = [replace(look, score=self.sign * look.score) for look in looks]
        self.ledger.finish(pull, oriented, looks)
        if not self.resumable:
            self.ledger.lose(pull.configuration, pull.fold)
        self._contenders = None
        if lesson:
            self._learned = None
            self._next_lesson = self._n_told + int(RELEARN_SHARE * self._n_told)
        self._rule.learn(pull, oriented)

    def more_seconds(self, pull: Pull, now: float) -> float:
        """Return how much longer a pull at its cutoff may run; 0 means that it is given up.

        With several workers, the baseline may continue while fewer than three configurations have
        a score: giving it up would waste the time spent so far.
        """
        alone = self.n_workers == 1 or pull.configuration != self.baseline
        if alone or self.ledger.n_scored >= PATIENT_SCORES:
            return 0.0
        return max(min(EXTENSION_SHARE * self.budget_seconds, self.budget_seconds - now), 0.0)

    def withdraw(self, pull: Pull) -> None:
        """Undo a pull, as if it had never been asked for."""
        self._land(pull)
        self.ledger.withdraw(pull)
        self._contenders = None

    def release(self, pull: Pull) -> None:
        """Remove a pull that another process was running and that ended without an outcome."""
        self._land(pull)
        self.ledger.release(pull)
        self._contenders = None

    @property
    def last_level(self) -> int | None:
        """The level of a whole fit; None without levels."""
        return None if self.efforts is None else len(self.efforts) - 1

    def lose(self, configuration: int, fold: int) -> None:
        """Report that a paused fit is gone: growing it further means to start it again."""
        self.ledger.lose(configuration, fold)

    def surplus(self, most_paused: int) -> list[tuple[int, int]]:
        """Return the paused fits to drop, as (configuration, fold), to keep ``most_paused``.

        Drop them and report each with `lose`. Those of the best configurations are kept.
        """
        return paused_fits(self.ledger)[most_paused:]

    def set_baseline(self, configuration: int) -> None:
        """Set the baseline configuration, such as an estimator's own parameters.

        The baseline is tried until it has finished. It is validated on all folds if that and the
        refit take at most half of the budget, no matter how it compares to other configurations.
        """
        self.baseline = configuration
        self._contenders = None

    def set_budget(self, budget_seconds: float) -> None:
        """Replace the budget; from here on, ``now`` counts seconds of the new budget."""
        if budget_seconds != self.budget_seconds:
            self.budget_seconds = budget_seconds
            self._learned = None

    def exhausted(self, pull: Pull | None = None) -> None:
        """Report that no new configuration is left; withdraw the fresh pull that needed one."""
        self.reservoir_open = False
        if pull is not None:
            self.withdraw(pull)
        self._rule.close()

    def reopen(self) -> None:
        """Report that new configurations are available again."""
        self.reservoir_open = True

    def rebuild(
        self,
        history: Iterable[tuple[Pull, Outcome | None]],
        looks: Mapping[int, Sequence[Look]] | None = None,
    ) -> None:
        """Replay an earlier race with the same arguments; running pulls have the outcome None.

        ``looks`` are those of growing fits, by the number of the pull.
        """
        seen = {} if looks is None else looks
        for pull, outcome in history:
            self.start(pull)
            if outcome is not None:
                self.tell(pull, outcome, seen.get(pull.number, ()))

    def recommend(self, *, final: bool = False) -> Recommendation | None:
        """Return the configuration to use if the race ended now; None if nothing has finished.

        A mean over some of the folds is lowered by its standard error. With ``final``, fully
        validated configurations are preferred to all others, except to a baseline with missing
        folds that is clearly better.
        """
        return recommended(self.ledger, self.baseline, self.sign, final=final)

    def time_left(self, now: float) -> TimeLeft:
        """Return the time that proposals for growing fits may plan with."""
        situation = self.situation(now)
        return TimeLeft(
            seconds=situation.seconds_to_spare,
            total_seconds=situation.seconds_left,
            first_look_seconds=longest_first_look(situation),
            whole_fit_seconds=longest_whole_fit(situation),
            validation_fits=situation.rounds - 1 if situation.must_validate else 0,
            overhead_seconds=self.overhead_seconds,
        )

    def fresh_cutoff(self, now: float) -> float:
        """Return the cutoff that a fresh pull would get now."""
        situation = self.situation(now)
        return situation.fresh_cutoff if self._use_cutoffs else situation.seconds_left

    def longest_cutoff(self, now: float) -> float:
        """Return the cutoff of a pull that must finish: the remaining time or longest timeout."""
        left = self.budget_seconds - real_number("now", now)
        return left if self.timeouts is None else min(left, self.timeouts[-1])

    def situation(self, now: float, offer: Offer | None = None) -> Situation:
        """Return everything that a rule may use to choose a pull."""
        learned = self._learn()
        left, contenders = self.budget_seconds - real_number("now", now), self._read_contenders()
        found = Situation(
            ledger=self.ledger,
            first_pulls=learned.first_pulls,
            learned_cutoff=learned.cutoff_seconds,
            seconds_left=left,
            budget_seconds=self.budget_seconds,
            reservoir_open=self.reservoir_open,
            timeouts=self.timeouts,
            in_flight=tuple(self.in_flight.values()),
            offer=offer,
            contenders=contenders,
            baseline=self.baseline,
            baseline_level=self.baseline_level,
            n_workers=self.n_workers,
            refit_fits=self.refit_fits,
            overhead_seconds=self.overhead_seconds,
            shortest_cutoff_seconds=self.shortest_cutoff_seconds,
            has_last_resort=self.has_last_resort,
        )
        reservations: tuple[Reservation, ...] = ()
        if contenders is not None:
            fits = found.rounds + self.refit_fits
            longest = BASELINE_SHARE * self.budget_seconds / fits
            reservations = contenders.reservations(left, longest)
        return replace(found, learned_cutoff=fresh_wait(found), reservations=reservations)

    def _read_contenders(self) -> Contenders | None:
        if self._contenders is None:
            found = Contenders.of(
                self.ledger,
                self.timeouts,
                n_workers=self.n_workers,
                overhead_seconds=self.overhead_seconds,
                baseline=self.baseline,
            )
            self._contenders = (found,)
        return self._contenders[0]

    def _land(self, pull: Pull) -> None:
        if self.in_flight.get(pull.number) != pull:
            raise ValueError(
                f"pull {pull.number} is not in flight. Call tell() exactly once for each pull "
                "that ask() returned."
            )
        del self.in_flight[pull.number]

    def _learn(self) -> Learned:
        if self._learned is None:
            first_pulls = FirstPulls.of(self.ledger)
            shortest = self.shortest_cutoff_seconds
            wait = fresh_cutoff(first_pulls, self.budget_seconds, self.timeouts, shortest)
            self._learned = Learned(first_pulls, wait)
        return self._learned

    def _make_rule(self, policy: str | Policy, pool_size: int, seed: int) -> Rule:
        if not isinstance(policy, Policy) and known_name("policy", policy, POLICIES) == "race":
            return RacingRule(self.exploration) if self.efforts is None else GrowthRule()
        if not self._use_cutoffs:
            raise ValueError("use_cutoffs=False requires policy='race': bandits choose cutoffs.")
        bandit = policy if isinstance(policy, Policy) else WaitUCB()
        return PoolRule(bandit, pool_size, self.n_folds, self.budget_seconds, self.timeouts, seed)
