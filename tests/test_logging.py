import logging

import pytest

import f2a_tune.logging as ours


@pytest.fixture(autouse=True)
def as_before():
    yield
    ours.enable_default_handler()
    ours.disable_propagation()


def test_verbosity_and_format(capsys):
    logger = ours.get_logger("f2a_tune.test")
    ours.set_verbosity(ours.WARNING)
    logger.info("hidden")
    logger.warning("shown %d", 3)
    assert ours.get_verbosity() == ours.WARNING
    text = capsys.readouterr().err
    assert text.startswith("[W 20")
    assert text.endswith("] shown 3\n")


def test_handlers_and_propagation(capsys):
    logger, passed_on = ours.get_logger("f2a_tune.test"), []
    listener = logging.Handler()
    listener.emit = lambda record: passed_on.append(record.getMessage())
    logging.getLogger().addHandler(listener)
    try:
        ours.disable_default_handler()
        logger.warning("nowhere")
        ours.enable_propagation()
        logger.warning("passed on")
    finally:
        logging.getLogger().removeHandler(listener)
    assert capsys.readouterr().err == ""
    assert passed_on == ["passed on"]
