"""``f2a-tune report`` and ``f2a-tune best``: a stored study in, a page or its winner out."""

from __future__ import annotations

import argparse
import json
from typing import Any

REPORT_EXAMPLE = """example:
  f2a-tune report --storage sqlite:///sales.db --study-name sales --html sales.html

Works for any Optuna study, also while it is running."""
BEST_EXAMPLE = """example:
  f2a-tune best --storage sqlite:///sales.db --study-name sales --json"""


def add_commands(commands: Any) -> None:
    """Add ``report`` and ``best`` to the parser."""
    report = commands.add_parser(
        "report",
        help="write an HTML page about a stored search",
        description="Write an HTML page about a stored search or study.",
        epilog=REPORT_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_study(report)
    report.add_argument("--html", help="file to write; without it a summary is printed")
    report.set_defaults(run=run_report)
    best = commands.add_parser(
        "best",
        help="print the winner of a stored search",
        description="Print the best configuration of a stored search or study.",
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
    """Write the page, or print a summary."""
    from f2a_tune.cli.values import check_writable
    from f2a_tune.report.text import summary_sentence, table_of_configurations

    check_writable("--html", options.html)
    reading = _reading(options)
    if options.html is not None:
        from f2a_tune.report import write_report

        write_report(reading, options.html)
    if options.json:
        print(json.dumps(_as_json(reading)))
        return
    print(table_of_configurations(reading))
    print()
    print(summary_sentence(reading))
    print(f"budget: {reading.use}")
    if options.html is not None:
        print(f"report: {options.html}")


def run_best(options: argparse.Namespace) -> None:
    """Print the winner."""
    from f2a_tune.report.text import number, value_text

    reading = _reading(options)
    if reading.winner is None:
        raise ValueError(f"study {options.study_name!r} has no finished fit yet.")
    if options.json:
        print(json.dumps(_as_json(reading)["best"]))
        return
    winner = reading.winner
    folds = f"{len(winner.scores)} of {reading.n_folds} folds"
    print(f"score {number(winner.mean)} ± {number(winner.spread)} ({folds})")
    for name, value in sorted(winner.params.items()):
        print(f"{name} = {value_text(value)}")


def _reading(options: argparse.Namespace) -> Any:
    from f2a_tune.optuna_plugin.storages import loaded_study, opened_storage
    from f2a_tune.reading import read_study

    storage = opened_storage(options.storage, "--storage ")
    study = loaded_study(storage, options.study_name, "--study-name ")
    if len(study.directions) != 1:
        raise ValueError(f"study {options.study_name!r} has several objectives: no one winner.")
    return read_study(study)


def _as_json(reading: Any) -> dict[str, Any]:
    winner = reading.winner
    best = None
    if winner is not None:
        best = {
            "number": winner.number,
            "mean": winner.mean,
            "scores": winner.scores,
            "fully_validated": reading.fully_validated,
            "params": winner.params,
        }
    return {
        "study": reading.name,
        "n_configurations": len(reading.configurations),
        "best": best,
        "budget": reading.use.to_attribute(),
    }
