"""Several processes play one search: nothing is lost or done twice, whoever is killed."""

import math
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import timedelta

import joblib
import optuna
import pytest
import sqlalchemy
from optuna.trial import TrialState

import f2a_tune
from f2a_tune.outcome import Kind
from f2a_tune.study.attributes import FINGERPRINT, FOLD, OWNER, UNIT, VERSION
from f2a_tune.study.fold_record import FoldRecord
from f2a_tune.study.opening import FORMAT
from f2a_tune.study.storages import opened_storage
from tests.postgres import PostgresServer, program_folder
from tests.sklearn_plugin.joint_search import N_FOLDS, X, Y, opened, search

pytestmark = pytest.mark.slow


@pytest.fixture(params=["journal", "postgres"])
def url(request, tmp_path):
    if request.param == "journal":
        return str(tmp_path / "search.journal")
    return request.getfixturevalue("postgres").new_database()


def player(role, url, log, *more):
    command = [
        sys.executable,
        "-m",
        "tests.sklearn_plugin.joint_search",
        role,
        url,
        str(log),
        *more,
    ]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_trials(url, count):
    for _ in range(600):
        time.sleep(0.1)
        try:
            if len(study_of(url).trials) >= count:
                return
        except Exception:  # not there yet
            continue
    pytest.fail("the search did not begin")


def owners(study):
    return {trial.user_attrs.get(OWNER) for trial in study.trials} - {None}


def wait_for_owners(url, count):
    for _ in range(600):
        if len(owners(study_of(url))) >= count:
            return
        time.sleep(0.1)
    pytest.fail("not all have begun to play")


def study_of(url):
    return optuna.load_study(study_name="s", storage=opened(url))


def finished_folds(study):
    """The different scores of each fold of each configuration, over all trials.

    A trial that continues that of a crashed process repeats its records.
    """
    found = {}
    for trial in study.trials:
        unit = tuple(trial.user_attrs.get(UNIT, ()))
        for fold in range(N_FOLDS):
            pull = FoldRecord.from_attribute(trial.user_attrs.get(f"{FOLD}{fold}"))
            if pull is not None and pull.kind is Kind.FINISHED:
                pulls = found.setdefault((unit, fold), [])
                if pull not in pulls:
                    pulls.append(pull)
    return found


def best_of(study):
    complete = [t for t in study.trials if t.state is TrialState.COMPLETE]
    return max(complete, key=lambda trial: trial.value)


