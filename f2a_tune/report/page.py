"""One HTML file about a study: what was read goes in, a page that needs no network comes out.

Everything that comes from data is escaped, in the page and in the JSON that its plots are drawn
from; the page's own script is the only one.
"""

from __future__ import annotations

import html
import json
import math
import platform
from collections.abc import Mapping
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from f2a_tune import clock
from f2a_tune.outcome import Kind
from f2a_tune.reading import ConfigurationLine, StudyReading, read_study
from f2a_tune.report.text import duration, number, parameters, ranked, summary_sentence, value_text
from f2a_tune.visualization import (
    plot_best_over_time,
    plot_cutoffs,
    plot_parallel_coordinates,
    plot_race,
    plot_reward_per_second,
    plot_time_account,
)
from f2a_tune.visualization._panels import missing

if TYPE_CHECKING:
    from optuna import Study

PLOTS = (
    ("time", plot_time_account, "Bars: seconds of fits by how they ended, refit and overhead."),
    ("best", plot_best_over_time, "Line: the best fully validated mean over the seconds spent."),
    ("race", plot_race, "Points: the score of every fold, by configuration."),
    ("cutoffs", plot_cutoffs, "Points: seconds of fits; dotted line: the learned cutoff."),
    ("reward", plot_reward_per_second, "Line: rank of scores won per second of fits."),
    ("parallel", plot_parallel_coordinates, "Lines: configurations through their parameters."),
)
PACKAGES = ("f2a_tune", "optuna", "scikit-learn", "joblib", "numpy")
MOST_GIVEN_UP = 200


def write_report(
    study: Study | StudyReading, path: str | Path, *, facts: Mapping[str, str] | None = None
) -> None:
    """Write the page of `html_report` to a file."""
    Path(path).write_text(html_report(study, facts=facts), encoding="utf-8")


def html_report(study: Study | StudyReading, *, facts: Mapping[str, str] | None = None) -> str:
    """The page: winner, account of the budget, plots, all configurations, how to repeat it.

    Parameters
    ----------
    study
        Any Optuna study; those of `F2ASearchCV` say most.
    facts
        More lines for the last section, such as the command.
    """
    reading = study if isinstance(study, StudyReading) else read_study(study)
    parts = {
        "title": html.escape(reading.name),
        "summary": html.escape(summary_sentence(reading)),
        "winner": _winner(reading),
        "account": _account(reading),
        "plots": "".join(_plot_section(name, text) for name, _, text in PLOTS),
        "rows": "".join(_row(one, reading.n_folds) for one in ranked(reading)),
        "given_up": _given_up(reading),
        "facts": _facts(reading, facts or {}),
        "figures": _figures(reading),
        "plotly": _plotly_script(),
    }
    page = resources.files("f2a_tune.report").joinpath("page.html").read_text(encoding="utf-8")
    head, *pieces = page.split("{{")
    text = [head]
    for piece in pieces:  # in one pass: nothing that was filled in is looked at again
        name, _, rest = piece.partition("}}")
        text += [parts[name], rest]
    return "".join(text)


def _winner(reading: StudyReading) -> str:
    winner = reading.winner
    if winner is None:
        return "<p>There is no winner: nothing has finished.</p>"
    rows = "".join(
        f"<tr><th scope='row'>{html.escape(name)}</th>"
        f"<td><code>{html.escape(value_text(value))}</code></td></tr>"
        for name, value in sorted(winner.params.items())
    )
    folds = ", ".join(number(score) for score in winner.scores)
    partly = ""
    if not reading.fully_validated:
        partly = "<p><strong>It was not validated on all folds.</strong></p>"
    return f"<table class='facts'>{rows}</table><p>Scores of its folds: {folds}</p>{partly}"


