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
from f2a_tune.cutoff.worker import HUNG_UP, PR_SET_CHILD_SUBREAPER, become_worker, serve

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

    def __init__(self, control: socket.socket, parent_pid: int) -> None:
        self.control = control
        self.parent_pid = parent_pid
        self.workers: set[int] = set()
        self.dying: set[int] = set()
        self.asked: set[int] = set()
        self.strays_likely = False

    def run(self) -> None:
        """Serve until the parent hangs up or is gone."""
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        while os.getppid() == self.parent_pid:
            busy = self.dying or self.strays_likely
            ready = poller.poll(1000 * (REAP_SECONDS if busy else PARENT_CHECK_SECONDS))
            if ready and not self._answer():
                break
            if not ready and not busy:
                self._bury_the_hung_up()
            if self.dying:
                self._reap()
            # What a dead worker had started, and its group did not take along, is ours now.
            if self.strays_likely:
                self.strays_likely = self._end_strays()

    def _answer(self) -> bool:
        try:
            request, files, _, _ = socket.recv_fds(self.control, 1024, 1)
        except OSError:
            return False
        if not request:
            return False
        verb, _, argument = request.partition(b" ")
        if verb == FORK and files:
            self._fork(files[0])
        elif verb in (REAP, STATUS):
            pid = int(argument)
            self.dying.add(pid)
            if verb == STATUS:
                self.asked.add(pid)
        return True

    def _fork(self, file: int) -> None:
        zygote_pid = os.getpid()
        os.set_inheritable(file, False)
        try:
            pid = os.fork()
        except OSError:  # no more processes or memory: the parent finds the socket closed
            os.close(file)
            return
        if pid == 0:
            status = 1
            try:
                self.control.close()
                become_worker(zygote_pid)
                serve(Connection(file))
                status = HUNG_UP
            finally:
                os._exit(status)
        os.close(file)
        self.workers.add(pid)

    def _reap(self) -> None:
        for pid in list(self.dying):
            try:
                done, status = os.waitpid(pid, os.WNOHANG)
                code = str(os.waitstatus_to_exitcode(status)) if done else ""
            except ChildProcessError:
                done, code = pid, "unknown"
            if done:
                self._forget(pid, code)

    def _forget(self, pid: int, code: str) -> None:
        self.dying.discard(pid)
        self.workers.discard(pid)
        self.strays_likely = True
        if pid in self.asked:
            self.asked.discard(pid)
            with contextlib.suppress(OSError):
                self.control.send(f"{pid} {code}".encode())

    def _bury_the_hung_up(self) -> None:
        """Reap workers that the parent never came to know; others wait for it to ask."""
        for pid in list(self.workers):
            peek = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if peek is not None and peek.si_status == HUNG_UP:
                os.waitpid(pid, 0)
                self._forget(pid, "")

    def _end_strays(self) -> bool:
        """Kill children that are no workers; True if there were any: they may have some too."""
        strays = [pid for pid in children_of(os.getpid()) if pid not in self.workers]
        for pid in strays:
            kill_group(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return bool(strays)

    def end_all(self) -> None:
        """Kill every worker and whatever they started."""
        for pid in self.workers:
            kill_group(pid)
        self.workers.clear()
        deadline = clock.monotonic_seconds() + LAST_SECONDS
        while self._end_strays() and clock.monotonic_seconds() < deadline:
            clock.sleep_seconds(REAP_SECONDS)


def main(control_file: int, settings: str) -> None:
    """Entry point of the process; ``settings`` is JSON (see `launcher`)."""
    options = json.loads(settings)
    control = socket.socket(fileno=control_file)
    # An ignored SIGCHLD would be inherited, and leave nobody to be waited for.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
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
    with contextlib.suppress(OSError):  # nobody may be there any more
        control.send(READY)
    zygote = Zygote(control, options["parent_pid"])
    try:
        zygote.run()
        # Not after an error: the parent will start another zygote, and needs its data.
        shutil.rmtree(options["folder"], ignore_errors=True)
    finally:
        zygote.end_all()
