import os
import signal
import sys
import uuid

import pytest
from hypothesis import settings

import f2a_tune
from tests.postgres import PostgresServer, program_folder

# A shell that starts us in the background makes us deaf to Ctrl-C, and all that we start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time; `benchmarks/fuzz.py` tries new ones.
# No deadlines: a busy machine is no fault of ours.
EXPLORE = "F2A_TUNE_EXPLORE"
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile(
    "explore",
    deadline=None,
    max_examples=round(100 * float(os.environ.get(EXPLORE, "1"))),
    print_blob=True,
)
settings.load_profile("explore" if EXPLORE in os.environ else "fixed")


@pytest.fixture(scope="session")
def postgres():
    """A server of our own; in continuous integration there must be one to start."""
    if program_folder() is None and not os.environ.get("CI"):
        pytest.skip("no PostgreSQL server is installed here")
    pytest.importorskip("psycopg")
    server = PostgresServer()
    yield server
    server.close()


STORAGES = ("memory", "sqlite", "journal", "postgres")


@pytest.fixture(params=STORAGES)
def storage(request, tmp_path):
    """Every kind of storage, empty, as a function that opens it: as another process would."""
    return opener(request.param, request, tmp_path)


@pytest.fixture(params=STORAGES[1:])
def lasting_storage(request, tmp_path):
    """The kinds that outlive a process."""
    return opener(request.param, request, tmp_path)


def opener(kind, request, tmp_path):
    import optuna
    from optuna.storages.journal import JournalFileBackend

    if kind == "memory":
        kept = optuna.storages.InMemoryStorage()
        return lambda: kept
    if kind == "sqlite":
        return lambda: optuna.storages.get_storage(f"sqlite:///{tmp_path}/study.db")
    if kind == "journal":
        path = str(tmp_path / "study.journal")
        return lambda: optuna.storages.JournalStorage(JournalFileBackend(path))
    url = request.getfixturevalue("postgres").url
    return lambda: optuna.storages.get_storage(url)


@pytest.fixture
def study_name():
    """A server is shared by all tests: names must not meet."""
    return f"study-{uuid.uuid4().hex[:8]}"


@pytest.fixture(autouse=True)
def quiet():
    f2a_tune.logging.set_verbosity(f2a_tune.logging.WARNING)
    if "optuna" in sys.modules:
        sys.modules["optuna"].logging.set_verbosity(f2a_tune.logging.WARNING)
