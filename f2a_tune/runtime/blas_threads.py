"""Limits BLAS to one thread in the parent process while a search runs.

Measured with OpenBLAS on two cores: the model of 120 points takes twice as long with two threads,
and nine times the processor time, because idle threads spin. Changing the limit for every call
does not help, so it is set for a whole search. The limit is global to the process: the first
search sets it, and the last one restores it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_users = 0
_limit: Any = None


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While it is open, BLAS calls of this process use one thread."""
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _libraries().limit(limits=1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()
                _limit = None
