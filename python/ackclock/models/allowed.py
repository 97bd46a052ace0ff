"""What the models take: numbers that leave what is computed of them finite and above 0.

The functions take arguments by the names that messages give them.
"""

from collections.abc import Callable, Mapping
from math import inf

# Far beyond any link, and near enough to 1 that no product of a few such numbers leaves the range of a float.
LEAST, MOST = 1e-15, 1e15


def above_zero(arguments: Mapping[str, float]) -> None:
    """Let numbers above 0 pass.

    Raises:
        ValueError: naming the argument, its value and what is allowed.
    """
    _each(arguments, f"above 0 (from {LEAST:g} to {MOST:g})", lambda value: LEAST <= value <= MOST)


def zero_or_more(arguments: Mapping[str, float]) -> None:
    """Let 0 and numbers above it pass; raises as `above_zero`."""
    _each(arguments, f"0 or above (to {MOST:g})", lambda value: 0 <= value <= MOST)


def one_or_more(arguments: Mapping[str, float]) -> None:
    """Let numbers from 1 pass; raises as `above_zero`."""
    _each(arguments, f"1 or above (to {MOST:g})", lambda value: 1 <= value <= MOST)


def one_or_more_or_none(arguments: Mapping[str, float]) -> None:
    """Let limits from 1 pass, and infinity for no limit; raises as `above_zero`."""
    _each(arguments, "1 or above", lambda value: 1 <= value <= inf)


def share(arguments: Mapping[str, float]) -> None:
    """Let numbers from 0 to 1 pass; raises as `above_zero`."""
    _each(arguments, "from 0 to 1", lambda value: 0 <= value <= 1)


def proper_share(arguments: Mapping[str, float]) -> None:
    """Let numbers between 0 and 1 pass, without either; raises as `above_zero`."""
    _each(arguments, "above 0 and below 1", lambda value: 0 < value < 1)


def decibels(arguments: Mapping[str, float]) -> None:
    """Let ratios pass that are above 0 as numbers; raises as `above_zero`."""
    _each(arguments, "from -150 to 150 dB", lambda value: -150 <= value <= 150)


def at_most(arguments: Mapping[str, float], most: float) -> None:
    """Let numbers from 1 to `most` pass; raises as `above_zero`."""
    _each(arguments, f"from 1 to {most:g}", lambda value: 1 <= value <= most)


def numbers(name: str, text: str) -> list[float]:
    """Numbers with commas between, as an argument of a command has them.

    Raises:
        ValueError: naming the argument and what is no number.
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
