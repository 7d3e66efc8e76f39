"""The commands that tune, report and say what is best, as a user types them."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time

import joblib
import optuna
import pytest

from f2a_tune.cli import main
from f2a_tune.cli.job import Job, space_of_toml
from f2a_tune.cli.tables import read_table
from f2a_tune.cli.values import check_writable, seconds

pytest.importorskip("pandas")

QUICK = ["--estimator", "linear,knn", "--cv", "3", "--budget", "12s"]


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Starting the first workers of a process takes seconds, on a busy machine many."""
    options = ["--estimator", "linear", "--cv", "2", "--budget", "60s", "--quiet"]
    for jobs in ("1", "2"):
        main(["tune", "iris", *options, "--space", _one_configuration(), "--jobs", jobs])


def _one_configuration():
    path = os.path.join(tempfile.mkdtemp(), "space.toml")
    with open(path, "w") as file:
        file.write("model__C = [1.0]")
    return path


@pytest.fixture(scope="module")
def mixed_csv(tmp_path_factory):
    """Numbers, categories and gaps, without names, as german.csv has it."""
    import numpy as np

    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("data") / "mixed.csv"
    rows = []
    for _ in range(200):
        colour, size = rng.choice(["red", "blue", "green"]), rng.normal()
        label = "yes" if (colour == "red") != (size > 0) else "no"
        rows.append(f"{colour},{'' if rng.random() < 0.1 else f'{size:.3f}'},{label}")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_tune_ends_with_a_table_a_score_a_report_and_a_model(tmp_path, capsys, mixed_csv):
    report, model = tmp_path / "page.html", tmp_path / "model.joblib"
    storage = ["--storage", f"sqlite:///{tmp_path}/s.db", "--study-name", "mine"]
    wanted = ["--holdout", "0.25", "--report", str(report), "--save", str(model)]
    code = main(["tune", str(mixed_csv), "--target", "-1", *QUICK, *storage, *wanted])
    shown = capsys.readouterr().out
    assert code == 0
    assert "number  " in shown
    assert "best score: 0." in shown
    assert "of rows held out: 0." in shown
    assert "configurations were tried in" in shown
    assert report.stat().st_size > 1e6
    assert joblib.load(model).predict(read_table(str(mixed_csv), "2", "no", "auto").X).shape

    assert main(["best", *storage, "--json"]) == 0
    best = json.loads(capsys.readouterr().out)
    assert best["fully_validated"]
    assert f"best score: {best['mean']:.4f}" in shown
    again = tmp_path / "again.html"
    assert main(["report", *storage, "--html", str(again)]) == 0
    assert "fits finished" in capsys.readouterr().out
    assert again.stat().st_size > 1e6
    # The same data under the same name goes on; a worker would find out by itself what to do.
    resumed = ["tune", str(mixed_csv), "--target", "2", *QUICK, *storage, "--holdout", "0.25"]
    assert main([*resumed, "--resume", "--json", "--budget", "14s"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["best_score"] >= best["mean"] - 1e-9
    assert result["budget"]["n_finished"] >= 0


@pytest.mark.parametrize(
    ("rows", "asked", "folds"),
    [(150, None, 15), (1200, None, 10), (6000, None, 5), (150, 2, 10), (6000, 3, 15)],
)
def test_few_rows_are_split_more_often(rows, asked, folds, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "".join(f"{row},{row % 2}\n" for row in range(rows)))
    job = Job(str(path), "b", "linear", None, None, 5, seed=0, seconds=1.0, n_repeats=asked)
    search = job.search(job.table())
    assert search.cv.get_n_splits() == folds


@pytest.mark.slow
def test_a_worker_knows_what_a_stored_job_tunes(tmp_path, mixed_csv):
    from f2a_tune.cli.job import JOB, stored_job
    from f2a_tune.study.storages import opened_storage

    storage = ["--storage", f"sqlite:///{tmp_path}/s.db", "--study-name", "mine"]
    command = [sys.executable, "-m", "f2a_tune"]
    options = ["--estimator", "knn", "--budget", "25s", "--quiet"]
    tuning = subprocess.Popen(
        [*command, "tune", str(mixed_csv), "--target", "-1", *options, *storage],
        stdout=subprocess.PIPE,
        text=True,
    )
    opened = None
    for _ in range(150):
        time.sleep(0.1)
        try:
            opened = opened_storage(storage[1])
            job = stored_job(opened, "mine")
            break
        except Exception:
            continue
    assert isinstance(job, Job)
    assert job.estimator == "knn"
    assert JOB
    worker = subprocess.run(
        [*command, "worker", *storage], capture_output=True, text=True, timeout=120
    )
    assert worker.returncode == 0, worker.stderr
    said, _ = tuning.communicate(timeout=120)
    assert tuning.returncode == 0
    assert "best score" in said


def test_in_a_terminal_there_is_a_bar_as_wide_as_it(mixed_csv):
    """A real terminal, 60 columns wide: one line that is written over, and Ctrl-C in the end."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(COLUMNS="60", TERM="xterm")
        arguments = ["tune", str(mixed_csv), "--target", "-1", "--estimator", "knn"]
        code = [sys.executable, "-m", "f2a_tune", *arguments, "--budget", "600s"]
        os.execv(sys.executable, code)
    shown, begin, interrupted = b"", time.monotonic(), False
    while time.monotonic() - begin < 120:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                piece = os.read(terminal, 65536)
            except OSError:
                break
            shown += piece
        if not interrupted and b"best 0." in shown:
            os.kill(pid, signal.SIGINT)
            interrupted = True
    if not interrupted:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    text = shown.decode()
    frames = text.split("\r\x1b[2K")[1:-1]
    assert len(frames) > 3
    assert all(len(frame.splitlines()[0]) < 60 for frame in frames)
    assert os.waitstatus_to_exitcode(status) == 0
    assert "f2a-tune: The search was interrupted" in text
    assert "best score: 0." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nowhere.csv --target y", "there is no file 'nowhere.csv'"),
        ("digit", "Did you mean the dataset 'digits'?"),
        ("CSV", "--target is missing"),
        ("CSV --target colour", "--target 'colour' is not a column"),
        ("CSV --target -1 --estimator forest", "estimator='forest' is unknown"),
        (
            "CSV --target -1 --budget ten-minutes",
            "--budget must be a number of seconds or a",
        ),
        ("CSV --target -1 --budget 0", "must be a finite number above 0"),
        ("CSV --target -1 --cv 1", "--cv '1' must be at least 2"),
        ("CSV --target -1 --cv -1", "--cv '-1' must be at least 2"),
        ("CSV --target -1 --seed -1", "--seed '-1' must be at least 0"),
        ("CSV --target -1 --jobs 0", "--jobs '0' must be at least 1"),
        ("CSV --target -1 --repeats 0", "--repeats '0' must be at least 1"),
        ("CSV --target -1 --repeats often", "--repeats 'often' must be a whole number"),
        ("CSV --target -1 --space none.toml", "--space 'none.toml' is not a file"),
        ("CSV --target -1 --space BROKEN", "cannot be read as TOML"),
        ("CSV --target -1 --metric speed", "speed"),
        ("CSV --target -1 --task ranking", "--task='ranking' is unknown"),
        ("CSV --target -1 --task regression", "requires a numeric target"),
        ("CSV --target -1 --storage sqlite:///x.db", "must be passed together"),
        ("CSV --target -1 --resume", "--resume requires"),
        ("CSV --target -1 --storage nonsense --study-name s", "is not a URL"),
        ("CSV --target -1 --report nowhere/x.html", "the folder does not exist"),
        ("CSV --target -1 --holdout 2", "below 1"),
        ("ONE --target -1", "only one value"),
        ("CSV --target -1 --estimator no_such_module:make", "cannot be imported"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    arguments, message, capsys, mixed_csv, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.toml").write_text("[a\nb = ")
    (tmp_path / "one.csv").write_text("a,b\n" + "1,same\n" * 20)
    places = {"CSV": str(mixed_csv), "BROKEN": "broken.toml", "ONE": "one.csv"}
    given = [places.get(word, word) for word in arguments.split()]
    assert main(["tune", *given]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", ["best", "report", "worker"])
def test_studies_that_are_not_there(command, capsys, tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    optuna.create_study(storage=storage, study_name="another")
    assert main([command, "--storage", storage, "--study-name", "none"]) == 2
    assert "'none' is not in the storage" in capsys.readouterr().err
    wrong = "postgresql+psycopg://nobody@127.0.0.1:1/none"
    assert main([command, "--storage", wrong, "--study-name", "none"]) == 2
    error = capsys.readouterr().err
    assert "cannot be opened" in error
    assert error.count("\n") == 1


def test_durations():
    assert [seconds("--budget", text) for text in ("90", "90s", "5m", "1h30m", "1.5h")] == [
        90, 90, 300, 5400, 5400
    ]  # fmt: skip


def test_spaces_of_toml():
    text = 'kind = ["a", "b"]\n[n]\nlow = 1\nhigh = 5\n[x]\nlow = 0.1\nhigh = 10\nlog = true\n'
    space = space_of_toml(text)
    assert space["kind"] == ["a", "b"]
    assert (space["n"].low, space["n"].high) == (1, 5)
    assert space["x"].log
    assert len(space_of_toml("[[spaces]]\na = [1]\n[[spaces]]\nb = [2]\n")) == 2
    backwards, text = "[a]\nlow=5\nhigh=1", '[a]\nlow = "x"\nhigh = 2'
    for wrong in ("a = []", "a = 3", "[a]\nlow = 1", text, backwards):
        with pytest.raises(ValueError, match=r"--space: .*a"):
            space_of_toml(wrong)


def test_help_is_quick_and_shows_an_example():
    begin = time.monotonic()
    for command in ("tune", "report", "best", "worker", "simulate"):
        done = subprocess.run(
            [sys.executable, "-m", "f2a_tune", command, "--help"], capture_output=True, text=True
        )
        assert f"f2a-tune {command}" in done.stdout.partition("example")[2]
    assert time.monotonic() - begin < 5 * 5  # five commands, a busy machine
    code = "import sys, f2a_tune.cli as c; c._parser(); print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("text", "target", "n_columns"),
    [
        ("a,b,y\n1,2,u\n3,4,v\n", "y", 2),
        (",a,y\n0,1,u\n1,3,v\n", "y", 2),  # an index without a name
        ("2019,2020,y\n1,2,u\n3,4,v\n", "y", 2),
        ("a,b,y\na,2,u\nc,4,v\n", "y", 2),  # a value that is the column's name
        ("red,1,u\nblue,2,v\nred,3,u\n", "-1", 2),
        ("a,b,y\n,2,True\n,4,False\n,5,\n", "y", 1),  # nothing in a column, a gap in the target
    ],
)
def test_kinds_of_tables(text, target, n_columns, tmp_path):
    head, *rows = text.splitlines(keepends=True)
    path = tmp_path / "table.csv"
    path.write_text(head + "".join(rows) * 12)
    table = read_table(str(path), target, "auto", "auto")
    assert table.task == "classification"
    assert table.X.shape[1] == n_columns
    assert len(table.y) >= 20


def test_broken_quotes_are_one_line(tmp_path, capsys):
    path = tmp_path / "broken.csv"
    path.write_text('a,y\n"1,u\n' + "x" * 200_000)
    assert main(["tune", str(path), "--target", "y"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_storage_that_is_lost_at_the_end_does_not_cost_the_model(
    tmp_path, capsys, mixed_csv, monkeypatch
):
    from optuna.exceptions import StorageInternalError

    import f2a_tune.study.reader

    def lost(study):
        raise StorageInternalError("the server is gone")

    monkeypatch.setattr(f2a_tune.study.reader, "read_study", lost)
    model = tmp_path / "model.joblib"
    options = [*QUICK, "--save", str(model), "--report", str(tmp_path / "page.html")]
    assert main(["tune", str(mixed_csv), "--target", "-1", *options]) == 0
    shown = capsys.readouterr()
    assert "the server is gone" in shown.err
    assert "best score: 0." in shown.out
    assert f"model: {model}" in shown.out
    assert joblib.load(model).predict is not None
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("error", ["optuna", "workers"])
def test_errors_of_storages_and_workers_are_one_line(error, capsys, mixed_csv, monkeypatch):
    from optuna.exceptions import StorageInternalError

    from f2a_tune import F2ASearchCV
    from f2a_tune.cutoff.launcher import WorkerStartError

    kinds = {"optuna": StorageInternalError, "workers": WorkerStartError}

    def fit(self, X, y):
        raise kinds[error]("it is\ngone")

    monkeypatch.setattr(F2ASearchCV, "fit", fit)
    assert main(["tune", str(mixed_csv), "--target", "-1", *QUICK]) == 2
    assert capsys.readouterr().err == "f2a-tune: it is gone\n"


def test_files_that_cannot_be_written_are_refused_before_the_work(tmp_path, monkeypatch):
    path = tmp_path / "model.joblib"
    path.touch()
    writable = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: str(p) != str(path) and writable(p, mode))
    with pytest.raises(ValueError, match="cannot be written to"):
        check_writable("--save", str(path))
    check_writable("--save", str(tmp_path / "another.joblib"))


def test_a_metric_that_does_not_fit_the_target_is_said_at_once(tmp_path, capsys):
    path = tmp_path / "text.csv"
    path.write_text("x,label\n" + "\n".join(f"{i},{'yes' if i % 2 else 'no'}" for i in range(40)))
    begin = time.monotonic()
    code = main(["tune", str(path), "--target", "label", "--metric", "f1", "--budget", "300s"])
    assert code == 2
    assert time.monotonic() - begin < 150
    error = capsys.readouterr().err
    assert "fits failed: ValueError: pos_label=1 is not a valid label" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("url", ["sqlite:///typo.db", "typo.journal", "journal://typo.journal"])
@pytest.mark.parametrize("command", ["best", "report", "worker"])
def test_reading_creates_nothing(command, url, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([command, "--storage", url, "--study-name", "s"]) == 2
    assert "there is no file 'typo." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
