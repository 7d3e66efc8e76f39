"""The replay benchmark on a small recorded problem, and its figures against hand-made ones."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "replay.py"
NEEDED = {"cfo": "flaml", "blendsearch": "flaml", "smac": "smac"}
CHECKPOINTS = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0]


def record(path, n=60, seed=0):
    """A conditional space; the slowest tenth never finished."""
    rng = np.random.default_rng(seed)
    space = [
        {"name": "model", "type": "categorical", "choices": ["a", "b", 1], "active_if": None},
        {"name": "C", "type": "float", "low": 0.001, "high": 100.0, "log": True,
         "active_if": {"model": ["a"]}},
        {"name": "k", "type": "int", "low": 1, "high": 50, "log": True,
         "active_if": {"model": ["b", 1]}},
        {"name": "scale", "type": "categorical", "choices": [True, False], "active_if": None},
    ]  # fmt: skip
    configurations, quality = [], []
    for _ in range(n):
        entry = {"model": ["a", "b", 1][rng.integers(3)], "scale": bool(rng.integers(2))}
        if entry["model"] == "a":
            entry["C"] = float(np.exp(rng.uniform(np.log(0.001), np.log(100))))
            quality.append(-abs(np.log(entry["C"])))
        else:
            entry["k"] = int(rng.integers(1, 51))
            quality.append(-2.0)
        configurations.append(entry)
    scores = np.array(quality)[:, None] + 0.1 * rng.normal(size=(n, 5))
    seconds = np.exp(rng.normal(size=(n, 1))) * rng.uniform(0.9, 1.1, (n, 5))
    slow = seconds.mean(axis=1) > np.quantile(seconds.mean(axis=1), 0.9)
    scores[slow] = np.nan
    np.savez(
        path,
        seconds=seconds,
        scores=scores,
        test_scores=scores + 0.05,
        configurations=json.dumps(configurations),
        space=json.dumps(space),
    )


def replay(*arguments):
    command = [sys.executable, "-W", "ignore", str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    record(path / "small.npz")
    record(path / "other.npz", seed=1)
    return path


@pytest.mark.parametrize("workers", [1, 4])
def test_figures_of_every_method(folder, tmp_path, workers):
    methods = ["random", "random-race", "tpe", "tpe-median", "tpe-wilcoxon", "tpe-hyperband"]
    methods += ["halving", "wait-ucb", "race", "race-tpe", "race-no-racing", "tpe+rule"]
    methods += [name for name, package in NEEDED.items() if importlib.util.find_spec(package)]
    if workers == 4 and "smac" in methods:
        methods.remove("smac")  # slow, and the same code as with one worker
    path = tmp_path / "figures.json"
    done = replay(
        "--tables", folder, "--methods", ",".join(methods), "--seeds", 2, "--budget", 4,
        "--workers", workers, "--jobs", 1, "--json", path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(path.read_text())
    assert set(figures) == {"small", "other"}
    for entry in figures.values():
        assert set(entry) == set(methods)
        for values in entry.values():
            assert values["checkpoints"] == CHECKPOINTS
            for key in ("regret", "better_share"):
                assert np.array(values[key]).shape == (6, 2)
                assert np.isfinite(values[key]).all()
            assert (np.array(values["better_share"]) <= 1).all()
            assert values["decision_ms"] >= 0
            assert values["seconds_given_up"] <= values["budget_seconds"] * workers
    assert "speed-up to tpe's final quality" in done.stdout
    assert all(name in done.stdout for name in methods)


@pytest.mark.parametrize("name", NEEDED)
def test_peers_of_the_extra(name, folder, tmp_path):
    pytest.importorskip(NEEDED[name], reason="needs the extra [bench]")
    path = tmp_path / "figures.json"
    done = replay(
        "--tables", folder, "--only", "small", "--methods", name, "--seeds", 1, "--budget", 2,
        "--jobs", 1, "--json", path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text())["small"][name]["pulls"] > 5


def test_same_command_same_figures(folder, tmp_path):
    found = []
    for run in range(2):
        path = tmp_path / f"{run}.json"
        done = replay(
            "--tables", folder, "--methods", "race,tpe", "--seeds", 2, "--budget", 3,
            "--json", path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        figures = json.loads(path.read_text())
        found.append({k: {m: v["regret"] for m, v in e.items()} for k, e in figures.items()})
    assert found[0] == found[1]


def test_a_picture(folder, tmp_path):
    path = tmp_path / "curves.png"
    done = replay("--tables", folder, "--methods", "random,race", "--seeds", 1, "--plot", path)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes().startswith(b"\x89PNG")


def record_curves(path, n=60, n_folds=2, seed=0):
    """Rising, falling and broken curves at six levels; some end early."""
    rng = np.random.default_rng(seed)
    space = [{"name": "x", "type": "float", "low": 0.0, "high": 1.0, "active_if": None}]
    levels = 2.0 ** np.arange(6)
    x = rng.random(n)
    scores = 1 - (x[:, None] - 0.6) ** 2 - 0.5 / levels - 0.02 * rng.random((n, 1)) * levels
    scores = scores[:, None, :] + 0.01 * rng.normal(size=(n, n_folds, len(levels)))
    seconds = np.exp(rng.normal(size=(n, 1, 1))) * levels * rng.uniform(0.9, 1.1, (n, n_folds, 1))
    scores[:5, :, 3:] = seconds[:5, :, 3:] = np.nan
    np.savez(
        path,
        levels=levels,
        seconds=seconds,
        scores=scores,
        test=scores + 0.01,
        configurations=json.dumps([{"x": float(value)} for value in x]),
        space=json.dumps(space),
    )


@pytest.mark.parametrize("workers", [1, 4])
def test_learning_curves(tmp_path, workers):
    record_curves(tmp_path / "curves.npz")
    methods = ["random", "tpe", "tpe-median", "tpe-hyperband", "tpe-asha", "tpe-wilcoxon", "asha"]
    methods += ["one-look", "race-no-levels", "race", "race-restarting", "race-8-paused"]
    methods += ["race-next-level", "race-last-level", "race-whole-cost", "race-no-cost"]
    methods += ["race-typical-seconds", "race-random-proposals", "race-one-fold"]
    path = tmp_path / "figures.json"
    done = replay(
        "--curves", tmp_path, "--methods", ",".join(methods), "--seeds", 2, "--budget", 5,
        "--workers", workers, "--jobs", 1, "--json", path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(path.read_text())["curves"]
    assert set(figures) == set(methods)
    for values in figures.values():
        assert values["checkpoints"] == CHECKPOINTS
        assert np.isfinite(values["regret"]).all()
        assert values["seconds_given_up"] <= values["budget_seconds"] * workers
    assert np.mean(figures["race"]["regret"]) < np.mean(figures["random"]["regret"])


@pytest.mark.parametrize("name", ["cfo", "blendsearch", "smac-hyperband"])
def test_peers_for_learning_curves(name, tmp_path):
    package = {"smac-hyperband": "smac"}.get(name, "flaml")
    pytest.importorskip(package, reason="needs the extra [bench]")
    record_curves(tmp_path / "curves.npz")
    path = tmp_path / "figures.json"
    done = replay(
        "--curves", tmp_path, "--methods", name, "--seeds", 1, "--budget", 3, "--jobs", 1,
        "--json", path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text())["curves"][name]["pulls"] > 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to play"),
        (["--curves", "nowhere"], "no .npz file there"),
        (["--curves", "{folder}", "--methods", "rase"], "'rase' is unknown"),
        (["--tables", "nowhere"], "no .npz file there"),
        (["--tables", "{folder}", "--methods", "rase"], "'rase' is unknown"),
        (["--tables", "{folder}", "--only", "big"], "no table big"),
        (["--tables", "{folder}", "--budget", "0"], "--budget must be above 0"),
    ],
)
def test_bad_input(arguments, words, folder):
    done = replay(*(argument.format(folder=folder) for argument in arguments))
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr
