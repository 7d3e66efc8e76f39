import importlib

import pytest

import f2a_tune


@pytest.mark.parametrize("name", f2a_tune.__all__)
def test_every_public_name_is_there(name):
    assert getattr(f2a_tune, name) is not None
    assert name in dir(f2a_tune)


@pytest.mark.parametrize("name", ["bandit", "cutoff", "logging", "visualization"])
def test_packages_are_imported_when_used(name):
    assert getattr(f2a_tune, name) is importlib.import_module(f"f2a_tune.{name}")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        f2a_tune.nothing  # noqa: B018
