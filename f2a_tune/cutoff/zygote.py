"""The zygote: a small process that has imported what fits need, and forks workers on request.

It is started as a plain subprocess, not through multiprocessing, so the user's ``__main__`` is
never run again. Requests come as single datagrams over a socket, one with the worker's own socket
attached. It outlives no parent: when the parent is gone, by whatever signal, it kills every worker
and all that they started, deletes the shared folder and ends. It runs no thread, for a fork would
take along the locks of threads that it leaves behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
from multiprocessing.connection import Connection

from f2a_tune import clock
from f2a_tune.cutoff.processes import children_of, kill_group
from f2a_tune.cutoff.worker import become_worker, serve

PR_SET_CHILD_SUBREAPER = 36
# How often to look whether the parent is gone: a forked twin of it may hold its socket open.
PARENT_CHECK_SECONDS = 0.2
# How often to look for the end of a process that was just killed.
REAP_SECONDS = 0.002
# How long to go on killing when the parent is gone.
LAST_SECONDS = 2.0
READY = b"ready"
FORK, REAP, STATUS = b"fork", b"reap", b"status"


class Zygote:
    """Forks, reaps and, in the end, kills."""

    def __init__(self, control: socket.socket, parent_pid: int, folder: str) -> None:
        self.control = control
        self.parent_pid = parent_pid
        self.folder = folder
        self.workers: set[int] = set()
        self.dying: set[int] = set()
        self.asked: set[int] = set()

    def run(self) -> None:
        """Serve until the parent hangs up or is gone."""
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        while os.getppid() == self.parent_pid:
            wait = REAP_SECONDS if self.dying else PARENT_CHECK_SECONDS
            if poller.poll(1000 * wait) and not self._answer():
                break
            if self.dying:
                self._reap()

    def _answer(self) -> bool:
        try:
            request, files, _, _ = socket.recv_fds(self.control, 1024, 1)
        except OSError:
            return False
        if not request:
            return False
        verb, _, argument = request.partition(b" ")
        if verb == FORK:
            self._fork(files[0])
        elif verb in (REAP, STATUS):
            pid = int(argument)
            self.dying.add(pid)
            if verb == STATUS:
                self.asked.add(pid)
        return True

    def _fork(self, file: int) -> None:
        zygote_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                self.control.close()
                become_worker(zygote_pid)
                serve(Connection(file))
                status = 0
            finally:
                os._exit(status)
        os.close(file)
        self.workers.add(pid)

    def _reap(self) -> None:
        for pid in list(self.dying):
            try:
                done, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                done, status = pid, 0
            if done == 0:
                continue
            self.dying.discard(pid)
            self.workers.discard(pid)
            if pid in self.asked:
                self.asked.discard(pid)
                with contextlib.suppress(OSError):
                    self.control.send(str(os.waitstatus_to_exitcode(status)).encode())
            # What the worker had started, and its group did not take along, is ours now.
            self._end_strays()

    def _end_strays(self) -> None:
        for pid in children_of(os.getpid()):
            if pid not in self.workers:
                kill_group(pid)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def end_all(self) -> None:
        """Kill every worker and whatever they started, and delete the shared folder."""
        for pid in self.workers:
            kill_group(pid)
        self.workers.clear()
        deadline = clock.monotonic_seconds() + LAST_SECONDS
        while children_of(os.getpid()) and clock.monotonic_seconds() < deadline:
            self._end_strays()
            clock.sleep_seconds(REAP_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)


def main(control_file: int, settings: str) -> None:
    """Entry point of the process; ``settings`` is JSON (see `launcher`)."""
    options = json.loads(settings)
    control = socket.socket(fileno=control_file)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # A fork takes milliseconds: it should not push aside the process that asked for it.
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        for module in options["preload"]:
            importlib.import_module(module)
    except BaseException as error:
        control.send(f"{type(error).__name__}: {error}".encode()[:1000])
        return
    # Freezing keeps the collector from touching, and so copying, pages that workers share.
    gc.collect()
    gc.freeze()
    control.send(READY)
    zygote = Zygote(control, options["parent_pid"], options["folder"])
    try:
        zygote.run()
    finally:
        zygote.end_all()
