"""The HTML report about a study, a single file that works without a network.

All text that comes from data is escaped, in the page and in the JSON of its plots, so that only
the page's own scripts run.
"""

from __future__ import annotations

import html
import json
import math
import platform
from collections.abc import Callable, Mapping
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from f2a_tune import clock
from f2a_tune.outcome import Kind
from f2a_tune.report.text import duration, number, parameters, ranked, summary_sentence, value_text
from f2a_tune.study.reader import read_study, study_of
from f2a_tune.study.view import ConfigurationView, StudyView
from f2a_tune.visualization import (
    plot_best_over_time,
    plot_cutoffs,
    plot_learning_curves,
    plot_parallel_coordinates,
    plot_race,
    plot_reward_per_second,
    plot_time_account,
)
from f2a_tune.visualization._panels import missing

if TYPE_CHECKING:
    from optuna import Study

PLOTS = (
    ("time", plot_time_account, "Bars: seconds of fits by outcome, of the refit and of overhead."),
    ("best", plot_best_over_time, "Line: best fully validated mean score over the seconds spent."),
    ("race", plot_race, "Points: score of every fold, by configuration."),
    (
        "curves",
        plot_learning_curves,
        "Lines: score of the first fold while a fit grows, by configuration.",
    ),
    ("cutoffs", plot_cutoffs, "Points: duration of each fit. Dotted line: learned cutoff."),
    ("reward", plot_reward_per_second, "Line: sum of score ranks per second of fits."),
    ("parallel", plot_parallel_coordinates, "Lines: parameter values of each configuration."),
)
PACKAGES = ("f2a_tune", "optuna", "scikit-learn", "joblib", "numpy")
MOST_GIVEN_UP = 200


def write_report(
    study: Study | StudyView, path: str | Path, *, facts: Mapping[str, str] | None = None
) -> None:
    """Write the report of `html_report` to a file."""
    Path(path).write_text(html_report(study, facts=facts), encoding="utf-8")


def html_report(study: Study | StudyView, *, facts: Mapping[str, str] | None = None) -> str:
    """Return an HTML page with winner, budget, plots, all configurations and software versions.

    Parameters
    ----------
    study : optuna.Study or StudyView
        Any Optuna study. Studies of `F2ASearchCV` contain the most details.
    facts : mapping of str to str, default=None
        Additional rows of the last section, such as the command.
    """
    view = study if isinstance(study, StudyView) else read_study(study_of(study))
    parts = {
        "title": html.escape(view.name),
        "summary": html.escape(summary_sentence(view)),
        "winner": _winner(view),
        "account": _account(view),
        "plots": "".join(_plot_section(name, text) for name, _, text in _plots_of(view)),
        "rows": "".join(_row(one, view.n_folds) for one in ranked(view)),
        "given_up": _given_up(view),
        "facts": _facts(view, facts or {}),
        "figures": _figures(view),
        "plotly": _plotly_script(),
    }
    page = resources.files("f2a_tune.report").joinpath("page.html").read_text(encoding="utf-8")
    head, *pieces = page.split("{{")
    text = [head]
    for piece in pieces:  # in one pass, so that inserted text is not parsed again
        name, _, rest = piece.partition("}}")
        text += [parts[name], rest]
    return "".join(text)


def _winner(view: StudyView) -> str:
    winner = view.winner
    if winner is None:
        return "<p>There is no winner, because no fit has finished.</p>"
    rows = "".join(
        f"<tr><th scope='row'>{html.escape(name)}</th>"
        f"<td><code>{html.escape(value_text(value))}</code></td></tr>"
        for name, value in sorted(winner.params.items())
    )
    folds = ", ".join(number(score) for score in winner.scores)
    partly = ""
    if not view.fully_validated:
        partly = "<p><strong>The winner was not validated on all folds.</strong></p>"
    return f"<table class='facts'>{rows}</table><p>Fold scores: {folds}</p>{partly}"


