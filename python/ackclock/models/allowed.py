"""Ranges of model arguments that keep results finite and above 0.

Keyword names of the functions' arguments are used in error messages.
"""

from collections.abc import Callable, Mapping
from math import inf

# Beyond any real link, but products of a few such numbers still fit into a float.
LEAST, MOST = 1e-15, 1e15


def above_zero(arguments: Mapping[str, float]) -> None:
    """Check that numbers are above 0.

    Raises:
        ValueError: naming the argument, its value and what is allowed.
    """
    _each(arguments, f"above 0 (from {LEAST:g} to {MOST:g})", lambda value: LEAST <= value <= MOST)


def zero_or_more(arguments: Mapping[str, float]) -> None:
    """Check that numbers are 0 or above; raises as `above_zero`."""
    _each(arguments, f"0 or above (to {MOST:g})", lambda value: 0 <= value <= MOST)


def one_or_more(arguments: Mapping[str, float]) -> None:
    """Check that numbers are 1 or above; raises as `above_zero`."""
    _each(arguments, f"1 or above (to {MOST:g})", lambda value: 1 <= value <= MOST)


def one_or_more_or_none(arguments: Mapping[str, float]) -> None:
    """Check that limits are 1 or above, or infinity (no limit); raises as `above_zero`."""
    _each(arguments, "1 or above", lambda value: 1 <= value <= inf)


def share(arguments: Mapping[str, float]) -> None:
    """Check that numbers are from 0 to 1; raises as `above_zero`."""
    _each(arguments, "from 0 to 1", lambda value: 0 <= value <= 1)


def proper_share(arguments: Mapping[str, float]) -> None:
    """Check that numbers are strictly between 0 and 1; raises as `above_zero`."""
    _each(arguments, "above 0 and below 1", lambda value: 0 < value < 1)


def decibels(arguments: Mapping[str, float]) -> None:
    """Check that ratios in dB are within range; raises as `above_zero`."""
    _each(arguments, "from -150 to 150 dB", lambda value: -150 <= value <= 150)


def at_most(arguments: Mapping[str, float], most: float) -> None:
    """Check that numbers are from 1 to `most`; raises as `above_zero`."""
    _each(arguments, f"from 1 to {most:g}", lambda value: 1 <= value <= most)


def numbers(name: str, text: str) -> list[float]:
    """Parse comma-separated numbers of a command's argument.

    Raises:
        ValueError: naming the argument and the invalid number.
    """
    words = [word.strip() for word in text.split(",")]
    found = []
    for word in words:
        try:
            found.append(float(word))
        except ValueError:
            raise ValueError(f"{name}: {word!r} is not a number; numbers have commas between") from None
    return found


def _each(arguments: Mapping[str, float], allowed: str, holds: Callable[[float], bool]) -> None:
    for name, value in arguments.items():
        if not holds(value):
            raise ValueError(f"{name}: {value} is not {allowed}")
