import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from f2a_tune.bandit import PAPER_SCENARIOS, SCENARIOS
from f2a_tune.cli import main

pytestmark = pytest.mark.slow


def test_table_json_and_plots(tmp_path, capsys):
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "png", "html")}
    common = [
        "simulate",
        "--scenario",
        "first,plain",
        "--policy",
        "paper",
        "--budget",
        "2000",
        "--runs",
        "2",
    ]
    assert main([*common, "--json", str(files["json"]), "--plot", str(files["png"])]) == 0
    table = capsys.readouterr().out
    assert "budget 2000, 2 runs" in table
    assert all(name in table for name in ("first", "plain", "wait-ucb", "ucb-simplex"))
    figures = json.loads(files["json"].read_text())
    assert list(figures) == ["first", "plain"]
    cell = figures["plain"]["budget-ucb"]
    assert cell["regret"] == cell["checkpoints"]["2000"] > 0
    assert cell["epochs"] == 2000
    assert cell["ns_per_epoch"] > 0
    assert {"regret_sd", "paper_regret"} <= set(cell)
    alone = [*common[:-1], "1", "--json", str(files["json"])]
    assert main(alone) == 0
    assert json.loads(files["json"].read_text())["plain"]["wait-ucb"]["paper_regret_sd"] == 0
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert main([*common, "--plot", str(files["html"])]) == 0
    assert "plotly" in files["html"].read_text()


def test_groups_of_names(tmp_path):
    out = tmp_path / "out.json"
    arguments = ["simulate", "--budget", "60", "--runs", "1", "--json", str(out)]
    assert main([*arguments, "--scenario", "all", "--policy", "uniform"]) == 0
    assert list(json.loads(out.read_text())) == list(SCENARIOS)
    assert main([*arguments, "--scenario", "paper", "--policy", "uniform,constant"]) == 0
    assert list(json.loads(out.read_text())) == list(PAPER_SCENARIOS)


def test_cross_validation_from_a_table(tmp_path, capsys):
    table = tmp_path / "table.npz"
    np.savez(
        table, seconds=np.array([[0.1, 0.2], [1.0, 2.0]]), scores=np.array([[0.5, 1], [1, 0]])
    )
    arguments = ["simulate", "--scenario", "cross-validation", "--policy", "uniform"]
    assert main([*arguments, "--table", str(table), "--budget", "20", "--runs", "1"]) == 0
    assert "cross-validation" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--scenario dubling", "did you mean 'doubling'"),
        ("--policy waitucb", "did you mean 'wait-ucb'"),
        ("--budget ten", "--budget must be a number such as 1e6, got 'ten'"),
        ("--budget -5", "--budget must be a finite number above 0"),
        ("--runs 0", "--runs must be a whole number"),
        ("--runs 1.5", "--runs must be a whole number"),
        ("--seed -1", "seed must be a whole number"),
        ("--seed 1.5", "--seed must be a whole number, got '1.5'"),
        ("--seed inf", "--seed must be a whole number"),
        ("--json .", "is a folder"),
        ("--scenario cross-validation", "Pass table=FILE.npz"),
        ("--table x.npz", "--table requires"),
        ("--json /nowhere/at/all/out.json", "does not exist"),
        ("--plot out.nonsense --budget 100 --scenario first --policy uniform", "nonsense"),
    ],
)
def test_bad_input_is_one_line_and_code_2(arguments, message, capsys):
    assert main(["simulate", "--budget", "100", "--runs", "1", *arguments.split()]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert "Traceback" not in error


def test_debug_shows_the_traceback():
    with pytest.raises(ValueError, match="budget"):
        main(["--debug", "simulate", "--budget", "0"])


def test_the_installed_command_runs():
    done = subprocess.run(
        [sys.executable, "-m", "f2a_tune", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("f2a-tune 0.")


def test_ctrl_c_ends_it_at_once():
    process = subprocess.Popen(
        [sys.executable, "-m", "f2a_tune", "simulate", "--policy", "uniform", "--budget", "1e12"],
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(15)  # into the simulation, which would take hours
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "f2a-tune: interrupted\n"
