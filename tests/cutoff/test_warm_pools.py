"""Pools that are kept for the next user, and started with a deadline."""

import os
import sys
import threading
import time

import pytest

from f2a_tune import clock
from f2a_tune.cutoff import warm_pools
from f2a_tune.cutoff.warm_pools import WorkersNotReadyError, lent_pool, prestart_pool


@pytest.fixture
def slow_module(tmp_path, monkeypatch):
    """A module whose import takes a few seconds."""
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "slow_to_import"


@pytest.fixture
def no_idle_pools():
    warm_pools._idle.clear()
    yield
    for pools in list(warm_pools._idle.values()):
        for one in pools:
            one.pool.close()
    warm_pools._idle.clear()


def test_workers_that_are_not_ready_in_time_are_there_for_the_next(slow_module, no_idle_pools):
    begin = time.monotonic()
    with pytest.raises(WorkersNotReadyError), lent_pool(1, [slow_module], clock_in(0.2)):
        pass
    assert time.monotonic() - begin < 2.5
    with lent_pool(1, [slow_module], clock_in(120)) as pool:
        assert pool.run(module_is_loaded, slow_module, cutoff=30).value


@pytest.mark.parametrize("new_workers", [False, True])
def test_a_pool_is_used_again(no_idle_pools, new_workers):
    with lent_pool(1, []) as pool:
        first, worker = pool, pool.run(os.getpid, cutoff=30).value
    with lent_pool(1, [], new_workers=new_workers) as pool:
        assert pool is first
        assert (pool.run(os.getpid, cutoff=30).value != worker) == new_workers


def test_two_users_at_once_have_two_pools(no_idle_pools):
    with lent_pool(1, []) as one, lent_pool(1, []) as other:
        assert one is not other


def test_environment_variables_reach_workers_that_were_there_before(no_idle_pools, monkeypatch):
    with lent_pool(1, []) as pool:
        assert pool.run(environment, "F2A_TUNE_TEST", cutoff=30).value is None
        threads = pool.run(environment, "OMP_NUM_THREADS", cutoff=30).value
        monkeypatch.setenv("F2A_TUNE_TEST", "seen")
        assert pool.run(environment, "F2A_TUNE_TEST", cutoff=30).value == "seen"
        monkeypatch.delenv("F2A_TUNE_TEST")
        assert pool.run(environment, "F2A_TUNE_TEST", cutoff=30).value is None
        assert pool.run(environment, "OMP_NUM_THREADS", cutoff=30).value == threads


def test_numbers_of_threads_make_another_pool(no_idle_pools, monkeypatch):
    with lent_pool(1, []) as pool:
        first = pool
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    with lent_pool(1, []) as pool:
        assert pool is not first
        assert pool.run(environment, "OMP_NUM_THREADS", cutoff=30).value == "7"


def test_a_pool_can_be_started_ahead(no_idle_pools):
    prestart_pool(1, ["json"])
    (idle,) = [one.pool for pools in warm_pools._idle.values() for one in pools]
    with lent_pool(1, ["json"]) as pool:
        assert pool is idle


def test_a_pool_that_nobody_wants_is_closed(no_idle_pools, monkeypatch):
    monkeypatch.setattr(warm_pools, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(warm_pools, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(warm_pools, "_sweeper", None)
    with lent_pool(1, []) as pool:
        pass
    deadline = time.monotonic() + 60
    while not pool.closed and time.monotonic() < deadline:
        time.sleep(0.05)
    assert pool.closed


def test_settings_are_not_on_the_command_line(no_idle_pools):
    with lent_pool(1, ["json"]) as pool:
        zygote = pool._engine._launcher._process.pid
        with open(f"/proc/{zygote}/cmdline", "rb") as file:
            line = file.read()
        assert pool.run(os.read, 0, 10, cutoff=30).value == b""
    assert b"preload" not in line
    assert len(line) < 1000


def environment(name):
    return os.environ.get(name)


def clock_in(seconds):
    return clock.monotonic_seconds() + seconds


def module_is_loaded(name):
    return name in sys.modules


def test_a_thread_may_lend_a_pool(no_idle_pools):
    found = []

    def use():
        with lent_pool(1, []) as pool:
            found.append(pool.run(pow, 2, 3, cutoff=30).value)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [8, 8, 8]