def _account(view: StudyView) -> str:
    budget = view.budget
    lines = [
        ("finished", budget.finished_seconds, budget.n_finished),
        ("given up", budget.given_up_seconds, budget.n_given_up),
        ("failed", budget.failed_seconds, budget.n_failed),
        ("refit", budget.refit_seconds, None),
        ("overhead", budget.overhead_seconds, None),
    ]
    if budget.n_pruned:
        lines.insert(2, ("pruned", budget.pruned_seconds, budget.n_pruned))
    total = budget.total_seconds or 1.0
    rows = "".join(
        f"<tr><th scope='row'>{name}</th><td>{seconds:.2f} s</td><td>{seconds / total:.0%}</td>"
        f"<td>{'' if count is None else count}</td></tr>"
        for name, seconds, count in lines
    )
    return (
        "<table class='facts'><thead><tr><th scope='col'>part</th><th scope='col'>time</th>"
        f"<th scope='col'>share</th><th scope='col'>fits</th></tr></thead><tbody>{rows}"
        f"<tr class='sum'><th scope='row'>total</th><td>{budget.total_seconds:.2f} s</td>"
        "<td></td><td></td></tr></tbody></table>"
    )


def _plot_section(name: str, text: str) -> str:
    return (
        f"<figure><div id='plot-{name}' class='plot' role='img' aria-label='{text}'></div>"
        f"<figcaption>{text}</figcaption></figure>"
    )


def _row(one: ConfigurationView, n_folds: int) -> str:
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


def _given_up(view: StudyView) -> str:
    lost = [pull for pull in view.pulls if pull.kind not in (Kind.FINISHED, Kind.PAUSED)]
    if not lost:
        return "<p>No fit was given up or failed.</p>"
    rows = []
    for pull in lost[:MOST_GIVEN_UP]:
        error = pull.error.strip().splitlines()
        why = error[-1] if error else pull.reason
        rows.append(
            f"<tr><td>{pull.configuration}</td><td>{pull.fold + 1}</td>"
            f"<td>{pull.kind.replace('_', ' ')}</td><td>{pull.seconds:.3g} s</td>"
            f"<td>{html.escape(why)}</td></tr>"
        )
    more = len(lost) - len(rows)
    rest = f"<p>And {more} more.</p>" if more > 0 else ""
    return (
        "<table><thead><tr><th scope='col'>configuration</th><th scope='col'>fold</th>"
        "<th scope='col'>outcome</th><th scope='col'>time</th><th scope='col'>reason for the "
        f"pull, or error</th></tr></thead><tbody>{''.join(rows)}</tbody></table>{rest}"
    )


def _facts(view: StudyView, facts: Mapping[str, str]) -> str:
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    spent = "–" if math.isnan(view.wall_seconds) else duration(view.wall_seconds)
    lines = {
        **facts,
        "study": view.name,
        "time spent": spent,
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


def _plots_of(view: StudyView) -> list[tuple[str, Callable[[StudyView], Any], str]]:
    """Return the plots to show; without fits that grow, there are no learning curves."""
    grows = any(pull.curve for pull in view.pulls)
    return [plot for plot in PLOTS if grows or plot[0] != "curves"]


def _figures(view: StudyView) -> str:
    figures = {name: json.loads(plot(view).to_json()) for name, plot, _ in _plots_of(view)}
    text = json.dumps(_escaped(figures))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _escaped(content: Any) -> Any:
    """Escape text from data, because plotly interprets some tags in texts."""
    if isinstance(content, str):
        return html.escape(content, quote=False)
    if isinstance(content, list):
        return [_escaped(one) for one in content]
    if isinstance(content, dict):
        ours = "hovertemplate"  # has tags, but no text from data
        return {key: value if key == ours else _escaped(value) for key, value in content.items()}
    return content


def _plotly_script() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        missing("plotly", error)
    return str(get_plotlyjs()).replace("</script", "<\\/script")
