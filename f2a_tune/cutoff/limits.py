"""The memory limit of one call: bytes in, ``MemoryError`` inside the call if it asks for more.

Linux only (RLIMIT_AS). It counts address space that the worker maps beyond what it had mapped when
the call began: allocations, thread stacks and files mapped into memory, touched or not. Each
process that the call starts has the limit for itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SUPPORTED = sys.platform == "linux"


@contextmanager
def memory_limit(memory_bytes: int | None) -> Iterator[None]:
    """Keep the calling process within ``memory_bytes`` more than it has now."""
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
        with suppress(ValueError, OSError):  # the call may have lowered the hard limit itself
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _mapped_bytes() -> int:
    import resource

    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
