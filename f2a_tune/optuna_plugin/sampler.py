"""`WaitUCBSampler`: gives each trial a configuration and a cutoff before it runs.

The race decides whether a trial gets a new configuration or evaluates an earlier one again, and
how long to wait for it. New configurations come from the base sampler. The decision is written to
the trial as a `TrialPlan`; all state is read from the storage.
"""

from __future__ import annotations

import math
import threading
import uuid
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optuna.samplers import BaseSampler, TPESampler
from optuna.study import StudyDirection

from f2a_tune.bandit import Policy
from f2a_tune.checks import positive_integer
from f2a_tune.optuna_plugin.current_run import OptimizeRun, current_run
from f2a_tune.racing import Race
from f2a_tune.racing.race import POLICIES
from f2a_tune.study import optuna_private, trial_clock
from f2a_tune.study.attributes import PLAN, SECONDS
from f2a_tune.study.history import Configuration, StudyHistory
from f2a_tune.study.trial_clock import TrialStart
from f2a_tune.study.trial_plan import TrialPlan

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState

# Wall clock and monotonic clock agree about a duration if they differ by no more than this.
CLOCKS_AGREE_SECONDS, CLOCKS_AGREE_SHARE = 0.02, 0.01
# When nothing fresh seems to be left, the base sampler is asked for it this often all the same.
PROBE_EVERY = 10
POOL_SIZE = 20  # configurations in the pool of a bandit policy
# No learned cutoff is shorter: a busy machine or disk delays a quick trial by this much, and a new
# process costs more than giving it up saves.
SHORTEST_CUTOFF_SECONDS = 0.25


