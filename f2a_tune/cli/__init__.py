"""The entry point of the command line ``f2a-tune``.

Exit codes: 0 success, 2 invalid input (reported in one line on standard error), 130 interrupted.
Subcommands import their dependencies when they run, so that ``--help`` stays fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from f2a_tune import __version__
from f2a_tune.clock import monotonic_seconds, process_start_seconds
from f2a_tune.interrupts import kept_interrupts

DONE, BAD_INPUT, INTERRUPTED = 0, 2, 130


def main(arguments: Sequence[str] | None = None, started: float | None = None) -> int:
    """Run one command and return its exit code.

    ``arguments`` defaults to those of the process. ``started`` is the time on the monotonic clock
    from which a time budget is counted; it defaults to now.
    """
    begin = monotonic_seconds() if started is None else started
    options = _parser().parse_args(arguments)
    options.started = begin
    try:
        with kept_interrupts():
            options.run(options)
    except KeyboardInterrupt:
        print("f2a-tune: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if options.debug or not isinstance(error, _expected_errors()):
            raise
        text = getattr(error, "summary", str(error))
        print(f"f2a-tune: {' '.join(text.split())}", file=sys.stderr)
        return BAD_INPUT
    return DONE


def _expected_errors() -> tuple[type[Exception], ...]:
    """Return errors that are reported by their message alone; called late, as imports are slow."""
    from optuna.exceptions import OptunaError

    from f2a_tune.cutoff.launcher import WorkerStartError

    return ValueError, TypeError, ImportError, OSError, OptunaError, WorkerStartError


def script() -> NoReturn:
    """Run `main` and exit the process; this is the installed command."""
    code = main(started=process_start_seconds())
    if code == INTERRUPTED:
        # Simulation threads that are still running would delay a normal exit.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    from f2a_tune.cli import results, simulate, tune, worker

    parser = argparse.ArgumentParser(
        prog="f2a-tune", description="Tune models inside a wall-clock budget."
    )
    parser.add_argument("--version", action="version", version=f"f2a-tune {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    tune.add_command(commands)
    results.add_commands(commands)
    worker.add_command(commands)
    simulate.add_command(commands)
    return parser
