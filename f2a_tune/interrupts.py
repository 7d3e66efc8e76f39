"""Protection against a lost Ctrl-C: an interrupt that Python swallowed is sent again.

Callbacks of the garbage collector and of C extensions are called from C code, through which an
exception cannot propagate: Python prints the ``KeyboardInterrupt`` and continues.
`kept_interrupts` detects this case and repeats the signal shortly afterwards, when the callback
has returned.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# Long enough for the callback to return before the signal is repeated.
REPEAT_AFTER_SECONDS = 0.05


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """Return a context manager that repeats a swallowed KeyboardInterrupt and does not print it.

    It has an effect only in the main thread, which is the one that receives signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # no signals arrive in this thread, and the hook is global to the process
        return
    previous = sys.unraisablehook

    def repeat(unraisable: UnraisableHookArgs) -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            previous(unraisable)
            return
        timer = threading.Timer(REPEAT_AFTER_SECONDS, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        sys.unraisablehook = previous
