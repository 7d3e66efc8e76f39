"""The trial as an objective in a worker sees it: questions go to the parent, answers come back.

Only the parent touches the storage. What has been reported or set before the worker is killed is
in the storage already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NoReturn

from optuna.distributions import BaseDistribution
from optuna.trial import BaseTrial, Trial

from f2a_tune.cutoff.dialogue import Line, current_line

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
    "distributions",
    "user_attrs",
    "system_attrs",
    "constraints",
    "datetime_start",
    "number",
)


class RemoteTrial(BaseTrial):
    """Has the public interface of `optuna.Trial`, without the study and its storage."""

    def __init__(self, line: Line, number: int) -> None:
        self._line = line
        self._number = number

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "the trial of f2a_tune.optimize cannot be sent to another process: call its methods "
            "in the objective itself and pass on what they return."
        )

    def __getattr__(self, name: str) -> NoReturn:
        hint = ""
        if name in ("study", "storage"):
            hint = ": the objective runs in a worker process, which never touches the storage"
        raise AttributeError(f"the trial of f2a_tune.optimize has no {name!r}{hint}.")

    def _ask(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._line.ask((name, args, kwargs))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """As `optuna.Trial.suggest_float`."""
        return float(self._ask("suggest_float", name, low, high, step=step, log=log))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """As `optuna.Trial.suggest_int`."""
        return int(self._ask("suggest_int", name, low, high, step=step, log=log))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """As `optuna.Trial.suggest_categorical`.

        Choices that no storage takes, such as functions, are stored by name and place.
        """
        choices = list(choices)
        labels = [_label(choice, place) for place, choice in enumerate(choices)]
        return choices[self._ask("suggest_categorical", name, labels)]

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        """As `optuna.Trial.suggest_uniform`."""
        return float(self._ask("suggest_uniform", name, low, high))

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        """As `optuna.Trial.suggest_loguniform`."""
        return float(self._ask("suggest_loguniform", name, low, high))

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        """As `optuna.Trial.suggest_discrete_uniform`."""
        return float(self._ask("suggest_discrete_uniform", name, low, high, q))

    def report(self, value: float, step: int) -> None:
        """As `optuna.Trial.report`."""
        self._ask("report", value, step)

    def should_prune(self) -> bool:
        """As `optuna.Trial.should_prune`."""
        return bool(self._ask("should_prune"))

    def set_user_attr(self, key: str, value: Any) -> None:
        """As `optuna.Trial.set_user_attr`."""
        self._ask("set_user_attr", key, value)

    def set_constraint(self, key: str, value: float) -> None:
        """As `optuna.Trial.set_constraint`."""
        self._ask("set_constraint", key, value)

    def set_system_attr(self, key: str, value: Any) -> None:
        """As `optuna.Trial.set_system_attr` of Optuna 4, whose trials must have it."""
        self._ask("set_system_attr", key, value)

    @property
    def system_attrs(self) -> dict[str, Any]:
        """As `optuna.Trial.system_attrs` of Optuna 4, whose trials must have it."""
        return dict(self._ask("system_attrs"))

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
        """When the trial began, by the wall clock."""
        found: datetime | None = self._ask("datetime_start")
        return found

    @property
    def number(self) -> int:
        """The trial's number in its study."""
        return self._number


def _label(choice: Any, place: int) -> Any:
    if isinstance(choice, (type(None), bool, int, float, str)):
        return choice
    return f"{getattr(choice, '__qualname__', type(choice).__name__)} #{place}"


def call_objective(objective: Callable[[Any], Any], number: int) -> Any:
    """Run an objective in a worker."""
    return objective(RemoteTrial(current_line(), number))


class TrialAnswers:
    """The parent's end: does to the real trial what the remote one is asked for."""

    def __init__(self, trial: Trial, at_first: Callable[[], None] | None = None) -> None:
        self._trial = trial
        self._at_first = at_first
        """Called with the first question: the objective has begun."""

    def __call__(self, question: tuple[str, tuple[Any, ...], dict[str, Any]]) -> Any:
        """Answer one question."""
        if self._at_first is not None:
            self._at_first()
            self._at_first = None
        name, args, kwargs = question
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
        raise ValueError(f"{name}={chosen!r} is none of the choices {choices}.")


def _is_same(choice: Any, chosen: Any) -> bool:
    return choice is chosen or (type(choice) is type(chosen) and bool(choice == chosen))


def _is_equal(choice: Any, chosen: Any) -> bool:
    return bool(choice == chosen)
