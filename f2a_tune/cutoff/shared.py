"""Large objects that are written to disk once and read by all workers as memory maps.

Every pool has a private folder (mode 0700). The files are written by joblib, and their arrays are
loaded as read-only memory maps, so that all workers share one copy. The folder is deleted with the
pool. If all its processes were killed, the next pool on this machine deletes it, because the
process in the folder's name no longer exists.
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
    """Placeholder of a shared object in the arguments of a call; see `CutoffPool.share`."""

    name: str


class CloudPickled:
    """Wraps an object that pickle cannot handle, such as a function of a script.

    Unpickling the wrapper returns the object itself.
    """

    def __init__(self, argument: str, value: Any) -> None:
        self._payload = cloud_bytes(argument, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return cloudpickle.loads, (self._payload,)


def cloud_bytes(argument: str, value: Any) -> bytes:
    """Return the cloudpickled value, or raise a TypeError that names the argument."""
    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise cannot_be_sent(argument, error) from error


def cannot_be_sent(argument: str, error: Exception) -> TypeError:
    """Return the error for an argument that cannot be pickled."""
    return TypeError(
        f"{argument} cannot be sent to a worker process "
        f"({type(error).__name__}: {error}). Make it picklable, or open files, locks and "
        "connections inside the function."
    )


class SharedFolder:
    """The parent's side: writes shared objects and knows the current file of each name."""

    def __init__(self) -> None:
        base = Path(os.environ.get("JOBLIB_TEMP_FOLDER") or tempfile.gettempdir())
        remove_abandoned(base)
        owner = f"{machine_tag()}-{os.getpid()}-{start_stamp(os.getpid())}-"
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX + owner, dir=base))
        self.paths: dict[str, str] = {}
        self._writes = 0

    def write(self, name: str, value: Any) -> Shared:
        """Store ``value`` under ``name`` and replace an earlier value of this name."""
        import joblib

        self._writes += 1
        path = self.path / f"{self._writes}.joblib"
        # Create the file before joblib opens it, so that it is private from the first byte.
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
        try:
            joblib.dump(value, path)
        except BaseException as error:
            written = path.stat().st_size
            path.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                raise OSError(
                    error.errno,
                    f"{os.strerror(error.errno)}: the data to share with workers needs more than "
                    f"the {written} bytes that could be written to {self.path.parent}. Free some "
                    "space, or set JOBLIB_TEMP_FOLDER to a folder with more space",
                ) from error
            raise
        # Keep the file of an earlier value until the pool is closed: a running call may map it.
        self.paths[name] = str(path)
        return Shared(name)

    def forget(self, name: str) -> None:
        """Delete the object of this name; calls must not use it afterwards."""
        path = self.paths.pop(name, None)
        if path is not None:
            Path(path).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the folder with all shared objects."""
        shutil.rmtree(self.path, ignore_errors=True)


class SharedReader:
    """The worker's side: loads each file once."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def load(self, path: str) -> Any:
        """Return the object in this file, with its arrays as read-only memory maps."""
        import joblib

        if path not in self._loaded:
            self._loaded[path] = joblib.load(path, mmap_mode="r")
        return self._loaded[path]

    def keep_only(self, paths: Iterable[str]) -> None:
        """Release all loaded objects except those in these files."""
        for path in self._loaded.keys() - set(paths):
            del self._loaded[path]


def remove_abandoned(base: Path) -> None:
    """Delete the folders of pools on this machine whose process no longer exists."""
    for path in base.glob(f"{PREFIX}{machine_tag()}-*"):
        with contextlib.suppress(OSError, ValueError):
            _, pid, stamp, _ = path.name.removeprefix(PREFIX).split("-", 3)
            mine = not hasattr(os, "getuid") or path.stat().st_uid == os.getuid()
            if mine and not (is_alive(int(pid)) and start_stamp(int(pid)) == stamp):
                shutil.rmtree(path, ignore_errors=True)
