"""Journal files that a power cut has torn: the half line at the end is put aside.

Optuna skips a last line without an end, but the next one that is written is glued to it, and then
nothing after it can be read any more. What was torn had never been written as a whole, so nobody
has been told that it was; it is kept in a file beside the journal all the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from f2a_tune import _compat
from f2a_tune.logging import get_logger

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

_logger = get_logger("f2a_tune.storage")


def mend_journal(storage: BaseStorage) -> None:
    """If the storage is a journal file with a torn end, put that end aside; else do nothing."""
    path = _compat.journal_path(storage)
    if path is None or _n_torn_bytes(path) == 0:
        return
    with _compat.journal_lock(storage):
        torn = _n_torn_bytes(path)  # by now it may have been a line that was being written
        if torn == 0:
            return
        with open(path, "rb+") as journal, open(f"{path}.torn", "ab") as aside:
            journal.seek(-torn, os.SEEK_END)
            aside.write(journal.read() + b"\n")
            aside.flush()
            os.fsync(aside.fileno())
            journal.seek(-torn, os.SEEK_END)
            journal.truncate()
    _logger.warning(
        "the journal %s ended in the middle of a line, as after a power cut: its last %d bytes "
        "were put aside in %s.torn.",
        path,
        torn,
        path,
    )


def _n_torn_bytes(path: str) -> int:
    """How many bytes follow the last end of a line."""
    with open(path, "rb") as journal:
        size = journal.seek(0, os.SEEK_END)
        block, tail = 4096, b""
        while len(tail) < size and b"\n" not in tail:
            length = min(block, size)
            journal.seek(-length, os.SEEK_END)
            tail = journal.read(length)
            block *= 16
    return len(tail) - (tail.rfind(b"\n") + 1)
