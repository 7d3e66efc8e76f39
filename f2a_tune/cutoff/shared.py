"""Large data handed over once: an object goes in under a name, workers read it as memory maps.

Every pool has a private folder (0700); files are written by joblib, whose arrays load as read-only
maps, so that workers share one copy. The folder goes away with the pool; if everything was killed,
the next pool on this machine finds the owner gone and removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from f2a_tune.cutoff.processes import is_alive, machine_tag, start_stamp

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PREFIX = "f2a_tune-"


@dataclass(frozen=True)
class Shared:
    """Stands for a shared object in the arguments of a call; made by `CutoffPool.share`."""

    name: str


class CloudPickled:
    """Wraps what plain pickle cannot send, such as functions of a script; unwraps when loaded."""

    def __init__(self, argument: str, value: Any) -> None:
        self._payload = cloud_bytes(argument, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return cloudpickle.loads, (self._payload,)


def cloud_bytes(argument: str, value: Any) -> bytes:
    """The value as bytes for a worker, or an error that names the argument and the fix."""
    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise TypeError(
            f"{argument} cannot be sent to a worker process "
            f"({type(error).__name__}: {error}): make what it holds picklable, or open files, "
            "locks and connections inside the function."
        ) from error


class SharedFolder:
    """The parent's side: writes objects, knows where each name is now."""

    def __init__(self) -> None:
        base = Path(os.environ.get("JOBLIB_TEMP_FOLDER") or tempfile.gettempdir())
        remove_abandoned(base)
        owner = f"{machine_tag()}-{os.getpid()}-{start_stamp(os.getpid())}-"
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX + owner, dir=base))
        self.paths: dict[str, str] = {}
        self._writes = 0

    def write(self, name: str, value: Any) -> Shared:
        """Store ``value`` under ``name``, in place of what was there."""
        import joblib

        self._writes += 1
        path = self.path / f"{self._writes}.joblib"
        # Created before joblib opens it, so that it is private from the first byte on.
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
        try:
            joblib.dump(value, path)
        except BaseException as error:
            written = path.stat().st_size
            path.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                raise OSError(
                    error.errno,
                    f"{os.strerror(error.errno)}: the data to share with workers takes more than "
                    f"the {written} bytes that could be written to {self.path.parent}. Make room, "
                    "or set JOBLIB_TEMP_FOLDER to a folder that has it",
                ) from error
            raise
        # The file of an earlier value stays until the end: a running call may still map it.
        self.paths[name] = str(path)
        return Shared(name)

    def forget(self, name: str) -> None:
        """Delete the object of this name; no call may need it any more."""
        path = self.paths.pop(name, None)
        if path is not None:
            Path(path).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the folder; nobody may need it any more."""
        shutil.rmtree(self.path, ignore_errors=True)


class SharedReader:
    """A worker's side: loads each file once."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def load(self, path: str) -> Any:
        """The object in this file, its arrays mapped read-only."""
        import joblib

        if path not in self._loaded:
            self._loaded[path] = joblib.load(path, mmap_mode="r")
        return self._loaded[path]

    def keep_only(self, paths: Iterable[str]) -> None:
        """Let go of what the parent has forgotten."""
        for path in self._loaded.keys() - set(paths):
            del self._loaded[path]


def remove_abandoned(base: Path) -> None:
    """Delete folders of pools on this machine whose process is gone."""
    for path in base.glob(f"{PREFIX}{machine_tag()}-*"):
        with contextlib.suppress(OSError, ValueError):
            _, pid, stamp, _ = path.name.removeprefix(PREFIX).split("-", 3)
            mine = not hasattr(os, "getuid") or path.stat().st_uid == os.getuid()
            if mine and not (is_alive(int(pid)) and start_stamp(int(pid)) == stamp):
                shutil.rmtree(path, ignore_errors=True)
