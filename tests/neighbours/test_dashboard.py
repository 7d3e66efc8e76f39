"""optuna-dashboard reads a search while it runs."""

import json
import threading
import urllib.request
from wsgiref.simple_server import make_server

import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from f2a_tune import F2ASearchCV

pytestmark = pytest.mark.slow


def test_a_running_search_is_served(tmp_path):
    dashboard = pytest.importorskip("optuna_dashboard", reason="pip install optuna-dashboard")
    url = f"sqlite:///{tmp_path}/search.db"
    seen = []

    def look(event):
        if not seen:
            server = make_server("127.0.0.1", 0, dashboard.wsgi(url))
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            address = f"http://127.0.0.1:{server.server_port}/api/studies"
            with urllib.request.urlopen(address, timeout=60) as answer:
                seen.append(json.load(answer))
            thread.join()
            server.server_close()

    F2ASearchCV(
        LogisticRegression(max_iter=500),
        {"C": loguniform(1e-3, 1e3)},
        time_budget=300,
        max_configurations=2,
        storage=url,
        study_name="seen",
        callbacks=[look],
    ).fit(*load_iris(return_X_y=True))
    assert [study["study_name"] for study in seen[0]["study_summaries"]] == ["seen"]
