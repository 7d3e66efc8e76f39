"""Scripts as users write them, ended in the ways that users and machines end them."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.cutoff.observing import assert_all_end, descendants, eventually, is_running

ROOT = Path(__file__).parents[2]

# No guard, functions of __main__, a call with a child of its own, and shared data.
SEARCH = """
import subprocess, sys, time
import numpy as np
from f2a_tune.cutoff import CutoffPool

def hang(X):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    while True:
        X.sum()

pool = CutoffPool(2)
X = pool.share("X", np.ones((100, 100)))
print(pool._engine.folder.path, flush=True)
futures = [pool.submit(hang, X, cutoff=3600) for _ in range(2)]
"""


def start(code, **options):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        **options,
    )


def wait_for_calls(process):
    """Until both calls run with their children: zygote, three workers, two grandchildren."""
    eventually(lambda: len(descendants(process.pid)) >= 6, "the calls did not start")
    return descendants(process.pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_when_the_parent_dies_everything_dies(number):
    process = start(SEARCH + "[f.result() for f in futures]")
    folder = Path(process.stdout.readline().strip())
    below = wait_for_calls(process)
    assert folder.exists()
    process.send_signal(number)
    process.wait()
    assert_all_end(below)
    eventually(lambda: not folder.exists(), "the shared folder is still there")


def test_if_the_zygote_is_killed_too_the_next_pool_cleans_up(tmp_path):
    # In a place of its own: a pool of a test that runs beside this one would clean up as well.
    environment = os.environ | {"JOBLIB_TEMP_FOLDER": str(tmp_path)}
    process = start(SEARCH + "[f.result() for f in futures]", env=environment)
    folder = Path(process.stdout.readline().strip())
    below = wait_for_calls(process)
    for pid in (below[0], process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    workers = [pid for pid in below if b"zygote" in _command(pid)]
    assert_all_end(workers)
    assert folder.parent == tmp_path
    assert folder.exists()
    for pid in filter(is_running, below):  # grandchildren, whom only the zygote could know
        os.kill(pid, signal.SIGKILL)
    code = "from f2a_tune.cutoff import CutoffPool\nCutoffPool(1, preload=()).start()"
    after = start(code, env=environment)
    assert after.wait() == 0
    assert not folder.exists()


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_ctrl_c_leaves_no_worker_and_only_the_parents_traceback():
    process = start(
        """
        import time
        from f2a_tune.cutoff import run_with_cutoff
        print("ready", run_with_cutoff(pow, 1, 1, cutoff=60).ok, flush=True)
        run_with_cutoff(time.sleep, 3600, cutoff=3600)
        """,
        start_new_session=True,
    )
    assert process.stdout.readline() == "ready True\n"
    time.sleep(0.3)
    below = descendants(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the whole foreground group
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert_all_end(below)


@pytest.mark.parametrize("way", ["script", "-c", "stdin", "thread", "daemon process", "fork"])
def test_it_works_from_everywhere(way, tmp_path):
    code = """
    import warnings
    from f2a_tune.cutoff import CutoffPool, run_with_cutoff
    class Odd(UserWarning):
        pass
    warnings.simplefilter("ignore", Odd)  # its category exists in this process only
    factor = 3
    def triple(x):
        return factor * x
    def work():
        assert run_with_cutoff(triple, 5, cutoff=60).value == 15
        assert run_with_cutoff(lambda: 1 / 0, cutoff=60).kind == "failed"
        print("worked")
    """
    endings = {
        "thread": "import threading; t = threading.Thread(target=work); t.start(); t.join()",
        "daemon process": (
            "import multiprocessing as m; p = m.get_context('fork').Process(target=work, "
            "daemon=True); p.start(); p.join(); print('code', p.exitcode)"
        ),
        "fork": (
            "import os, warnings; warnings.simplefilter('ignore'); "  # Python 3.12 warns of forks
            "pool = CutoffPool(1, preload=()); "
            "pool.submit(pow, 2, 2, cutoff=60).result(); work(); pid = os.fork(); work(); "
            "assert pool.submit(pow, 2, 3, cutoff=60).result().value == 8; "
            "pid and os.waitpid(pid, 0)"
        ),
    }
    text = textwrap.dedent(code) + endings.get(way, "work()") + "\n"
    command, given = [sys.executable], None
    if way == "script":
        (tmp_path / "script.py").write_text(text)
        command += [str(tmp_path / "script.py")]
    elif way == "stdin":
        command, given = [*command, "-"], text
    else:
        command += ["-c", text]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False
    )
    assert done.stderr == ""
    # "fork": the parent, the child, and the parent again, each with a pool of its own.
    assert done.stdout.count("worked") == (3 if way == "fork" else 1)
    assert "code" not in done.stdout or "code 0" in done.stdout


def test_output_passes_through():
    code = """
    import sys
    from f2a_tune.cutoff import run_with_cutoff
    def speak():
        print("said")
        print("complained", file=sys.stderr)
    run_with_cutoff(speak, cutoff=60)
    """
    out, errors = start(code).communicate(timeout=60)
    assert (out, errors) == ("said\n", "complained\n")


def test_spawned_workers_do_the_same():
    code = """
    import os, time
    from f2a_tune.cutoff import CutoffPool
    with CutoffPool(1) as pool:
        X = pool.share("X", [1, 2, 3])
        print(pool.run(sum, X, cutoff=60).value)
        print(pool.run(time.sleep, 3600, cutoff=0.2).kind)
        print(pool.run(os._exit, 3, cutoff=60).error.message)
        print(pool.run(lambda: 7, cutoff=60).value, flush=True)
        pids = input()
        time.sleep(0.1)
    """
    environment = {**os.environ, "F2A_TUNE_START_METHOD": "spawn"}
    process = start(code, env=environment, stdin=subprocess.PIPE)
    lines = [process.stdout.readline().strip() for _ in range(4)]
    assert lines == ["6", "gave_up", "the worker process exited with exit code 3", "7"]
    below = descendants(process.pid)
    assert below
    process.communicate("\n", timeout=60)
    assert_all_end(below)


def test_spawned_workers_die_with_their_parent():
    code = """
    import time
    from f2a_tune.cutoff import CutoffPool
    pool = CutoffPool(1, preload=()).start()
    print(pool.run(pow, 2, 2, cutoff=60).value, flush=True)
    pool.run(time.sleep, 3600, cutoff=3600)
    """
    process = start(code, env={**os.environ, "F2A_TUNE_START_METHOD": "spawn"})
    assert process.stdout.readline() == "4\n"
    below = descendants(process.pid)
    process.kill()
    process.wait()
    assert_all_end(below)


def test_an_unknown_start_method_is_refused(monkeypatch):
    from f2a_tune.cutoff import CutoffPool

    monkeypatch.setenv("F2A_TUNE_START_METHOD", "thread")
    with pytest.raises(ValueError, match=r"F2A_TUNE_START_METHOD must be .* got 'thread'"):
        CutoffPool(1).start()
