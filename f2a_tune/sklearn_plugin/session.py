"""One process's part in a search: settings, data and a study go in, a record of pulls comes out.

It takes in what the study has, plays until the budget ends, and closes what it has opened. Others
may play the same search in other processes; the study is all they share.
"""

from __future__ import annotations

import copy
import math
import uuid
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.samplers import BaseSampler
from sklearn.exceptions import FitFailedWarning

from f2a_tune.bandit import Policy
from f2a_tune.clock import Budget
from f2a_tune.cutoff.launcher import WorkerStartError
from f2a_tune.interrupts import kept_interrupts
from f2a_tune.outcome import FAILED, Kind
from f2a_tune.racing import (
    ModelProposals,
    Proposals,
    Race,
    RandomProposals,
    Recommendation,
    StartProposals,
)
from f2a_tune.racing.space import Floats
from f2a_tune.sklearn_plugin.account import Account, BudgetUse
from f2a_tune.sklearn_plugin.candidates import CandidateSpace
from f2a_tune.sklearn_plugin.company import Company
from f2a_tune.sklearn_plugin.fold import FoldData
from f2a_tune.sklearn_plugin.others import Others
from f2a_tune.sklearn_plugin.patience import STORAGE_TROUBLE, StorageLostError
from f2a_tune.sklearn_plugin.players import Event, Players, Work
from f2a_tune.sklearn_plugin.pools import lent_pool
from f2a_tune.sklearn_plugin.record import SearchRecord
from f2a_tune.sklearn_plugin.sampled import SampledProposals

if TYPE_CHECKING:
    from optuna import Study

# A refit is on more rows than a fold's fit, and some fits grow with their square; a third more for
# what fits of the same configuration differ by.
REFIT_POWER = 2.0
REFIT_MARGIN = 1.3
REFIT_SLACK_SECONDS = 0.05
CLOSING_PATIENCE_SECONDS = 5.0


class StorageLostWarning(UserWarning):
    """The study's storage was gone before the search was over."""


class SearchInterruptedWarning(UserWarning):
    """The search was ended by the user; what it found until then is there."""


@dataclass(frozen=True)
class Settings:
    """What a search was asked for, checked."""

    n_folds: int
    time_budget: float
    n_players: int
    policy: str | Policy
    timeouts: Any
    proposals: str | BaseSampler | None
    seed: int
    metric: str | None
    """Which score decides, of several."""
    refit: bool
    raise_errors: bool
    most_configurations: float
    memory: int | None
    callbacks: tuple[Callable[[Event], bool], ...]
    start: tuple[Floats, ...] = ()
    """Rows to draw first."""

    def race(self) -> Race:
        """A fresh one."""
        return Race(
            self.n_folds,
            self.time_budget,
            policy=self.policy,
            timeouts=self.timeouts,
            n_workers=max(self.n_players, 1),
            seed=self.seed,
        )

    def drawing(self, space: CandidateSpace, seed: int) -> Proposals:
        """Where configurations come from."""
        later = self._drawing(space, seed)
        return StartProposals(self.start, later) if self.start else later

    def _drawing(self, space: CandidateSpace, seed: int) -> Proposals:
        if isinstance(self.proposals, BaseSampler):
            sampler = copy.deepcopy(self.proposals)
            if seed != self.seed:
                sampler.reseed_rng()
            return SampledProposals(space, sampler, seed)
        if self.proposals == "random":
            return RandomProposals(space.space, seed)
        return ModelProposals(space.space, seed)


