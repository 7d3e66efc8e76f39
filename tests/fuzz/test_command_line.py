"""Any arguments, any files: an exit code and one line, never a traceback."""

import io
import json
import zipfile

import numpy as np
import optuna
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from f2a_tune.cli import main
from tests.fuzz import examples

KEEP = settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
WORDS = st.one_of(
    st.sampled_from(["", "0", "-1", "1e999", "nan", "a", "a:b", ":", "<b>", "-", "--", "x.csv"]),
    st.sampled_from(["digits", "DATA", "FOLDER", "FILE.toml", "sqlite://", "x.journal", "é\n"]),
    st.text(max_size=5),
)
TUNE = "target estimator space metric cv jobs storage study-name report save seed task holdout"
OPTIONS = {
    "tune": [f"--{name}" for name in TUNE.split()],
    "report": ["--storage", "--study-name", "--html"],
    "best": ["--storage", "--study-name"],
    "worker": ["--storage", "--study-name", "--search", "--jobs", "--estimator"],
    "simulate": ["--scenario", "--policy", "--table", "--runs", "--seed", "--jobs"],
}
FLAGS = {"tune": ["--resume", "--json", "--quiet"], "simulate": []}


@st.composite
def commands(draw):
    command = draw(st.sampled_from(sorted(OPTIONS)))
    words = [command]
    if command == "tune":
        # Never one that would run: what is fuzzed is what is said before any work begins.
        words += [draw(WORDS), "--budget", draw(st.sampled_from(["", "0", "ten", "-5s", "nan"]))]
    if command == "simulate":
        words += ["--budget", draw(st.sampled_from(["", "0", "ten", "-5", "nan", "inf"]))]
    for name in draw(st.lists(st.sampled_from(OPTIONS[command]), max_size=5, unique=True)):
        words += [name, draw(WORDS)]
    words += draw(st.lists(st.sampled_from(FLAGS.get(command, ["--json"]) or [""]), max_size=1))
    return draw(st.permutations(words[1:])) if draw(st.integers(0, 9)) == 0 else words


def run(arguments, capsys):
    """The exit code and what was said on standard error."""
    try:
        code = main(arguments)
    except SystemExit as end:  # of argparse
        code = end.code
    return code, capsys.readouterr().err


@KEEP
@given(arguments=commands())
def test_any_arguments(arguments, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "DATA").write_text("a,b\n1,2\n")
    (tmp_path / "FOLDER").mkdir(exist_ok=True)
    (tmp_path / "FILE.toml").write_text("C = [1")
    code, said = run([str(word) for word in arguments], capsys)
    assert code == 2
    assert "Traceback" not in said
    assert len(said.strip().splitlines()[-1]) > 10


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    made = optuna.create_study(storage=f"sqlite:///{folder}/s.db", study_name="s")
    made.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    return f"sqlite:///{folder}/s.db"


@pytest.mark.parametrize("command", ["best", "report"])
def test_what_is_printed_can_be_read(study, command, capsys):
    assert main([command, "--storage", study, "--study-name", "s", "--json"]) == 0
    json.loads(capsys.readouterr().out)


CELLS = st.one_of(st.text(",\"'\n;\t é<", max_size=4), st.floats().map(str), st.just("?"))


@pytest.mark.slow
@KEEP
@given(
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6),
    target=st.sampled_from(["-1", "0", "7", "a", ""]),
    header=st.sampled_from(["auto", "yes", "no"]),
)
def test_any_table(rows, target, header, tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(",".join(row) for row in rows))
    arguments = [str(path), "--target", target, "--header", header, "--budget", "0.001s"]
    code, said = run(["tune", *arguments, "--estimator", "linear", "--cv", "2"], capsys)
    assert code == 2  # no fit is over by then, if the table is one at all
    assert "Traceback" not in said
    assert len(said.strip().splitlines()[-1]) > 10


def npz(content):
    file = io.BytesIO()
    np.savez(file, **content)
    return file.getvalue()


ARRAYS = st.one_of(
    st.lists(st.floats(), max_size=4).map(np.array),
    st.integers(0, 3).map(lambda n: np.ones((n, 2))),
    st.text('[]{}"a1,:', max_size=8).map(np.array),
    st.just(np.array([None], dtype=object)),
)


@KEEP
@given(
    content=st.one_of(
        st.binary(max_size=60),
        st.dictionaries(
            st.sampled_from(["space", "configurations", "scores", "test_scores", "seconds"]),
            ARRAYS,
        ).map(npz),
    )
)
def test_any_replay_table(content, tmp_path, capsys):
    path = tmp_path / "t.npz"
    path.write_bytes(content)
    arguments = ["--scenario", "cross-validation", "--table", str(path), "--budget", "10"]
    code, said = run(["simulate", *arguments, "--runs", "1", "--policy", "wait-ucb"], capsys)
    assert code in (0, 2)
    assert "Traceback" not in said


def test_a_zip_that_is_no_table(tmp_path, capsys):
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("scores.npy", b"no array")
    code, said = run(["simulate", "--scenario", "cross-validation", "--table", str(path)], capsys)
    assert code == 2
    assert len(said.strip().splitlines()) == 1