def kill_all(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_workers_are_killed_and_join_late_and_nothing_is_lost(url, tmp_path):
    log = tmp_path / "fits.log"
    main = player("begin", url, log, "('time_budget', 40)")
    wait_for_trials(url, 2)
    others = [player("join", url, log) for _ in range(3)]
    wait_for_owners(url, 4)
    pause = random.Random(1)
    time.sleep(2 * pause.random())
    kill_all(others[0])
    time.sleep(pause.random())
    kill_all(others[1])
    late = player("join", url, log)
    results = [process.communicate(timeout=120) for process in (main, others[2], late)]
    assert [process.returncode for process in (main, others[2], late)] == [0, 0, 0], results

    study = study_of(url)
    assert {trial.state for trial in study.trials} <= {
        TrialState.COMPLETE,
        TrialState.PRUNED,
        TrialState.FAIL,
    }
    folds = finished_folds(study)
    fits = log.read_text().splitlines()
    assert len(set(fits)) >= len(folds)
    # What was fitted and is not in the study was in flight when its process was killed, or ended
    # with the budget.
    assert len(fits) - len(folds) <= 5
    assert all(len(pulls) == 1 for pulls in folds.values())
    score, quality, _ = map(float, results[0][0].split())
    known = [t for t in study.trials if t.state is TrialState.COMPLETE]
    winner = next(trial for trial in known if trial.params["quality"] == quality)
    assert winner.value == pytest.approx(score)
    assert math.isclose(winner.value, sum(winner.intermediate_values.values()) / N_FOLDS)
    # Other processes may complete trials after the first process has read the study for the last
    # time. What was complete well before its own last trial must be in its result.
    first = study.trials[0].user_attrs[OWNER]
    own = [t.datetime_complete for t in known if t.user_attrs[OWNER] == first]
    early = [t.value for t in known if t.datetime_complete < max(own) - timedelta(seconds=3)]
    assert max(early, default=score) <= winner.value


def test_a_dead_workers_trials_are_taken_over(url, tmp_path):
    log = tmp_path / "fits.log"
    dead = player("begin", url, log, "('max_configurations', 1)", "('seconds', 1.0)")
    wait_for_trials(url, 1)
    while not finished_folds(study_of(url)):
        time.sleep(0.02)
    kill_all(dead)
    known = len(finished_folds(study_of(url)))
    assert 0 < known < N_FOLDS
    found = search(url, str(log), resume=True, max_configurations=1, time_budget=100).fit(X, Y)
    assert found.cv_results_["n_folds_done"].tolist() == [N_FOLDS]
    assert found.budget_.n_finished == N_FOLDS - known
    study = study_of(url)
    assert [trial.state for trial in study.trials] == [TrialState.PRUNED, TrialState.COMPLETE]
    assert all(len(pulls) == 1 for pulls in finished_folds(study).values())


def test_the_whole_group_is_killed_and_resumed_with_the_seconds_left(tmp_path):
    url, log = f"sqlite:///{tmp_path}/search.db", tmp_path / "fits.log"
    main = player("begin", url, log, "('n_jobs', 2)", "('time_budget', 25)")
    wait_for_trials(url, 8)
    kill_all(main)
    before = {
        key: pulls[0].result.test_scores for key, pulls in finished_folds(study_of(url)).items()
    }
    n_fits = len(log.read_text().splitlines())
    assert n_fits - len(before) <= 2  # in flight
    spent = next(
        content["seconds"]
        for key, content in study_of(url).user_attrs.items()
        if key.startswith("f2a:run:")
    )
    begin = time.monotonic()
    search(url, str(log), resume=True, time_budget=25, n_jobs=2).fit(X, Y)
    elapsed = time.monotonic() - begin
    assert elapsed < 25 - spent + 10  # what was left, on a busy machine
    after = finished_folds(study_of(url))
    # A configuration that goes on in another trial takes its folds along, unchanged.
    for key, score in before.items():
        assert {pull.result.test_scores for pull in after[key]} == {score}
    assert len(log.read_text().splitlines()) - len(after) <= 2 + 2


def test_sigterm_leaves_cleanly(tmp_path):
    url, log = f"sqlite:///{tmp_path}/search.db", tmp_path / "fits.log"
    main = player("begin", url, log, "('time_budget', 600)")
    wait_for_trials(url, 2)
    command = [sys.executable, "-m", "f2a_tune", "--debug", "worker", "--storage", url]
    command += ["--study-name", "s"]
    worker = subprocess.Popen(
        [*command, "--search", "tests.sklearn_plugin.joint_search:make", "--jobs", "3"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_owners(url, 2)
    assert main.poll() is None, main.communicate()
    worker.send_signal(signal.SIGTERM)
    said, errors = worker.communicate(timeout=120)
    assert worker.returncode == 0, errors
    assert " s: " in said or "interrupted before the first" in errors, errors
    notes = [v for k, v in study_of(url).user_attrs.items() if k.startswith("f2a:run:")]
    assert sorted(note["left"] for note in notes) == [False, True]
    main.send_signal(signal.SIGINT)
    main.communicate(timeout=120)
    assert main.returncode == 0
    states = {trial.state for trial in study_of(url).trials}
    assert not states & {TrialState.RUNNING, TrialState.FAIL}


def test_a_torn_journal_is_survived_or_refused(tmp_path):
    url = str(tmp_path / "search.journal")
    search(url, max_configurations=3, time_budget=100).fit(X, Y)
    known = finished_folds(study_of(url))
    with open(url, "ab") as file:
        file.write(b'{"op_code": 8, "worker_id": "to')  # the power went
    found = search(url, resume=True, max_configurations=5, time_budget=100).fit(X, Y)
    assert len(found.cv_results_["params"]) == 5
    after = finished_folds(study_of(url))
    assert known.items() <= after.items()
    assert len(after) == 5 * N_FOLDS
    assert (tmp_path / "search.journal.torn").read_bytes() == b'{"op_code": 8, "worker_id": "to\n'


@contextmanager
def cluster(backend):
    """Two real workers of a joblib backend."""
    if backend == "dask":
        distributed = pytest.importorskip("distributed")
        with (
            distributed.LocalCluster(
                2, processes=True, threads_per_worker=1, dashboard_address=None
            ) as workers,
            distributed.Client(workers),
        ):
            yield
    elif backend == "ray":
        ray = pytest.importorskip("ray")
        from ray.util.joblib import register_ray

        register_ray()
        ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
        try:
            yield
        finally:
            ray.shutdown()
    else:
        yield


def seconds_to_start():
    """How long players take to start here: with Ray on a busy machine more than half a minute."""
    begin = time.monotonic()
    joblib.Parallel(n_jobs=2)(joblib.delayed(opened)(None) for _ in range(2))
    return time.monotonic() - begin


@pytest.mark.parametrize("backend", ["loky", "dask", "ray"])
def test_players_of_a_joblib_backend(backend):
    with cluster(backend), joblib.parallel_config(backend=backend):
        seconds = 20 + 4 * seconds_to_start()
        begin = time.monotonic()
        found = search(None, n_jobs=2, time_budget=seconds, study_name=None, refit=True).fit(X, Y)
        elapsed = time.monotonic() - begin
    assert elapsed < 2 * seconds
    assert found.best_score_ > 0.5
    assert found.cv_results_["status"][found.best_index_] == "complete"
    trials = found.study_.trials
    assert TrialState.RUNNING not in {trial.state for trial in trials}
    assert len({trial.user_attrs[OWNER] for trial in trials}) == 2
    use = found.budget_
    assert use.n_finished == found.cv_results_["n_folds_done"].sum()
    assert use.total_seconds > 1.2 * use.finished_seconds / 2
    assert found.predict(X).shape == (60,)


def test_what_cannot_be_shared_is_refused(tmp_path):
    with joblib.parallel_config(backend="loky"):
        with pytest.raises(ValueError, match="in the memory of this process"):
            search(None, n_jobs=2).set_params(storage=optuna.storages.InMemoryStorage()).fit(X, Y)
        with pytest.raises(ValueError, match="works in one process only"):
            search(None, n_jobs=2, policy="wait-ucb", study_name=None).fit(X, Y)
    with pytest.raises(ValueError, match="is not in the storage"):
        search(f"sqlite:///{tmp_path}/none.db").join(X, Y)
    optuna.create_study(storage=f"sqlite:///{tmp_path}/none.db", study_name="s")
    with pytest.raises(ValueError, match="was not created by F2ASearchCV"):
        search(f"sqlite:///{tmp_path}/none.db").join(X, Y)


def test_what_another_version_wrote_differently_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path}/search.db"
    search(url, max_configurations=1, time_budget=100).fit(X, Y)
    study = study_of(url)
    assert study.user_attrs[VERSION] == f2a_tune.__version__
    search(url, resume=True, max_configurations=1, time_budget=100).fit(X, Y)
    study.set_user_attr(VERSION, "9.9")
    study.set_user_attr(FINGERPRINT, study.user_attrs[FINGERPRINT] | {"format": FORMAT + 1})
    for play in (search(url, resume=True).fit, search(url).join):
        with pytest.raises(ValueError, match=r"written by f2a_tune 9\.9 in format 2"):
            play(X, Y)


@pytest.mark.parametrize("path", ["runs/search.journal", "search.journal"])
def test_a_journal_whose_writer_was_killed_is_soon_free(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    storage = opened_storage(path)
    os.symlink(tmp_path / path, f"{tmp_path / path}.lock")  # nobody will ever remove it
    begin = time.monotonic()
    optuna.create_study(storage=storage, study_name="s")
    assert 4 < time.monotonic() - begin < 25
    opened_storage(path)._backend._lock.release()  # it has been taken away: no reason to fail


def end(event):
    return event.pull.configuration >= 4


def test_a_callback_ends_the_search_of_all_players():
    with joblib.parallel_config(backend="loky"):
        begin = time.monotonic()
        found = search(None, n_jobs=2, time_budget=300, study_name=None, callbacks=[end]).fit(X, Y)
    assert time.monotonic() - begin < 100
    assert TrialState.RUNNING not in {trial.state for trial in found.study_.trials}


@pytest.mark.parametrize(
    ("storage", "error", "words"),
    [
        ("sqlite:////nonexistent/x.db", ValueError, "unable to open database file"),
        ("/nonexistent/x.journal", ValueError, "cannot be opened: No such file or directory"),
        ("x.db", ValueError, "is not a URL. Use sqlite"),
        ("oracle://me:secret@host/x", ImportError, r"oracle://me:\*\*\*@host/x' needs a driver"),
        ("foo://bar", ValueError, "is not the URL of a database"),
        (3, TypeError, "storage=3 must be the URL"),
    ],
)
def test_a_storage_that_cannot_be_opened(storage, error, words):
    with pytest.raises(error, match=words) as caught:
        search(None).set_params(storage=storage).fit(X, Y)
    assert "\n" not in str(caught.value)


def test_a_database_without_permission(postgres):
    url = postgres.new_database()
    owner = sqlalchemy.create_engine(url)
    with owner.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE ROLE guest LOGIN"))
    guest = sqlalchemy.make_url(url).set(username="guest").render_as_string(hide_password=False)
    with pytest.raises(ValueError, match="permission denied") as caught:
        search(None).set_params(storage=guest).fit(X, Y)
    assert "\n" not in str(caught.value)


def test_a_database_that_is_gone_for_seconds(tmp_path):
    """PostgreSQL is stopped in the middle of a search, and started again."""
    if program_folder() is None and not os.environ.get("CI"):
        pytest.skip("no PostgreSQL server is installed here")
    server = PostgresServer()
    try:
        url, log = server.url, tmp_path / "fits.log"
        main = player("begin", url, log, "('time_budget', 30)")
        wait_for_trials(url, 3)
        server.stop()
        time.sleep(3)
        server.start()
        said, errors = main.communicate(timeout=120)
        assert main.returncode == 0, errors
        study = study_of(url)
        assert TrialState.RUNNING not in {trial.state for trial in study.trials}
        assert best_of(study).value == pytest.approx(float(said.split()[0]))
        n_fits = len(log.read_text().splitlines())
        assert n_fits - len(finished_folds(study)) <= 1
    finally:
        server.close()
