"""The trial of an objective in a worker, whose methods ask the parent process.

Only the parent accesses the storage. Values that the objective reports or sets before its worker
is killed are already in the storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NoReturn

from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial

from f2a_tune import clock
from f2a_tune.cutoff.callback_channel import CallbackChannel, current_channel
from f2a_tune.study import optuna_private

# A trial is not charged for an answer that takes longer than this.
SLOW_ANSWER_SECONDS = 0.5

METHODS = (
    "suggest_float",
    "suggest_int",
    "suggest_categorical",
    "suggest_uniform",
    "suggest_loguniform",
    "suggest_discrete_uniform",
    "report",
    "should_prune",
    "set_user_attr",
    "set_constraint",
    "set_system_attr",
)
PROPERTIES = (
    "params",
    "relative_params",
    "distributions",
    "user_attrs",
    "system_attrs",
    "constraints",
    "datetime_start",
    "number",
)


STUDY_PROPERTIES = (
    "best_params",
    "best_trial",
    "best_value",
    "direction",
    "directions",
    "metric_names",
    "study_name",
    "trials",
    "user_attrs",
)


class RemoteTrial(Trial):
    """A trial whose parent process does the work; an `optuna.Trial` for code that checks types."""

    def __init__(self, line: CallbackChannel, number: int, trial_id: int) -> None:
        self._line = line
        self._number = number
        self._trial_id = trial_id
        self.study = RemoteStudy()  # type: ignore[assignment]
        self.storage = RemoteStorage(line, trial_id)  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "the trial of f2a_tune.optimize cannot be sent to another process. Call its methods "
            "in the objective and pass on what they return."
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the trial of f2a_tune.optimize has no attribute {name!r}.")

    def __repr__(self) -> str:
        return f"<trial {self._number} in a worker of f2a_tune.optimize>"

    def _ask(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._line.ask((name, args, kwargs))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """See `optuna.Trial.suggest_float`."""
        return float(self._ask("suggest_float", name, low, high, step=step, log=log))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """See `optuna.Trial.suggest_int`."""
        return int(self._ask("suggest_int", name, low, high, step=step, log=log))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """See `optuna.Trial.suggest_categorical`.

        Choices that no storage accepts, such as functions, are stored by name and index.
        """
        choices = list(choices)
        labels = [_label(choice, place) for place, choice in enumerate(choices)]
        return choices[self._ask("suggest_categorical", name, labels)]

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        """See `optuna.Trial.suggest_uniform`."""
        return float(self._ask("suggest_uniform", name, low, high))

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        """See `optuna.Trial.suggest_loguniform`."""
        return float(self._ask("suggest_loguniform", name, low, high))

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        """See `optuna.Trial.suggest_discrete_uniform`."""
        return float(self._ask("suggest_discrete_uniform", name, low, high, q))

    def report(self, value: float, step: int) -> None:
        """See `optuna.Trial.report`."""
        self._ask("report", value, step)

    def should_prune(self) -> bool:
        """See `optuna.Trial.should_prune`."""
        return bool(self._ask("should_prune"))

    def set_user_attr(self, key: str, value: Any) -> None:
        """See `optuna.Trial.set_user_attr`."""
        self._ask("set_user_attr", key, value)

    def set_constraint(self, key: str, value: float) -> None:
        """See `optuna.Trial.set_constraint`."""
        self._ask("set_constraint", key, value)

    def set_system_attr(self, key: str, value: Any) -> None:
        """See `optuna.Trial.set_system_attr`; trials of Optuna 4 must have this method."""
        self._ask("set_system_attr", key, value)

    @property
    def system_attrs(self) -> dict[str, Any]:
        """See `optuna.Trial.system_attrs`; trials of Optuna 4 must have this property."""
        return dict(self._ask("system_attrs"))

    @property
    def relative_params(self) -> dict[str, Any]:
        """Parameters that the sampler drew jointly, before the objective asked for them."""
        return dict(self._ask("relative_params"))

    @property
    def params(self) -> dict[str, Any]:
        """Parameters suggested so far."""
        return dict(self._ask("params"))

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """Distributions of the parameters suggested so far."""
        return dict(self._ask("distributions"))

    @property
    def user_attrs(self) -> dict[str, Any]:
        """User attributes."""
        return dict(self._ask("user_attrs"))

    @property
    def constraints(self) -> dict[str, float]:
        """Constraint values set so far."""
        return dict(self._ask("constraints"))

    @property
    def datetime_start(self) -> datetime | None:
        """Start of the trial on the wall clock."""
        found: datetime | None = self._ask("datetime_start")
        return found

    @property
    def number(self) -> int:
        """The trial's number in its study."""
        return self._number


