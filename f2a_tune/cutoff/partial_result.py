"""`report_result`, with which a function keeps its best result so far for when it is stopped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from f2a_tune.cutoff.call import Call, nobody
from f2a_tune.cutoff.callback_channel import current_channel, in_worker
from f2a_tune.outcome import Kind, Outcome


@dataclass(frozen=True)
class PartialResult:
    """What a call sends to its caller."""

    value: Any


def report_result(value: Any) -> None:
    """Keep ``value`` as the result if the running call is stopped at its cutoff.

    Call it in a function that `run_with_cutoff` or `CutoffPool.run` runs. If the call is given up,
    ``outcome.value`` is the value that was reported last. Outside such a call, nothing happens.

    Parameters
    ----------
    value : object
        Any picklable object; it is sent to the calling process at once.

    Examples
    --------
    >>> import time
    >>> from f2a_tune import report_result, run_with_cutoff
    >>> def search():
    ...     for number in range(1000):
    ...         report_result(number)
    ...         time.sleep(0.5 if number == 3 else 0)
    >>> outcome = run_with_cutoff(search, cutoff=0.2)
    >>> outcome.kind, outcome.value
    (<Kind.GAVE_UP: 'gave_up'>, 3)
    """
    if in_worker():
        current_channel().ask(PartialResult(value))


class LastReport:
    """Takes the reports of one call in the calling process."""

    def __init__(self) -> None:
        self._reported: PartialResult | None = None

    def attached(self, call: Call) -> Call:
        """Return the call with its questions going here."""
        return replace(call, answer=self._answer)

    def completed(self, outcome: Outcome) -> Outcome:
        """Return the outcome of the call, with the last report if it was given up."""
        if outcome.kind is not Kind.GAVE_UP or self._reported is None:
            return outcome
        return replace(outcome, value=self._reported.value)

    def _answer(self, content: Any) -> None:
        if not isinstance(content, PartialResult):
            nobody(content)
        self._reported = content
