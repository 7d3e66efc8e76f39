"""One thread for linear algebra on small matrices: more of them cost time that fits could use.

Measured with OpenBLAS on two cores: a model of 120 points takes twice as long with two threads,
and nine times the processor's time, because they spin while they wait. Setting the number back and
forth for every call does not help, so it is set for a whole search. It is a setting of the whole
process: whoever comes first sets it to one, whoever leaves last sets it back.
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
