"""Analytical models of TCP, of the links below it and of the loops around it.

Every model is one file, named by the field's term, and one line of `registry`. `ackclock model NAME` computes each from
the shell, `ackclock list models` lists them.
"""

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name in __dir__():
        return importlib.import_module(f"ackclock.models.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from ackclock.models.registry import MODELS

    return list(MODELS)
