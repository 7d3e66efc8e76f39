"""Calls that are paused, continued and dropped."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from f2a_tune.cutoff.call import PAUSE, checked_call
from f2a_tune.cutoff.callback_channel import current_channel
from f2a_tune.cutoff.processes import is_stopped
from f2a_tune.outcome import Kind
from tests.cutoff.observing import assert_all_end, descendants, eventually, is_running


def counting(steps, seconds=0.0):
    """Ask after every step; returns what was computed and the seconds that it ran."""
    channel, total = current_channel(), 0
    for step in range(steps):
        total += step
        if seconds:
            end = time.process_time() + seconds
            while time.process_time() < end:
                pass
        channel.ask(step)
    return total, channel.running_seconds()


def computing(seconds):
    """Use the processor for this long, without asking anything."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return "done"


def holding(n_bytes):
    block = np.ones(n_bytes // 8)
    current_channel().ask("ready")
    return float(block.sum())


def call(function, *args, cutoff=60.0, **limits):
    return replace(checked_call(function, args, {}, cutoff, None), pausable=True, **limits)


def pause_always(content):
    return PAUSE


def continued(outcome, cutoff=60.0, **limits):
    assert outcome.kind is Kind.PAUSED
    return call(pow, 2, 3, cutoff=cutoff, continues=outcome.value, **limits)


def pid_of(paused):
    return paused._worker._pid


def test_a_call_that_asks_is_paused_and_continued_with_the_same_result(pool):
    outcome = pool.perform(call(counting, 4, answer=pause_always))
    for _ in range(3):
        stopped = pid_of(outcome.value)
        eventually(lambda: is_stopped(stopped), "it was not stopped")  # noqa: B023
        outcome = pool.perform(continued(outcome, answer=pause_always))
    outcome = pool.perform(continued(outcome))
    assert outcome.kind is Kind.FINISHED
    assert outcome.value[0] == 6


def test_paused_time_is_not_counted(pool):
    first = pool.perform(call(counting, 2, 0.05, answer=pause_always))
    time.sleep(1.0)
    second = pool.perform(continued(first, answer=lambda content: True))
    assert second.kind is Kind.FINISHED
    assert second.value[1] < 1.0
    assert first.seconds + second.seconds < 1.0
    assert second.seconds >= 0.05


def test_a_call_that_does_not_ask_is_paused_at_its_cutoff(pool):
    outcome = pool.perform(call(computing, 0.6, cutoff=0.2))
    assert outcome.kind is Kind.PAUSED
    assert outcome.seconds >= 0.19
    stopped = pid_of(outcome.value)
    eventually(lambda: is_stopped(stopped), "it was not stopped")
    outcome = pool.perform(continued(outcome))
    assert outcome.value == "done"


def test_a_continued_call_can_be_paused_again_and_given_up_at_the_end_of_time(pool):
    outcome = pool.perform(call(time.sleep, 3600, cutoff=0.05))
    outcome = pool.perform(continued(outcome, cutoff=0.05))
    assert outcome.kind is Kind.PAUSED
    latest = time.monotonic() + 0.1
    outcome = pool.perform(continued(outcome, latest=latest))
    assert outcome.kind is Kind.GAVE_UP
    assert outcome.seconds < 60


def test_a_dropped_call_leaves_no_process(pool):
    outcome = pool.perform(call(computing, 60, cutoff=0.1))
    pid = pid_of(outcome.value)
    outcome.value.drop()
    assert_all_end([pid])
    assert not outcome.value.is_alive
    with pytest.raises(RuntimeError, match="dropped or continued before"):
        pool.perform(continued(outcome))


def test_children_of_a_paused_call_are_stopped_and_killed_with_it(pool):
    def with_child():
        child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        current_channel().ask(child.pid)

    seen = []

    def answer(content):
        seen.append(content)
        return PAUSE

    outcome = pool.perform(call(with_child, answer=answer))
    eventually(lambda: is_stopped(seen[0]), "the child was not stopped")
    outcome.value.drop()
    assert_all_end(seen)


def test_a_paused_process_that_is_killed_from_outside_is_noticed(pool):
    outcome = pool.perform(call(counting, 2, answer=pause_always))
    os.kill(pid_of(outcome.value), signal.SIGKILL)
    eventually(lambda: not outcome.value.is_alive, "it counts as alive")
    ended = pool.perform(continued(outcome))
    assert ended.kind is Kind.OUT_OF_MEMORY, "what a SIGKILL from outside is taken for"


def test_the_memory_of_a_paused_call_is_known(pool):
    small = pool.perform(call(holding, 8, answer=pause_always))
    large = pool.perform(call(holding, 100_000_000, answer=pause_always))
    assert large.value.memory_bytes - small.value.memory_bytes == pytest.approx(1e8, rel=0.3)
    for outcome in (small, large):
        outcome.value.drop()
        assert outcome.value.memory_bytes == 0


def test_a_call_that_ends_while_it_is_being_stopped_finishes(pool):
    # Each cutoff falls near the end of the call, so that some calls end while they are stopped.
    kinds = set()
    for step in range(40):
        outcome = pool.perform(call(computing, 0.02, cutoff=0.015 + 0.0005 * step))
        while outcome.kind is Kind.PAUSED:
            outcome = pool.perform(continued(outcome, cutoff=0.001))
        kinds.add((outcome.kind, outcome.value))
    assert kinds == {(Kind.FINISHED, "done")}


def test_calls_are_paused_and_continued_from_several_threads(pool):
    totals = []

    def play():
        outcome = pool.perform(call(counting, 5, answer=pause_always))
        while outcome.kind is Kind.PAUSED:
            outcome = pool.perform(continued(outcome, answer=pause_always))
        totals.append(outcome.value[0])

    threads = [threading.Thread(target=play) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals == [10] * 6


@pytest.mark.slow
def test_a_thousand_pauses_change_no_result_and_leave_nothing(pool):
    paused = [pool.perform(call(counting, 101, answer=pause_always)) for _ in range(10)]
    for _ in range(100):
        paused = [pool.perform(continued(one, answer=pause_always)) for one in paused]
    finished = [pool.perform(continued(one)) for one in paused]
    assert [one.value[0] for one in finished] == [5050] * 10


PARENT = """
import sys, time
sys.path.insert(0, {root!r})
from f2a_tune.cutoff import CutoffPool
from tests.cutoff.test_paused_calls import call, computing, counting, pause_always
pool = CutoffPool(n_workers=2, preload=())
pids = []
for number in range(3):
    if number % 2:
        outcome = pool.perform(call(counting, 3, answer=pause_always))
    else:
        outcome = pool.perform(call(computing, 60, cutoff=0.05))
    pids.append(outcome.value._worker._pid)
print(pool._engine.folder.path, *pids, flush=True)
time.sleep(600)
"""


def check_killed_parent(number=signal.SIGKILL):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(root=root)], stdout=subprocess.PIPE, text=True
    )
    with process:
        folder, *pids = process.stdout.readline().split()
        below = {int(pid) for pid in pids} | set(descendants(process.pid))
        assert all(is_running(pid) for pid in below)
        process.send_signal(number)
    assert_all_end(below)
    eventually(lambda: not os.path.exists(folder), "the shared folder is left")


def test_paused_processes_end_with_their_parent():
    check_killed_parent()


@pytest.mark.slow
def test_many_parents_killed_while_calls_are_paused_leave_nothing():
    for _ in range(60):
        check_killed_parent()
