"""The memory limit of one call, which raises ``MemoryError`` inside the call (Linux only).

The limit (RLIMIT_AS) counts the address space that the worker process maps in addition to what it
had mapped at the start of the call: allocations, thread stacks and memory-mapped files, whether
they are used or not. Each process that the call starts has the same limit for itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SUPPORTED = sys.platform == "linux"


@contextmanager
def memory_limit(memory_bytes: int | None) -> Iterator[None]:
    """Return a context that limits this process to its current memory plus ``memory_bytes``."""
    if memory_bytes is None or not SUPPORTED:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = _mapped_bytes() + memory_bytes
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        with suppress(ValueError, OSError):  # the call itself may have lowered the hard limit
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _mapped_bytes() -> int:
    import resource

    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
