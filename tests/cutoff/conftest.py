import sys

import pytest

from f2a_tune.cutoff import CutoffPool
from tests.cutoff.observing import assert_only_idle_workers

# These tests look at /proc.
collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]


@pytest.fixture(scope="module")
def shared_pool():
    with CutoffPool(n_workers=2) as pool:
        yield pool


@pytest.fixture
def pool(shared_pool):
    """A pool that must work and be tidy after every test."""
    yield shared_pool
    assert shared_pool.run(pow, 3, 4, cutoff=60).value == 81
    assert_only_idle_workers(shared_pool)
