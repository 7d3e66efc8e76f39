"""Calls that ask their caller."""

import threading
import time
from dataclasses import replace

import pytest

from f2a_tune.cutoff import CutoffPool, report_result
from f2a_tune.cutoff.call import checked_call
from f2a_tune.cutoff.callback_channel import NoParentError, current_channel, in_worker
from f2a_tune.outcome import Kind


@pytest.fixture(scope="module")
def pool():
    with CutoffPool(1, preload=()) as pool:
        yield pool


def run(pool, function, *args, cutoff=30.0, answer=None):
    call = checked_call(function, args, {}, cutoff, None)
    return pool.perform(call if answer is None else replace(call, answer=answer))


def ask_often(times):
    line = current_channel()
    return [line.ask(number) for number in range(times)]


def test_questions_are_answered_in_order(pool):
    assert run(pool, ask_often, 50, answer=lambda number: number**2).value == [
        number**2 for number in range(50)
    ]


def test_what_the_answer_raises_is_raised_in_the_call(pool):
    def answer(number):
        raise KeyError(f"no {number}")

    outcome = run(pool, ask_often, 1, answer=answer)
    assert outcome.kind is Kind.FAILED
    assert outcome.error.type == "KeyError"


def test_an_answer_that_cannot_be_sent_is_an_error_in_the_call(pool):
    outcome = run(pool, ask_often, 1, answer=lambda _: threading.Lock())
    assert outcome.kind is Kind.FAILED
    assert "pickle" in outcome.error.message


def test_a_caller_who_expects_no_questions(pool):
    outcome = run(pool, ask_often, 1)
    assert "no function that answers" in outcome.error.message


def test_a_call_that_only_asks_is_killed_on_time(pool):
    def ask_for_ever():
        line = current_channel()
        while True:
            line.ask("more")

    begin = time.monotonic()
    outcome = run(pool, ask_for_ever, cutoff=0.5, answer=str)
    assert outcome.kind is Kind.GAVE_UP
    assert time.monotonic() - begin < 20


def test_threads_of_a_call_take_turns(pool):
    def from_threads():
        line, heard = current_channel(), {}

        def ask(number):
            heard[number] = line.ask(number)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return heard

    assert run(pool, from_threads, answer=str).value == {n: str(n) for n in range(8)}


def test_a_thread_left_behind_cannot_ask_in_a_later_call(pool):
    def leave_a_thread():
        import builtins

        line = current_channel()

        def later():
            time.sleep(0.3)
            try:
                line.ask("late")
            except Exception as error:
                builtins.heard = type(error).__name__

        threading.Thread(target=later).start()

    def listen():
        import builtins

        time.sleep(1.0)
        return getattr(builtins, "heard", None)

    run(pool, leave_a_thread)
    asked = []
    assert run(pool, listen, answer=asked.append).value == "NoParentError"
    assert asked == []


def test_a_forked_child_cannot_ask(pool):
    def ask_in_child():
        import os

        line = current_channel()
        reading, writing = os.pipe()
        if os.fork() == 0:
            try:
                line.ask("child")
            except NoParentError:
                os.write(writing, b"refused")
            os._exit(0)
        os.wait()
        return os.read(reading, 20)

    assert run(pool, ask_in_child, answer=str).value == b"refused"


def test_only_workers_have_a_line(pool):
    assert not in_worker()
    with pytest.raises(NoParentError, match="no caller to ask"):
        current_channel()
    assert run(pool, in_worker).value is True


def improves(until):
    for number in range(until):
        report_result(number)
    time.sleep(3600)


def test_a_call_that_is_given_up_has_the_value_that_it_reported_last(pool):
    outcome = pool.run(improves, 4, cutoff=0.5)
    assert outcome.kind is Kind.GAVE_UP
    assert outcome.value == 3
    assert pool.submit(improves, 3, cutoff=0.5).result().value == 2
    assert pool.run(improves, 0, cutoff=0.1).value is None


def test_reports_change_nothing_in_a_call_that_finishes_or_outside_of_calls(pool):
    report_result("ignored")
    assert pool.run(report_result, 1, cutoff=60).value is None
