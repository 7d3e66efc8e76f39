"""The messages between parent and worker process, sent over one socket.

The parent sends `Prepare` once, which has no reply, and then a `Task` for every call. The worker
sends `Hello` once and then a `Reply` for every task. Before the reply, it may send any number of
`Question` messages, and the parent sends an `Answer` to each. Start and end times of a call are
not sent but written to shared memory (see `call_times`).
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cloudpickle

from f2a_tune.cutoff.context import Context
from f2a_tune.outcome import Kind, full_name


@dataclass(frozen=True)
class Prepare:
    """The file for the call times, and the data to load and import before the first call."""

    stamp_path: str
    context: Context
    shared_paths: Mapping[str, str]
    last_payload: bytes | None


@dataclass(frozen=True)
class Task:
    """One call; ``payload`` is the cloudpickled (function, args, kwargs)."""

    payload: bytes
    context: Context | None
    shared_paths: Mapping[str, str]
    memory_bytes: int | None


@dataclass(frozen=True)
class Hello:
    """The worker process has started."""

    pid: int


@dataclass(frozen=True)
class Reply:
    """How the call ended; if ``has_body``, the pickled value or exception follows as bytes."""

    seconds: float
    kind: Kind
    has_body: bool
    error_type: str = ""
    error_message: str = ""
    error_traceback: str = ""
    error_bases: tuple[str, ...] = ()
    result_lost: bool = False


@dataclass(frozen=True)
class Question:
    """A question of a running call to its caller."""

    content: Any


@dataclass(frozen=True)
class Answer:
    """The caller's answer, or the exception that it raised."""

    value: Any = None
    error: Exception | None = None


PLAIN_TYPES = (type(None), bool, int, float, str)


def quick_bytes(message: Question | Answer) -> bytes:
    """Return the pickled message; plain values use pickle, which is ten times as fast."""
    content = message.content if isinstance(message, Question) else (message.value, message.error)
    if _is_plain(content):
        return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return bytes(cloudpickle.dumps(message))


def _is_plain(content: Any) -> bool:
    if isinstance(content, (tuple, list)):
        return all(_is_plain(one) for one in content)
    if isinstance(content, dict):
        return all(_is_plain(one) for pair in content.items() for one in pair)
    return type(content) in PLAIN_TYPES


class PackedError:
    """Wraps an exception so that unpickling rebuilds it without calling its ``__init__``."""

    def __init__(self, error: BaseException) -> None:
        self._parts = type(error), error.args, dict(vars(error))

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, self._parts


def _remade(
    kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]
) -> BaseException:
    error = kind.__new__(kind)
    error.args = args
    vars(error).update(state)
    return error


def error_texts(error: BaseException) -> dict[str, Any]:
    """Return type, message and traceback of an error, even if its own methods raise."""
    try:
        message = str(error)
    except Exception:
        message = "(the message of this exception cannot be shown)"
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:
        text = "(the traceback of this exception cannot be shown)"
    return {
        "error_bases": tuple(full_name(kind) for kind in type(error).__mro__),
        "error_type": type(error).__name__,
        "error_message": message,
        "error_traceback": text,
    }