class RemoteStudy:
    """The study of a trial in a worker: its current state can be read, and it can be stopped."""

    def __getattr__(self, name: str) -> Any:
        if name in STUDY_PROPERTIES:
            return current_channel().ask(("study", (name,), {}))
        raise AttributeError(
            f"the study of a trial in f2a_tune.optimize has no {name!r}, because the objective "
            f"runs in a worker process. It has only {', '.join(STUDY_PROPERTIES)}, get_trials() "
            "and stop(). Use callbacks= for everything else."
        )

    @property
    def direction(self) -> StudyDirection:
        """See `optuna.Study.direction`."""
        found: StudyDirection = current_channel().ask(("study", ("direction",), {}))
        return found

    def get_trials(self, deepcopy: bool = True, states: Any = None) -> list[FrozenTrial]:
        """See `optuna.Study.get_trials`."""
        del deepcopy  # sending has already copied them
        found: list[FrozenTrial] = current_channel().ask(("study", ("trials",), {}))
        return [trial for trial in found if states is None or trial.state in states]

    def stop(self) -> None:
        """See `optuna.Study.stop`: no further trial starts."""
        current_channel().ask(("stop", (), {}))


class RemoteStorage:
    """The storage of a trial in a worker, for Optuna's helpers that write to it directly."""

    def __init__(self, line: CallbackChannel, trial_id: int) -> None:
        self._line, self._trial_id = line, trial_id

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"a worker of f2a_tune.optimize cannot call {name!r} of the study's storage, because "
            "it may be killed at any moment. It can only set attributes of its own trial."
        )

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Set a system attribute of the trial that runs in this worker."""
        if trial_id != self._trial_id:
            raise ValueError(
                f"trial_id={trial_id} must be the trial of this worker, {self._trial_id}."
            )
        self._line.ask(("set_stored_attr", (key, value), {}))


def _label(choice: Any, place: int) -> Any:
    if isinstance(choice, (type(None), bool, int, float, str)):
        return choice
    if isinstance(choice, Enum):
        return str(choice)  # readable, such as Colour.RED
    return f"{getattr(choice, '__qualname__', type(choice).__name__)} #{place}"


def call_objective(objective: Callable[[Any], Any], number: int, trial_id: int) -> Any:
    """Call an objective in a worker with a `RemoteTrial`."""
    channel = current_channel()
    channel.prepare()
    return objective(RemoteTrial(channel, number, trial_id))


class TrialAnswers:
    """Answers in the parent what a `RemoteTrial` asks, using the real trial.

    Parameters
    ----------
    at_first
        Called with the first question: the objective has begun.
    """

    def __init__(self, trial: Trial, at_first: Callable[[], None] | None = None) -> None:
        self._trial, self._at_first = trial, at_first
        self._credit_seconds = 0.0

    def __call__(self, question: tuple[str, tuple[Any, ...], dict[str, Any]]) -> Any:
        """Answer one question."""
        if self._at_first is not None:
            self._at_first()
            self._at_first = None
        begin = clock.monotonic_seconds()
        try:
            return self._answer(*question)
        finally:
            seconds = clock.monotonic_seconds() - begin
            if seconds > SLOW_ANSWER_SECONDS:
                self._credit_seconds += seconds

    def more_seconds(self) -> float:
        """Seconds to add at the cutoff, because the trial waited for a storage or a sampler."""
        credit, self._credit_seconds = self._credit_seconds, 0.0
        return credit

    def _answer(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name == "study":
            return getattr(self._trial.study, *args)
        if name == "stop":
            optuna_private.request_stop(self._trial.study)
            return None
        if name == "set_stored_attr":
            optuna_private.set_system_attr(self._trial, *args)
            return None
        if name == "suggest_categorical":
            return self._place_of_choice(*args)
        if name in METHODS:
            return getattr(self._trial, name)(*args, **kwargs)
        if name in PROPERTIES:
            return getattr(self._trial, name)
        raise AttributeError(f"a trial has no {name!r}.")

    def _place_of_choice(self, name: str, choices: list[Any]) -> int:
        chosen = self._trial.suggest_categorical(name, choices)
        for same in (_is_same, _is_equal):
            for place, choice in enumerate(choices):
                if same(choice, chosen):
                    return place
        raise ValueError(f"{name}={chosen!r} must be one of the choices {choices}.")


def _is_same(choice: Any, chosen: Any) -> bool:
    return choice is chosen or (type(choice) is type(chosen) and bool(choice == chosen))


def _is_equal(choice: Any, chosen: Any) -> bool:
    return bool(choice == chosen)
