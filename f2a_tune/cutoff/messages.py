"""What parent and worker say to each other over one socket, as small frozen values.

Parent to worker: `Prepare` once (no answer), then `Task`. Worker to parent: `Hello` once, then a
`Reply` for every task, and before it any number of `Question`s, each of which gets an `Answer`.
When a call began and ended is not said but stamped (see `stamp`).
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from f2a_tune.cutoff.context import Context
from f2a_tune.outcome import Kind, full_name


@dataclass(frozen=True)
class Prepare:
    """Where to stamp; and what to load and import while there is nothing to do."""

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
    """A worker is there."""

    pid: int


@dataclass(frozen=True)
class Reply:
    """How the call ended; with a body, its pickled value or exception follows as raw bytes."""

    seconds: float
    kind: Kind
    has_body: bool
    error_type: str = ""
    error_message: str = ""
    error_traceback: str = ""
    error_bases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """A running call asks its caller."""

    content: Any


@dataclass(frozen=True)
class Answer:
    """What the caller says, or what it raised."""

    value: Any = None
    error: Exception | None = None


def error_texts(error: BaseException) -> dict[str, Any]:
    """Type, message and traceback of an error, even if asking it for them raises."""
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be shown)"
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:
        text = "(its traceback cannot be shown)"
    return {
        "error_bases": tuple(full_name(kind) for kind in type(error).__mro__),
        "error_type": type(error).__name__,
        "error_message": message,
        "error_traceback": text,
    }
