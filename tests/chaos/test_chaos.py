"""Hostile searches, in short; ``benchmarks/chaos.py`` goes on for as long as one likes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.clocks import clock_that_goes_back
from tests.chaos.engine import HARMS, Scenario, play
from tests.chaos.faults import FAULTS

pytestmark = pytest.mark.slow

# What a fit may do and still finish.
HARMLESS = ("nothing", "leak", "fork", "daemon", "close", "move", "forget", "thread")


@pytest.fixture
def storage(request, tmp_path):
    kind = getattr(request, "param", "sqlite")
    if kind == "postgres":
        return request.getfixturevalue("postgres").new_database()
    return f"sqlite:///{tmp_path}/s.db" if kind == "sqlite" else f"{tmp_path}/s.journal"


def test_every_fault_of_a_fit(tmp_path):
    """As many searches as this machine needs to get round to most of the faults."""
    tried, outcomes = set(), set()
    for attempt in range(6):
        storage = f"sqlite:///{tmp_path}/{attempt}.db"
        folder = tmp_path / f"run-{attempt}"
        verdict = play(Scenario(folder, budget=15, storage=storage, seed=attempt))
        assert verdict.wrong == []
        tried |= {name for name in FAULTS if verdict.faults[name]}
        outcomes |= set(verdict.outcomes)
        if len(tried) >= len(FAULTS) - 6 and {"finished", "gave_up", "failed"} <= outcomes:
            return
    pytest.fail(f"only {sorted(tried)} were tried, with {sorted(outcomes)}")


@pytest.mark.parametrize("storage", ["journal", "postgres"], indirect=True)
def test_workers_and_what_starts_them_are_killed_and_stopped(tmp_path, storage):
    scenario = Scenario(
        tmp_path / "run", budget=15, faults=HARMLESS, harms=HARMS, storage=storage, seconds=0.05
    )
    verdict = play(scenario)
    assert verdict.wrong == []
    assert verdict.faults["kill worker"] > 0


def test_all_is_killed_and_resumed(tmp_path, storage):
    scenario = Scenario(
        tmp_path / "run", budget=20, faults=HARMLESS, kill_after=8, storage=storage
    )
    verdict = play(scenario)
    assert verdict.wrong == []
    assert verdict.faults["kill all"] == 1


def test_with_few_open_files(tmp_path, storage):
    verdict = play(Scenario(tmp_path / "run", budget=12, files=64, storage=storage))
    assert verdict.wrong == []


def test_the_clock_is_set_back(tmp_path, storage):
    clock = clock_that_goes_back(tmp_path, after=8)
    if clock is None:
        pytest.skip("no C compiler is installed here")
    scenario = Scenario(
        tmp_path / "run",
        budget=14,
        faults=("nothing", "hang"),
        storage=storage,
        environment=clock.environment,
        meddle=clock.meddle,
    )
    verdict = play(scenario)
    assert verdict.wrong == []
    seconds = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env=os.environ | clock.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert time.time() - float(seconds.stdout) > 3000


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "run" / "scratch"
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_no_room_for_the_data(small_disk: Path):
    verdict = play(Scenario(small_disk.parent, rows=60_000))
    (wrong,) = verdict.wrong
    assert "exit code 1" in wrong
    assert "No space left on device" in wrong.strip().splitlines()[-1]
    assert "JOBLIB_TEMP_FOLDER" in wrong.strip().splitlines()[-1]
