"""The zygote, a small process that has imported the preloaded packages and forks workers.

It is started as a plain subprocess and not with multiprocessing, so that the user's ``__main__``
is never run again. A request is a single datagram on a socket; a fork request has the worker's own
socket attached. When the parent dies, by whatever signal, the zygote kills all workers and the
processes they started, deletes the shared folder and exits. It must not start threads, because a
fork would copy the locks of threads that do not exist in the child.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import select
import shutil
import signal
import socket
import sys
from multiprocessing.connection import Connection
from typing import Any

from f2a_tune import clock
from f2a_tune.cutoff.processes import children_of, kill_group
from f2a_tune.cutoff.worker_process import (
    DISCONNECTED,
    PR_SET_CHILD_SUBREAPER,
    become_worker,
    read_nothing,
    serve,
)

# Time between checks whether the parent is dead. A closed socket is not a sufficient sign, because
# a forked copy of the parent may hold it open.
PARENT_CHECK_SECONDS = 0.2
# Time between checks whether a killed process has ended.
REAP_SECONDS = 0.002
# How long to continue killing processes after the parent is dead.
LAST_SECONDS = 2.0
READY = b"ready"
FORK, REAP, STATUS = b"fork", b"reap", b"status"


class Zygote:
    """Forks workers, reaps dead ones and finally kills all of them."""

    def __init__(self, control: socket.socket, parent_pid: int) -> None:
        self.control = control
        self.parent_pid = parent_pid
        self.workers: set[int] = set()
        self.dying: set[int] = set()
        self.asked: set[int] = set()
        self.strays_likely = False

    def run(self) -> None:
        """Serve requests until the parent closes the socket or dies."""
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        while os.getppid() == self.parent_pid:
            busy = self.dying or self.strays_likely
            ready = poller.poll(1000 * (REAP_SECONDS if busy else PARENT_CHECK_SECONDS))
            if ready and not self._answer():
                break
            if not ready and not busy:
                self._reap_disconnected()
            if self.dying:
                self._reap()
            # Processes that a dead worker started outside its group are now children of this one.
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
        except OSError:  # no processes or memory left; the parent will find the socket closed
            os.close(file)
            return
        if pid == 0:
            status = 1
            try:
                self.control.close()
                become_worker(zygote_pid)
                serve(Connection(file))
                status = DISCONNECTED
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

    def _reap_disconnected(self) -> None:
        """Reap workers that exited because the parent closed their connection.

        All other dead workers are kept until the parent asks for them.
        """
        for pid in list(self.workers):
            peek = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if peek is not None and peek.si_status == DISCONNECTED:
                os.waitpid(pid, 0)
                self._forget(pid, "")

    def _end_strays(self) -> bool:
        """Kill all children that are not workers; return whether there were any.

        If so, call this again, because their own children become children of the zygote.
        """
        strays = [pid for pid in children_of(os.getpid()) if pid not in self.workers]
        for pid in strays:
            kill_group(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return bool(strays)

    def end_all(self) -> None:
        """Kill all workers and all processes that they started."""
        for pid in self.workers:
            kill_group(pid)
        self.workers.clear()
        deadline = clock.monotonic_seconds() + LAST_SECONDS
        while self._end_strays() and clock.monotonic_seconds() < deadline:
            clock.sleep_seconds(REAP_SECONDS)


def main(control_file: int, options: dict[str, Any]) -> None:
    """Run the zygote; the launcher starts the process here and defines the options."""
    read_nothing()
    control = socket.socket(fileno=control_file)
    # If the parent ignores SIGCHLD, the zygote inherits this and could not wait for its children.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # A fork takes milliseconds and should not preempt the process that requested it.
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        for module in options["preload"]:
            importlib.import_module(module)
    except BaseException as error:
        control.send(f"{type(error).__name__}: {error}".encode()[:1000])
        return
    # Freezing prevents the garbage collector from writing to, and so copying, shared pages.
    gc.collect()
    gc.freeze()
    with contextlib.suppress(OSError):  # the parent may be dead already
        control.send(READY)
    zygote = Zygote(control, options["parent_pid"])
    try:
        zygote.run()
        # Not after an error: the parent will start another zygote and still needs the data.
        shutil.rmtree(options["folder"], ignore_errors=True)
    finally:
        zygote.end_all()