class WaitUCBSampler(BaseSampler):
    """Choose configurations and cutoffs by their expected improvement per second.

    One trial is one pull: a new configuration from the base sampler, or an earlier one again if a
    longer cutoff or another evaluation pays off. `f2a_tune.optimize` enforces the cutoff,
    `WaitUCBPruner` prunes by it, and `cutoff_of` returns it. Without any of them, the sampler only
    learns from durations. All its knowledge is read from the study's storage, so studies can be
    resumed and shared.

    Parameters
    ----------
    base_sampler : optuna.samplers.BaseSampler, optional
        Proposes new configurations. By default Optuna's `TPESampler`.
    timeouts : list of float, optional
        Increasing cutoffs in seconds to choose from. By default they are learned from durations.
    evaluations_per_configuration : int, default=1
        How often a promising configuration is evaluated. Increase it if the objective is noisy, or
        to race folds with `evaluation_of`.
    policy : {"race", "wait-ucb"} or Policy, default="race"
        How to choose the next pull. "wait-ucb" is the algorithm of the paper over a pool of 20
        configurations; a policy of `f2a_tune.bandit` plays the same game. Change it only to
        compare.
    exploration : float, default=0.0
        Scale of the confidence radius of "wait-ucb". 0 is greedy and was best in our measurements.
    seed : int, optional
        Seed of the default base sampler. Cutoffs depend on a real clock, so two studies with the
        same seed can still differ; workers that share a storage draw from different streams.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    >>> study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=20)
    >>> len(study.trials)
    20
    """

    def __init__(
        self,
        *,
        base_sampler: BaseSampler | None = None,
        timeouts: Iterable[float] | None = None,
        evaluations_per_configuration: int = 1,
        policy: str | Policy = "race",
        exploration: float = 0.0,
        seed: int | None = None,
    ) -> None:
        if base_sampler is not None and not isinstance(base_sampler, BaseSampler):
            raise TypeError(
                f"base_sampler must be an Optuna sampler or None, got {base_sampler!r}: "
                "give an instance, such as optuna.samplers.RandomSampler()."
            )
        self.base_sampler = base_sampler or TPESampler(seed=seed)
        self._n_evaluations = positive_integer(
            "evaluations_per_configuration", evaluations_per_configuration
        )
        self._timeouts = None if timeouts is None else _as_tuple(timeouts)
        self._policy, self._exploration = policy, exploration
        self._reseeded = False
        self._race(maximize=True)  # checks the arguments
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(vars(self))
        for name in ("_lock", "_histories", "_player", "_reseeded", "_n_chosen"):
            del kept[name]
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def reseed_rng(self) -> None:
        """Give the base sampler another stream of random numbers."""
        self.base_sampler.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Decide what this trial is to do, and write it to the trial."""
        plan = None
        if not optuna_private.is_multi_objective(study):
            plan = TrialPlan.of(trial)
            if plan is None:
                plan = self._decide(study, trial)
                content = plan.to_attribute()
                storage = optuna_private.storage_of(study)
                storage.set_trial_user_attr(optuna_private.trial_id_of(trial), PLAN, content)
                # The live trial shows this snapshot to the objective.
                trial.user_attrs = {**trial.user_attrs, PLAN: content}
            if trial_clock.find(study, trial) is None:
                trial_clock.start(study, trial, trial.user_attrs.get(SECONDS))
        if plan is None or plan.again_of is None:
            self.base_sampler.before_trial(study, trial)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """That of the base sampler; nothing for a configuration that comes again."""
        optuna_private.check_one_objective(self, study)
        if self._configuration_again(study, trial) is not None:
            return {}
        return self.base_sampler.infer_relative_search_space(self._seen_by_base(study), trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """What the base sampler proposes; nothing for a configuration that comes again."""
        optuna_private.check_one_objective(self, study)
        if self._configuration_again(study, trial) is not None:
            return {}
        return self.base_sampler.sample_relative(self._seen_by_base(study), trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """The stored value of a configuration that comes again, else the base sampler's."""
        optuna_private.check_one_objective(self, study)
        configuration = self._configuration_again(study, trial)
        if configuration is not None and param_name in configuration.params:
            value = configuration.params[param_name]
            # The objective may have changed its ranges, or gone into another branch.
            if optuna_private.contains(param_distribution, value):
                return value
        return self.base_sampler.sample_independent(
            self._seen_by_base(study), trial, param_name, param_distribution
        )

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Write down what the trial took, unless Optuna's own clock says the same."""
        plan, start = TrialPlan.of(trial), trial_clock.stop(study, trial)
        seconds = 0.0 if start is None else start.elapsed_seconds
        if start is not None and _is_news(trial, start, seconds):
            storage = optuna_private.storage_of(study)
            storage.set_trial_user_attr(optuna_private.trial_id_of(trial), SECONDS, seconds)
        # A base sampler hears of the end of those trials only whose beginning it has heard of.
        if plan is None or plan.again_of is None:
            self.base_sampler.after_trial(study, trial, state, values)

    def _decide(self, study: Study, trial: FrozenTrial) -> TrialPlan:
        run = current_run()
        with self._lock:
            history = self._history(study)
            history.follow(study, optuna_private.all_trials(study), current=trial.number)
            if history.has_strangers and not self._reseeded:
                # Another worker may draw from the same seed, and would get the same.
                self._reseeded = True
                self.base_sampler.reseed_rng()
            fixed = bool(optuna_private.fixed_params_of(trial) or trial.params)
            plan = replace(self._choose(history, run, fixed), number=trial.number, fixed=fixed)
            history.begin(trial.number, plan)
        return plan

    def _choose(self, history: StudyHistory, run: OptimizeRun | None, fixed: bool) -> TrialPlan:
        race, now = history.race, 0.0
        self._n_chosen += 1
        probe = not race.reservoir_open and self._n_chosen % PROBE_EVERY == 0
        if run is not None:
            now = run.budget.spent_seconds
        race.set_budget(math.inf if run is None else run.budget.total_seconds)
        pull = race.choose(now, pulls_left=None if run is None else run.trials_left())
        again = None if pull is None else history.configurations.get(pull.configuration)
        if pull is None or fixed or probe:
            # Nothing is worth it any more, but the trial is there; or it knows what to run; or
            # the base sampler is asked whether it has something fresh after all.
            cutoff, reason = race.fresh_cutoff(now), "nothing else to do"
            if fixed:  # somebody wants to know its value: only the budget ends it
                cutoff, reason = race.longest_cutoff(now), "enqueued"
            again, arm, evaluation = None, None, 0
        else:
            cutoff, reason, evaluation = pull.cutoff_seconds, pull.reason, pull.fold
            arm = history.free_arm(pull.configuration) if again is None and self._pooled else None
        return TrialPlan(
            cutoff_seconds=cutoff,
            reason=reason,
            again_of=None if again is None else again.number,
            evaluation=evaluation,
            evaluations=self._n_evaluations,
            arm=arm,
            player=self._player,
            run="" if run is None else run.name,
            hard=run is not None,
        )

    def _seen_by_base(self, study: Study) -> Study:
        with self._lock:
            return self._history(study).as_seen_by_base(study)

    def _configuration_again(self, study: Study, trial: FrozenTrial) -> Configuration | None:
        plan = TrialPlan.of(trial)
        if plan is None or plan.again_of is None:
            return None
        with self._lock:
            return self._history(study).configuration(plan.again_of)

    def _history(self, study: Study) -> StudyHistory:
        """The view of this study; made again if the study or its direction is another."""
        storage, study_id = optuna_private.storage_of(study), optuna_private.study_id_of(study)
        histories = self._histories.setdefault(storage, {})
        if study_id not in histories:
            race = self._race(maximize=study.direction is StudyDirection.MAXIMIZE)
            free_row = POOL_SIZE if self._pooled else 0
            histories[study_id] = StudyHistory(race, self._player, free_row)
        return histories[study_id]

    @property
    def _pooled(self) -> bool:
        return self._policy != POLICIES[0]

    def _race(self, *, maximize: bool) -> Race:
        return Race(
            self._n_evaluations,
            math.inf,
            maximize=maximize,
            policy=self._policy,
            timeouts=self._timeouts,
            exploration=self._exploration,
            pool_size=POOL_SIZE,
            shortest_cutoff_seconds=SHORTEST_CUTOFF_SECONDS,
        )

    def _forget(self) -> None:
        """Begin without any memory but the storage."""
        self._lock = threading.RLock()
        self._histories: weakref.WeakKeyDictionary[Any, dict[int, StudyHistory]] = (
            weakref.WeakKeyDictionary()
        )
        self._player = uuid.uuid4().hex[:12]
        self._reseeded = False
        self._n_chosen = 0


def _is_news(trial: FrozenTrial, start: TrialStart, seconds: float) -> bool:
    """Whether the seconds cannot be read from the trial's own times; every write costs."""
    said = trial.user_attrs.get(SECONDS)
    if said is not None:
        return bool(said == start.copied_seconds)  # by another trial, of which this is a copy
    by_wall_clock = trial_clock.seconds_by_wall_clock(trial)
    if by_wall_clock is None:
        return True
    return abs(by_wall_clock - seconds) > CLOCKS_AGREE_SECONDS + CLOCKS_AGREE_SHARE * seconds


def _as_tuple(timeouts: Any) -> Any:
    """A generator can be read once only; what is no sequence is refused by the race."""
    sequence = isinstance(timeouts, Iterable) and not isinstance(timeouts, (str, bytes))
    return tuple(timeouts) if sequence else timeouts