def _account(reading: StudyReading) -> str:
    use = reading.use
    lines = [
        ("finished fits", use.finished_seconds, use.n_finished),
        ("given up", use.given_up_seconds, use.n_given_up),
        ("failed", use.failed_seconds, use.n_failed),
        ("refit", use.refit_seconds, None),
        ("overhead", use.overhead_seconds, None),
    ]
    total = use.total_seconds or 1.0
    rows = "".join(
        f"<tr><th scope='row'>{name}</th><td>{seconds:.2f} s</td><td>{seconds / total:.0%}</td>"
        f"<td>{'' if count is None else count}</td></tr>"
        for name, seconds, count in lines
    )
    return (
        "<table class='facts'><thead><tr><th scope='col'>part</th><th scope='col'>time</th>"
        f"<th scope='col'>share</th><th scope='col'>number</th></tr></thead><tbody>{rows}"
        f"<tr class='sum'><th scope='row'>all workers</th><td>{use.total_seconds:.2f} s</td>"
        "<td></td><td></td></tr></tbody></table>"
    )


def _plot_section(name: str, text: str) -> str:
    return (
        f"<figure><div id='plot-{name}' class='plot' role='img' aria-label='{text}'></div>"
        f"<figcaption>{text}</figcaption></figure>"
    )


def _row(one: ConfigurationLine, n_folds: int) -> str:
    cells = [
        (one.number, str(one.number)),
        (one.status, one.status.replace("_", " ")),
        (one.mean, number(one.mean)),
        (one.spread, number(one.spread)),
        (len(one.scores), f"{len(one.scores)}/{n_folds}"),
        (one.seconds_per_pull, number(one.seconds_per_pull)),
        (None, parameters(one.params)),
    ]
    return "<tr>" + "".join(_cell(key, text) for key, text in cells) + "</tr>"


def _cell(key: Any, text: str) -> str:
    missing_key = key is None or (isinstance(key, float) and math.isnan(key))
    sort = "" if missing_key else f" data-key='{html.escape(str(key))}'"
    return f"<td{sort}>{html.escape(text)}</td>"


def _given_up(reading: StudyReading) -> str:
    lost = [pull for pull in reading.pulls if pull.kind is not Kind.FINISHED]
    if not lost:
        return "<p>Nothing was given up, and nothing failed.</p>"
    rows = []
    for pull in lost[:MOST_GIVEN_UP]:
        error = pull.error.strip().splitlines()
        why = error[-1] if error else pull.reason
        rows.append(
            f"<tr><td>{pull.configuration}</td><td>{pull.fold + 1}</td>"
            f"<td>{pull.kind.value.replace('_', ' ')}</td><td>{pull.seconds:.3g} s</td>"
            f"<td>{html.escape(why)}</td></tr>"
        )
    more = len(lost) - len(rows)
    rest = f"<p>And {more} more.</p>" if more > 0 else ""
    return (
        "<table><thead><tr><th scope='col'>configuration</th><th scope='col'>fold</th>"
        "<th scope='col'>how it ended</th><th scope='col'>after</th><th scope='col'>why it was "
        f"tried, or its error</th></tr></thead><tbody>{''.join(rows)}</tbody></table>{rest}"
    )


def _facts(reading: StudyReading, facts: Mapping[str, str]) -> str:
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    spent = "–" if math.isnan(reading.budget_seconds) else duration(reading.budget_seconds)
    lines = {
        **facts,
        "study": reading.name,
        "seconds spent": spent,
        "versions": f"Python {platform.python_version()}, {versions}",
        "written": clock.wall_clock().isoformat(sep=" ", timespec="seconds"),
    }
    rows = "".join(
        f"<tr><th scope='row'>{html.escape(name)}</th>"
        f"<td><code>{html.escape(text)}</code></td></tr>"
        for name, text in lines.items()
    )
    return f"<table class='facts'>{rows}</table>"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "?"


def _figures(reading: StudyReading) -> str:
    figures = {name: json.loads(plot(reading).to_json()) for name, plot, _ in PLOTS}
    text = json.dumps(_escaped(figures))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _escaped(content: Any) -> Any:
    """Plotly reads some tags in texts: what comes from data must not be one."""
    if isinstance(content, str):
        return html.escape(content, quote=False)
    if isinstance(content, list):
        return [_escaped(one) for one in content]
    if isinstance(content, dict):
        ours = "hovertemplate"  # has tags, and nothing of the data
        return {key: value if key == ours else _escaped(value) for key, value in content.items()}
    return content


def _plotly_script() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        missing("plotly", error)
    return str(get_plotlyjs()).replace("</script", "<\\/script")
