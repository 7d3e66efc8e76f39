"""The report: read from any study, escaped, and looked at in a real browser."""

import os
import re
import shutil
import sys

import optuna
import pytest
from scipy.stats import uniform

from f2a_tune import F2ASearchCV
from f2a_tune.outcome import Kind
from f2a_tune.report import html_report, summary_sentence, write_report
from f2a_tune.study.reader import read_study
from tests.sklearn_plugin.test_search import Toy, X, Y

NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def searched():
    space = {
        "quality": uniform(0, 1),
        "seconds": [0.001, 0.002, 3600.0],
        "fail": [False, False, NASTY],
    }
    search = F2ASearchCV(
        Toy(), space, time_budget=10, cv=3, random_state=0, study_name=NASTY, error_score=-1
    )
    return search.fit(X, Y)


@pytest.mark.filterwarnings("ignore")
def test_what_is_read_is_what_was_done(searched):
    reading = read_study(searched.study_)
    assert reading.winner.params["quality"] == searched.best_params_["quality"]
    assert reading.winner.mean == pytest.approx(searched.best_score_)
    assert len(reading.configurations) == len(searched.cv_results_["params"])
    use, written = reading.budget, searched.budget_
    assert use.total_seconds == pytest.approx(written.total_seconds, rel=0.02)
    assert (use.n_finished, use.n_given_up) == (written.n_finished, written.n_given_up)
    assert use.finished_seconds == pytest.approx(written.finished_seconds)
    assert {pull.kind for pull in reading.pulls} >= {Kind.FINISHED, Kind.GAVE_UP, Kind.FAILED}
    assert f"number {reading.winner.number}" in summary_sentence(reading)


def test_any_study_can_be_read():
    def objective(trial):
        if trial.number == 1:
            raise optuna.TrialPruned
        return trial.suggest_float("x", 0, 1)

    study = optuna.create_study()
    study.optimize(objective, n_trials=6)
    study.set_user_attr("f2a:run:strange", 3)
    study.set_user_attr("f2a:use", ["nonsense"])
    reading = read_study(study)
    assert reading.winner.mean == study.best_value
    assert "There is no winner" in html_report(optuna.create_study())
    assert str(study.best_trial.params["x"])[:5] in html_report(study)


@pytest.mark.filterwarnings("ignore")
def test_everything_from_data_is_escaped(searched):
    page = html_report(searched.study_, facts={NASTY: NASTY})
    own = re.sub(r"<script>.*?</script>", "", page.partition("<script>")[0], flags=re.S)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in own


def browser_page(scheme):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("continuous integration must have chromium")
        pytest.skip("no chromium is installed here")
    quiet = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    return playwright, chromium, [*quiet, "--disable-component-update", "--disable-sync"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.filterwarnings("ignore")
def test_in_a_real_browser(searched, tmp_path, scheme):
    path = tmp_path / "page.html"
    write_report(searched.study_, path, facts={"command": NASTY})
    playwright, chromium, options = browser_page(scheme)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=options)
        page = browser.new_page(color_scheme=scheme, viewport={"width": 1200, "height": 900})
        problems = []
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else 0)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("request", lambda sent: None if sent.url.startswith(("file:", "data:", "blob:"))
                else problems.append(sent.url))  # fmt: skip
        page.goto(path.as_uri())
        page.wait_for_selector("#plot-parallel .main-svg", timeout=60_000)
        for name in ("time", "best", "race", "cutoffs", "reward", "parallel"):
            drawn = page.locator(f"#plot-{name} .main-svg .trace path")
            heights = [box["height"] for one in drawn.all() if (box := one.bounding_box())]
            assert max(heights) > 3, name
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")

        def column(place):
            cells = page.locator(f"#configurations tbody tr td:nth-child({place})")
            return cells.all_inner_texts()

        assert len(column(1)) == len(searched.cv_results_["params"])
        page.get_by_role("button", name="number").click()
        assert column(1) == sorted(column(1), key=int)
        page.get_by_role("button", name="number").press("Enter")
        assert column(1) == sorted(column(1), key=int, reverse=True)
        page.get_by_label("Filter").fill("complete")
        shown = page.locator("#configurations tbody tr:visible").count()
        assert shown == (searched.cv_results_["status"] == "complete").sum()
        assert page.locator("#count").inner_text().startswith(f"{shown} of ")
        page.get_by_role("button", name="Light" if scheme == "dark" else "Dark").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
        browser.close()
    assert problems == []


def test_the_extra_is_named_if_plotly_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ImportError, match=r"f2a_tune\[plot\]"):
        html_report(optuna.create_study())
