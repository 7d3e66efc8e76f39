"""In a real Jupyter kernel: classes of the notebook can be tuned, and progress is seen."""

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

pytestmark = pytest.mark.slow

ESTIMATOR = """
import time
import numpy as np
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin
from f2a_tune import F2ASearchCV, run_with_cutoff

class Mine(ClassifierMixin, BaseEstimator):
    def __init__(self, quality=0.0):
        self.quality = quality
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        time.sleep(3600 if self.quality > 0.9 else 0.01)
        return self
    def predict(self, X):
        return np.zeros(len(X), dtype=int)
    def score(self, X, y):
        return self.quality
"""
SEARCH = """
X, y = np.zeros((30, 2)), np.arange(30) % 2
search = F2ASearchCV(Mine(), {"quality": uniform(0, 1)}, cv=2, time_budget=15, verbose=1)
search.fit(X, y)
print("best", search.best_score_)
"""
CUTOFF = """
def forever():
    while True:
        pass
run_with_cutoff(forever, cutoff=0.2).kind.value
"""


def texts(cell):
    """All that a cell has printed or shown."""
    found = [output.get("text", "") for output in cell.outputs]
    found += [output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "\n".join(found)


def test_a_search_in_a_notebook(tmp_path):
    cells = [nbformat.v4.new_code_cell(code) for code in (ESTIMATOR, SEARCH, CUTOFF, "search")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
    said = texts(cells[1])
    assert "configurations" in said
    assert "/15 s]" in said
    assert "\r" not in said
    assert 0.3 < float(said.rsplit("best", 1)[1].split()[0]) <= 0.9
    assert "gave_up" in texts(cells[2])
    assert "F2ASearchCV" in cells[3].outputs[0]["data"]["text/html"]