class Session:
    """A search as this process sees it.

    Parameters
    ----------
    session
        The name of the session to join, if it is known.
    shared
        Whether other processes may have the same study open.
    elsewhere
        Whether all players are in other processes.
    """

    def __init__(
        self,
        settings: Settings,
        study: Study,
        space: CandidateSpace,
        data: FoldData,
        budget: Budget,
        *,
        shared: bool,
        elsewhere: bool = False,
        session: str | None = None,
    ) -> None:
        self.settings, self.space, self.data, self.budget = settings, space, data, budget
        n_here = 0 if elsewhere else settings.n_players
        self.company = Company(study, budget, n_here, shared=shared, session=session)
        if self.company.has_joined and settings.policy != "race":
            raise ValueError(
                f"policy={settings.policy!r} is for one process: policy='race' can be shared."
            )
        self.record = SearchRecord(
            study, space, settings.n_folds, settings.metric, self.company.name
        )
        self.race = settings.race()
        self.others = Others(self.race, self.record, self.company)
        self.refit = Refit(self)
        self.account = Account()
        self.watchers: list[Callable[[Event], bool]] = [*settings.callbacks]
        self.played_seconds = 0.0
        self.interrupted = False
        self.record.patiently.seconds_left = self._seconds_to_wait

    def play(self) -> None:
        """Take in what there is, play here, and close the record."""
        with kept_interrupts(), self.company:
            self.others.restore()
            with lent_pool(self.settings.n_players) as pool:
                shared = pool.share(f"data-{uuid.uuid4().hex}", self.data.shareable())
                players = self._players(Work(pool, shared, self.settings.memory))
                begin = self.budget.spent_seconds
                try:
                    players.play(self.settings.n_players)
                except KeyboardInterrupt:
                    players.crew.end()
                    pool.close()
                    players.crew.wait_until_idle(CLOSING_PATIENCE_SECONDS)
                    self._interrupted()
                except StorageLostError as error:  # what has finished is in memory
                    _warn_of_storage(error)
                except WorkerStartError as error:
                    self._ended_by("players", error)
                finally:
                    self.played_seconds = self.budget.spent_seconds - begin
                    self._leave()
                    if not pool.closed:
                        pool.forget(shared)

    def watch(self, play: Callable[[], None]) -> None:
        """Let ``play`` start players elsewhere, and read what they have done."""
        with kept_interrupts(), self.company:
            self.others.restore()
            begin = self.budget.spent_seconds
            trouble: Exception | None = None
            try:
                play()
            except KeyboardInterrupt:
                self._call_off()
                self._interrupted()
            except Exception as error:  # a worker elsewhere was killed: the others' work is there
                self._call_off()
                trouble = error
            self.played_seconds = self.budget.spent_seconds - begin
            self._leave()
            if trouble is not None:
                self._ended_by("players of joblib's backend", trouble)

    def _ended_by(self, who: str, trouble: Exception) -> None:
        """What has finished before is not lost, unless the user wants to hear of every error."""
        if self.settings.raise_errors or not self.record.results:
            raise trouble
        _warn(
            f"{who} ended with {type(trouble).__name__}: {trouble}. The search is fitted with "
            "what had finished until then.",
            RuntimeWarning,
        )

    def _call_off(self) -> None:
        """Not all backends end their workers when nobody waits for them any more."""
        with suppress(StorageLostError, *STORAGE_TROUBLE):
            self.others.call_off()
            self.company.wait_for_others(CLOSING_PATIENCE_SECONDS)

    def _interrupted(self) -> None:
        self.interrupted = True
        if self.record.results:
            _warn(
                "the search was interrupted: it is fitted with the best found until then.",
                SearchInterruptedWarning,
            )

    def _seconds_to_wait(self) -> float:
        """For a storage that is gone: when it comes back, all that is open is still to close."""
        return self.budget.remaining_seconds - self.record.closing_seconds(1)

    def _leave(self) -> None:
        """Close the record; if the storage cannot be reached, the result is in memory."""
        self.record.patiently.seconds_left = lambda: self.budget.remaining_seconds
        try:
            self.others.leave(self.account)
        except (StorageLostError, *STORAGE_TROUBLE) as error:
            _warn_of_storage(error)

    def use(self, refit_seconds: float) -> BudgetUse:
        """Where the seconds went, of all who played."""
        played = self.played_seconds * self.company.n_players
        played += self.company.seconds_of_others
        other = self.company.own_seconds - self.played_seconds - refit_seconds
        return self.account.close(played, other, refit_seconds)

    def recommendation(self) -> Recommendation | None:
        """The best so far."""
        return self.race.recommend(final=True)

    def best_partial(self, default: int) -> int:
        """With nothing validated on all folds: the best with its doubt taken off."""
        found = self.recommendation()
        return default if found is None else found.configuration

    def _players(self, work: Work) -> Players:
        seed = self.settings.seed
        if self.company.has_joined:
            seed = int(self.company.name, 16) % 2**31  # not what the others draw
        return Players(
            self.race,
            self.settings.drawing(self.space, seed),
            self.record,
            self.others,
            work,
            self.budget,
            self.refit,
            self.settings.most_configurations,
            account=self.account,
            watchers=self.watchers,
            raise_errors=self.settings.raise_errors,
        )

    def why_nothing(self) -> str:
        """An error text for a search without a single score."""
        pulls = self.record.pulls
        failed = [pull for pull in pulls if pull.kind in FAILED]
        waits = [pull.seconds for pull in pulls if pull.kind is Kind.GAVE_UP]
        if failed and not waits:
            return (
                f"\nAll the {len(failed)} fits failed.\nIt is very likely that your model is "
                "misconfigured.\nYou can try to debug the error by setting error_score='raise'."
                f"\n\nBelow are more details about the failures:\n{failed[0].error}"
            )
        if not pulls:
            return (
                f"time_budget={self.settings.time_budget:g} was over before the first fit could "
                "end: give more seconds."
            )
        n_given_up = max(self.account.counts[Kind.GAVE_UP], len(waits))
        return (
            f"no fit finished within time_budget={self.settings.time_budget:g}: {n_given_up} were "
            f"given up, the longest waited for {max(waits):.3g} s, {len(failed)} failed. Give "
            "more seconds, longer timeouts, or a space with faster configurations."
        )

    def warn_of_failures(self, error_score: float) -> None:
        """One warning for all fits that failed, as scikit-learn gives it."""
        pulls = self.record.pulls
        failed = [pull for pull in pulls if pull.kind in FAILED]
        if failed:
            warnings.warn(
                f"\n{len(failed)} fits failed out of a total of {len(pulls)}.\n"
                f"The score on these train-test partitions for these parameters will be set to "
                f"{error_score}.\nIf these failures are not expected, you can try to debug them "
                "by setting error_score='raise'.\n\nBelow are more details about the failures:\n"
                f"{failed[0].error}",
                FitFailedWarning,
                stacklevel=4,
            )


