"""Each test ends with: the next call works, and no child or grandchild is left (fixture pool)."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import Connection

import numpy as np
import pytest
import sklearn

from f2a_tune.cutoff import CutoffPool, Shared, WorkerStartError, run_with_cutoff
from f2a_tune.cutoff.call import checked_call
from f2a_tune.cutoff.processes import is_stopped
from f2a_tune.outcome import Kind
from tests.cutoff.observing import (
    assert_all_end,
    assert_only_idle_workers,
    descendants,
    eventually,
    open_files,
    resident_bytes,
)

SLACK_SECONDS = 5.0
CUTOFF = 0.3


def python_loop():
    while True:
        pass


def c_loop_with_the_lock():
    # Backtracking takes 2**40 steps, all in C and without letting any other thread run.
    re.match(r"(a+)+$", "a" * 40 + "b")


def stubborn():
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    while True:
        try:
            while True:
                time.sleep(0.01)
        except BaseException:
            pass


def hard_svc_fit():
    from sklearn.datasets import make_classification
    from sklearn.svm import SVC

    X, y = make_classification(6000, 30, flip_y=0.4, random_state=0)
    SVC(kernel="linear", C=1e6, cache_size=10).fit(X * 100, y)


def cross_validation_with_processes(pid_file):
    from sklearn.datasets import make_classification
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    X, y = make_classification(6000, 30, flip_y=0.4, random_state=0)
    threading.Thread(target=write_children, args=(pid_file,), daemon=True).start()
    cross_val_score(SVC(kernel="linear", C=1e6), X * 100, y, cv=2, n_jobs=2)


def write_children(pid_file):
    while True:
        children = descendants(os.getpid())
        if len(children) >= 2:
            # In one piece: the kill may come between any two steps.
            pid_file.with_suffix(".new").write_text(" ".join(map(str, children)))
            pid_file.with_suffix(".new").replace(pid_file)
        time.sleep(0.05)


def daemonised_grandchild(pid_file):
    code = "import os, time; os.setsid(); os.fork() and os._exit(0); os.setsid(); "
    code += f"open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(3600)"
    subprocess.Popen([sys.executable, "-c", code])
    time.sleep(3600)


@pytest.mark.parametrize(
    "function",
    [python_loop, c_loop_with_the_lock, stubborn, hard_svc_fit],
    ids=lambda f: f.__name__,
)
def test_whatever_runs_is_ended_at_its_cutoff(pool, function):
    outcome = pool.run(function, cutoff=CUTOFF)
    assert outcome.kind is Kind.GAVE_UP
    assert outcome.cutoff_seconds == CUTOFF
    assert CUTOFF <= outcome.seconds <= CUTOFF + SLACK_SECONDS


@pytest.mark.parametrize("function", [cross_validation_with_processes, daemonised_grandchild])
def test_grandchildren_die_too(pool, function, tmp_path):
    pid_file = tmp_path / "pids"
    outcome = pool.run(function, pid_file, cutoff=12)
    assert outcome.kind is Kind.GAVE_UP
    pids = [int(word) for word in pid_file.read_text().split()]
    assert pids
    assert_all_end(pids)


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (os._exit, (3,), "exit code 3"),
        (os.kill, (0, signal.SIGSEGV), "SIGSEGV"),
        (os.abort, (), "SIGABRT"),
    ],
    ids=["os._exit", "segfault", "abort"],
)
def test_a_worker_that_dies_is_one_failed_outcome(pool, function, arguments, words):
    outcome = pool.run(function, *arguments, cutoff=60)
    assert outcome.kind is Kind.FAILED
    assert outcome.error.type == "WorkerDiedError"
    assert words in outcome.error.message


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__("told once")
        self.lock = threading.Lock()


class LosesItsArguments(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def raising(kind, *arguments):
    raise kind(*arguments)


def test_what_a_function_raises_is_in_the_outcome(pool):
    outcome = pool.run(raising, ValueError, "no good", cutoff=60)
    assert outcome.kind is Kind.FAILED
    assert (outcome.error.type, outcome.error.message) == ("ValueError", "no good")
    assert "in raising" in outcome.error.traceback
    with pytest.raises(ValueError, match="no good"):
        outcome.unwrap()
    for kind in (SystemExit, KeyboardInterrupt):
        assert pool.run(raising, kind, cutoff=60).error.type == kind.__name__


@pytest.mark.parametrize("kind", [Unpicklable, LosesItsArguments])
def test_an_exception_that_cannot_be_sent_is_still_reported(pool, kind):
    outcome = pool.run(raising, kind, 1, 2, cutoff=60)
    assert outcome.kind is Kind.FAILED
    assert outcome.error.type == kind.__name__
    assert "raise kind" in outcome.error.traceback


def test_a_result_that_cannot_be_sent_is_a_failure(pool):
    outcome = pool.run(threading.Lock, cutoff=60)
    assert outcome.kind is Kind.FAILED
    assert "its result of type lock cannot be sent" in outcome.error.message


def test_a_large_result_arrives_whole(pool):
    outcome = pool.run(np.arange, 25_000_000, cutoff=60)
    assert outcome.value.nbytes == 200_000_000
    assert outcome.value[-1] == 24_999_999
    assert outcome.seconds < 30


def eat_memory(total_bytes):
    eaten = []
    while sum(map(len, eaten)) < total_bytes:
        eaten.append(bytearray(10_000_000))
    time.sleep(3600)


def take(count):
    return len(bytearray(count))


def test_memory_bombs(pool):
    limited = pool.run(eat_memory, 2_000_000_000, cutoff=60, memory=300_000_000)
    assert limited.kind is Kind.OUT_OF_MEMORY
    assert limited.error.type == "MemoryError"
    assert pool.run(take, 200_000_000, cutoff=60, memory=300_000_000).ok
    # The limit goes with the call, and without one only the cutoff ends it.
    assert pool.run(take, 400_000_000, cutoff=60).ok
    assert pool.run(eat_memory, 1_000_000_000, cutoff=2).kind is Kind.GAVE_UP


def test_a_pool_can_limit_all_its_calls():
    with CutoffPool(1, memory=200_000_000) as pool:
        assert pool.run(take, 10**9, cutoff=60).kind is Kind.OUT_OF_MEMORY
        assert pool.run(take, 10**9, cutoff=60, memory=2 * 10**9).ok


def test_an_outside_sigkill_is_called_out_of_memory(pool):
    outcome = pool.run(os.kill, 0, signal.SIGKILL, cutoff=60)
    assert outcome.kind is Kind.OUT_OF_MEMORY
    assert "memory ran out" in outcome.error.message


def fork_and_return():
    return os.fork() == 0


def close_every_file():
    os.closerange(3, 256)
    time.sleep(3600)


def test_a_call_that_forks_does_not_answer_twice(pool):
    assert pool.run(fork_and_return, cutoff=60).value is False
    assert [pool.run(pow, i, 2, cutoff=60).value for i in range(5)] == [0, 1, 4, 9, 16]


def test_a_call_that_cuts_its_line_is_ended(pool):
    outcome = pool.run(close_every_file, cutoff=60)
    assert outcome.kind is Kind.FAILED
    assert "lost its connection" in outcome.error.message


def test_any_signal_can_be_named(pool):
    outcome = pool.run(os.kill, 0, signal.SIGRTMIN + 5, cutoff=60)
    assert outcome.kind is Kind.FAILED
    assert "signal" in outcome.error.message


def test_an_alarm_of_one_call_does_not_end_the_next(pool):
    assert pool.run(signal.alarm, 1, cutoff=60).ok
    assert pool.run(time.sleep, 1.5, cutoff=60).ok


def test_a_cutoff_of_years(pool):
    assert pool.run(time.sleep, 0.05, cutoff=1e9).ok


class SlowToArrive:
    """Takes a second to unpickle."""

    def __reduce__(self):
        return time.sleep, (1,)


def test_the_cutoff_counts_from_the_beginning_of_the_call(pool):
    late = pool.run(lambda _: time.sleep(0.1), SlowToArrive(), cutoff=0.5)
    assert late.ok
    hung = pool.run(lambda _: time.sleep(3600), SlowToArrive(), cutoff=0.3)
    assert hung.kind is Kind.GAVE_UP
    assert hung.seconds < 0.3 + SLACK_SECONDS


def test_a_cutoff_of_a_millisecond(pool):
    outcome = pool.run(time.sleep, 60, cutoff=0.001)
    assert outcome.kind is Kind.GAVE_UP
    assert outcome.seconds < SLACK_SECONDS


@pytest.mark.slow
def test_five_hundred_kills_leak_nothing(shared_pool):
    pool = shared_pool

    def kill_one():
        assert pool.run(time.sleep, 3600, cutoff=0.003).kind is Kind.GAVE_UP

    for _ in range(20):
        kill_one()
    zygote = pool._engine._launcher._process.pid
    assert_only_idle_workers(pool)
    before = open_files(), open_files(zygote), resident_bytes(), resident_bytes(zygote)
    for _ in range(500):
        kill_one()
    assert_only_idle_workers(pool)
    after = open_files(), open_files(zygote), resident_bytes(), resident_bytes(zygote)
    assert after[0] <= before[0] + 2
    assert after[1] <= before[1] + 2
    assert after[2] <= before[2] + 30e6
    assert after[3] <= before[3] + 10e6


def test_results_and_seconds_are_those_of_the_call(pool):
    outcome = pool.run(time.sleep, 0.2, cutoff=60)
    assert outcome.ok
    assert 0.2 <= outcome.seconds <= 0.2 + SLACK_SECONDS
    assert pool.run(dict, [(1, 2)], cutoff=60, three=4).value == {1: 2, "three": 4}
    assert pool.run(lambda x: (lambda: x)(), 5, cutoff=float("inf")).value == 5


def test_futures_and_threads(pool):
    futures = [pool.submit(pow, i, 2, cutoff=60) for i in range(20)]
    assert [future.result().value for future in futures] == [i**2 for i in range(20)]
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda i: pool.run(pow, i, 2, cutoff=60), range(40)))
    assert [outcome.value for outcome in outcomes] == [i**2 for i in range(40)]


def test_no_more_calls_at_once_than_workers(pool):
    started = time.monotonic()
    futures = [pool.submit(time.sleep, 0.3, cutoff=60) for _ in range(4)]
    assert all(future.result().ok for future in futures)
    assert time.monotonic() - started >= 0.6


def describe(array):
    return type(array).__name__, array.flags.writeable, float(array.sum()), array.filename


def test_shared_data_is_a_private_read_only_map(pool):
    X = pool.share("X", np.ones((1000, 100)))
    assert Shared("X") == X
    kind, writeable, total, path = pool.run(describe, X, cutoff=60).value
    assert (kind, writeable, total) == ("memmap", False, 100_000.0)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
    # Another value under the same name takes its place; keywords and any object work too.
    X = pool.share("X", {"a": np.zeros(3), "b": "text"})
    assert pool.run(lambda data: data["b"] + str(data["a"].sum()), data=X, cutoff=60).value == (
        "text0.0"
    )


def test_shared_data_goes_with_the_pool():
    with CutoffPool(1, preload=()) as pool:
        pool.share("a", np.ones(10))
        assert pool.run(pow, 1, 2, cutoff=60).ok
        folder = pool._engine.folder.path
        assert folder.exists()
        zygote = pool._engine._launcher._process.pid
        workers = descendants(zygote)
        assert workers
    assert not folder.exists()
    assert_all_end([zygote, *workers])
    with pytest.raises(RuntimeError, match="closed"):
        pool.run(pow, 1, 2, cutoff=1)


def test_closing_ends_running_calls():
    pool = CutoffPool(1, preload=()).start()
    future = pool.submit(time.sleep, 3600, cutoff=7200)
    eventually(future.running, "the call did not start")
    time.sleep(0.3)
    pool.close()
    assert not future.result(timeout=60).ok


def settings_here():
    return sklearn.get_config()["assume_finite"], os.getcwd(), sys.path[0]


def warn_twice():
    with warnings.catch_warnings(record=True) as caught:
        warnings.warn("a", UserWarning, stacklevel=1)
    return len(caught)


def test_the_parents_settings_are_carried_over(pool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "imports"))
    with sklearn.config_context(assume_finite=True):
        assert pool.run(settings_here, cutoff=60).value == (
            True,
            str(tmp_path),
            str(tmp_path / "imports"),
        )
        assert pool.submit(settings_here, cutoff=60).result().value[0] is True
    assert pool.run(settings_here, cutoff=60).value[0] is False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pool.run(warn_twice, cutoff=60).value == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pool.run(warn_twice, cutoff=60).error.type == "UserWarning"


def test_a_call_that_changes_folder_does_not_disturb_the_next(pool):
    assert pool.run(os.chdir, "/", cutoff=60).ok
    assert pool.run(os.getcwd, cutoff=60).value == os.getcwd()


def draw():
    return np.random.random()


def test_workers_draw_their_own_random_numbers():
    draws = set()
    for _ in range(2):
        with CutoffPool(1) as pool:
            futures = [pool.submit(draw, cutoff=60) for _ in range(2)]
            draws |= {future.result().value for future in futures}
    assert len(draws) == 4


def test_threads_of_workers_are_capped(monkeypatch):
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)
    with CutoffPool(1, preload=(), threads_per_worker=3) as pool:
        assert pool.run(os.getenv, "OPENBLAS_NUM_THREADS", cutoff=60).value == "3"
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    with CutoffPool(2, preload=()) as pool:
        assert pool.run(os.getenv, "OMP_NUM_THREADS", cutoff=60).value == "7"


def test_a_dead_zygote_is_replaced(pool):
    process = pool._engine._launcher._process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert pool.run(pow, 2, 3, cutoff=60).value == 8
    assert pool.run(python_loop, cutoff=0.05).kind is Kind.GAVE_UP


def stops_in_the_middle_of_its_answer():
    def stop(connection, body):
        os.kill(os.getpid(), signal.SIGSTOP)

    Connection.send_bytes = stop  # what follows the head of an answer
    return "value"


def test_a_worker_stopped_in_the_middle_of_its_answer_is_not_waited_for(pool):
    call = checked_call(stops_in_the_middle_of_its_answer, (), {}, 60.0, None)
    begin = time.monotonic()
    outcome = pool.perform(replace(call, latest=begin + 3.0))
    assert time.monotonic() - begin < 20.0
    assert outcome.kind is Kind.GAVE_UP  # the end of the time is not the fault of the call
    assert pool.run(pow, 2, 3, cutoff=60).value == 8


class SlowToSend:
    def __reduce__(self):
        time.sleep(30)
        return str, ("value",)


def test_a_result_that_is_on_its_way_when_the_time_is_up_is_given_up(pool):
    call = checked_call(SlowToSend, (), {}, 60.0, None)
    begin = time.monotonic()
    outcome = pool.perform(replace(call, latest=begin + 3.0))
    assert time.monotonic() - begin < 20.0
    assert outcome.kind is Kind.GAVE_UP
    assert pool.run(pow, 2, 3, cutoff=60).value == 8


def test_nobody_asks_a_new_zygote_about_the_children_of_the_last():
    with CutoffPool(1, preload=()) as pool:
        launcher = pool._engine._launcher
        pid = pool.run(os.getpid, cutoff=60).value
        os.kill(launcher._process.pid, signal.SIGKILL)
        launcher._process.wait()
        assert pool.run(pow, 2, 3, cutoff=60).value == 8
        assert launcher.generation == 1
        control, launcher._control = launcher._control, None  # it would be asked on this
        assert launcher.exit_code(pid, generation=0) is None
        launcher.kill(pid, generation=0)
        launcher._control = control


def test_a_worker_killed_while_idle_is_replaced(pool):
    for pid in descendants(pool._engine._launcher._process.pid):
        os.kill(pid, signal.SIGKILL)
    assert pool.run(pow, 2, 3, cutoff=60).value == 8


def test_a_missing_package_is_a_clear_error():
    with pytest.raises(WorkerStartError, match="No module named 'no_such_package'"):
        CutoffPool(1, preload=["no_such_package"]).start()


@pytest.mark.parametrize("run", [run_with_cutoff, CutoffPool(1, preload=()).run])
@pytest.mark.parametrize(
    ("cutoff", "error"),
    [(0, ValueError), (-1, ValueError), (float("nan"), ValueError), ("2", TypeError)],
)
def test_bad_cutoffs_start_no_process(run, cutoff, error, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(error, match=rf"cutoff must be .*{cutoff!r}"):
        run(pow, 1, 2, cutoff=cutoff)


def test_other_bad_input_starts_no_process(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(ValueError, match="n_workers must be a whole number of at least 1, got 0"):
        CutoffPool(n_workers=0)
    with pytest.raises(TypeError, match="preload must be a sequence"):
        CutoffPool(preload="sklearn")
    with pytest.raises(ValueError, match="memory must be"):
        CutoffPool(memory=0)
    with pytest.raises(ValueError, match="threads_per_worker"):
        CutoffPool(threads_per_worker=0)
    with pytest.raises(TypeError, match="function must be callable, got 3"):
        run_with_cutoff(3, cutoff=1)
    with pytest.raises(TypeError, match=r"cannot be sent to a worker process.*picklable"):
        run_with_cutoff(print, threading.Lock(), cutoff=1)
    with pytest.raises(TypeError, match="name must be a non-empty string"):
        CutoffPool(1).share("", 1)


def test_what_starts_workers_fails_once_and_comes_back(monkeypatch):
    with CutoffPool(1) as pool:
        assert pool.run(os.getpid, cutoff=60).ok
        launcher = pool._engine._launcher
        if not hasattr(launcher, "_begin"):
            pytest.skip("this start method has no such process")
        really, tries = launcher._begin, []

        def begin():
            tries.append(1)
            if len(tries) == 1:
                raise OSError(24, "Too many open files")
            return really()

        monkeypatch.setattr(launcher, "_begin", begin)
        launcher._process.kill()
        launcher._process.wait()
        assert pool.run(os.getpid, cutoff=60).ok
        assert len(tries) == 2


def test_workers_that_cannot_start_are_an_error(monkeypatch):
    with CutoffPool(1) as pool:
        assert pool.run(os.getpid, cutoff=60).ok

        def launch():
            raise OSError(24, "Too many open files")

        monkeypatch.setattr(pool._engine._launcher, "launch", launch)
        pool._engine._idle.clear()
        with pytest.raises(WorkerStartError, match="Too many open files"):
            pool.run(os.getpid, cutoff=60)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_worker_that_was_stopped_while_idle_costs_no_call(pool):
    first = pool.run(os.getpid, cutoff=60).value
    os.kill(first, signal.SIGSTOP)
    eventually(lambda: is_stopped(first), "it was not stopped")
    begin = time.monotonic()
    outcome = pool.run(os.getpid, cutoff=3600)
    assert outcome.ok
    assert outcome.value != first
    assert time.monotonic() - begin < 60
