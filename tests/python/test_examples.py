"""The examples in docstrings give what they show."""

import doctest
from importlib import import_module

import pytest

MODULES = ("arguments", "axis", "names", "results", "simulate")


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name):
    outcome = doctest.testmod(import_module(f"ackclock.{name}"), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted > 0
    assert outcome.failed == 0