def _warn_of_storage(error: Exception) -> None:
    _warn(
        f"the study's storage could not be reached ({error}): the search is fitted with what has "
        "finished, but not all of that is in the study.",
        StorageLostWarning,
    )


def _warn(message: str, kind: type[Warning]) -> None:
    """At the end of a search that did not go as planned."""
    warnings.warn(message, kind, stacklevel=6)


class Refit:
    """Predicts the refit of the winner from its own fits on folds."""

    def __init__(self, session: Session) -> None:
        self._session = session
        train, test = session.data.splits[0]
        n_train = max(len(train), 1)
        growth = (n_train + len(test)) / n_train
        self.seconds_per_second = 0.0
        if session.settings.refit:
            self.seconds_per_second = REFIT_MARGIN * growth**REFIT_POWER
        self._best: Recommendation | None = None

    def expected_seconds(self, changed: int | None = None) -> float:
        """For the best so far, when one more fold of configuration ``changed`` has finished."""
        session = self._session
        if not session.settings.refit:
            return 0.0
        if self._may_lead(changed):
            self._best = session.recommendation()
        if self._best is None:
            return 0.0
        one = session.record.configurations[self._best.configuration]
        results = [r for fold in range(session.settings.n_folds) if (r := one.finished(fold))]
        mean = float(np.mean([result.fit_seconds for result in results])) if results else 0.0
        if not math.isfinite(mean):
            mean = 0.0
        return self.seconds_per_second * mean + REFIT_SLACK_SECONDS

    def _may_lead(self, changed: int | None) -> bool:
        """A fully validated leader gives way only to another one."""
        if changed is None or self._best is None or not self._best.fully_validated:
            return True
        one = self._session.record.configurations[changed]
        return one.count(Kind.FINISHED) == self._session.record.n_folds
