"""The commands ``f2a-tune report`` and ``f2a-tune best``, which show a stored study."""

from __future__ import annotations

import argparse
import json
from typing import Any

REPORT_EXAMPLE = """example:
  f2a-tune report --storage sqlite:///sales.db --study-name sales --html sales.html

Works with any Optuna study, including one that is still running."""
BEST_EXAMPLE = """example:
  f2a-tune best --storage sqlite:///sales.db --study-name sales --json"""


def add_commands(commands: Any) -> None:
    """Add ``report`` and ``best`` to the parser."""
    report = commands.add_parser(
        "report",
        help="write an HTML report about a stored search",
        description="Write an HTML report about a stored search or Optuna study.",
        epilog=REPORT_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_study(report)
    report.add_argument("--html", help="HTML file to write, in addition to the printed summary")
    report.set_defaults(run=run_report)
    best = commands.add_parser(
        "best",
        help="print the best configuration of a stored search",
        description="Print the best configuration of a stored search or Optuna study.",
        epilog=BEST_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_study(best)
    best.set_defaults(run=run_best)


def _add_study(parser: Any) -> None:
    parser.add_argument("--storage", required=True, help="URL of the study's storage")
    parser.add_argument("--study-name", required=True, help="name of the study")
    parser.add_argument("--json", action="store_true", help="print as JSON")


def run_report(options: argparse.Namespace) -> None:
    """Print a summary, and write the report if ``--html`` is given."""
    from f2a_tune.cli.values import check_writable
    from f2a_tune.report.text import summary_sentence, table_of_configurations

    check_writable("--html", options.html)
    view = _reading(options)
    if options.html is not None:
        from f2a_tune.report import write_report

        write_report(view, options.html)
    if options.json:
        print(json.dumps(_as_json(view)))
        return
    print(table_of_configurations(view))
    print()
    print(summary_sentence(view))
    print(f"worker-seconds: {view.budget}")
    if options.html is not None:
        print(f"report: {options.html}")


def run_best(options: argparse.Namespace) -> None:
    """Print the best configuration."""
    from f2a_tune.report.text import number, value_text

    view = _reading(options)
    if view.winner is None:
        raise ValueError(f"study {options.study_name!r} has no finished fit yet. Try again later.")
    if options.json:
        print(json.dumps(_as_json(view)["best"]))
        return
    winner = view.winner
    folds = f"{len(winner.scores)} of {view.n_folds} folds"
    print(f"score {number(winner.mean)} ± {number(winner.spread)} ({folds})")
    for name, value in sorted(winner.params.items()):
        print(f"{name} = {value_text(value)}")


def _reading(options: argparse.Namespace) -> Any:
    from f2a_tune.study.reader import read_study
    from f2a_tune.study.storages import existing_storage, loaded_study

    storage = existing_storage(options.storage, "--storage ")
    study = loaded_study(storage, options.study_name, "--study-name ")
    if len(study.directions) != 1:
        raise ValueError(
            f"study {options.study_name!r} has several objectives. Pass a study with only one."
        )
    return read_study(study)


def _as_json(view: Any) -> dict[str, Any]:
    winner = view.winner
    best = None
    if winner is not None:
        best = {
            "number": winner.number,
            "mean": winner.mean,
            "scores": winner.scores,
            "fully_validated": view.fully_validated,
            "params": winner.params,
        }
    return {
        "study": view.name,
        "n_configurations": len(view.configurations),
        "best": best,
        "budget": view.budget.to_attribute(),
    }
