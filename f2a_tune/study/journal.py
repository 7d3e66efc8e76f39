"""Repairs journal files that end with an incomplete line after a power failure.

Optuna skips an incomplete last line, but it appends the next line to it, and nothing after that
can be read. The incomplete line is moved to a file beside the journal. It can be removed, because
no process was told that its write had succeeded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from f2a_tune.logging import get_logger
from f2a_tune.study import optuna_private

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

_logger = get_logger("f2a_tune.storage")


def repair_journal(storage: BaseStorage) -> None:
    """Move the incomplete last line of a journal file, if there is one, to a ``.torn`` file."""
    path = optuna_private.journal_path(storage)
    if path is None or _n_torn_bytes(path) == 0:
        return
    with optuna_private.journal_lock(storage):
        torn = _n_torn_bytes(path)  # another process may have completed the line meanwhile
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
        "the journal %s ended in the middle of a line, probably after a power failure. Its last "
        "%d bytes were moved to %s.torn.",
        path,
        torn,
        path,
    )


def _n_torn_bytes(path: str) -> int:
    """Return the number of bytes after the last newline."""
    with open(path, "rb") as journal:
        size = journal.seek(0, os.SEEK_END)
        block, tail = 4096, b""
        while len(tail) < size and b"\n" not in tail:
            length = min(block, size)
            journal.seek(-length, os.SEEK_END)
            tail = journal.read(length)
            block *= 16
    return len(tail) - (tail.rfind(b"\n") + 1)
