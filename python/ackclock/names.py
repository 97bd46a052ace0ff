"""Suggestions for misspelt names."""

from collections.abc import Iterable
from difflib import get_close_matches


def near(name: object, known: Iterable[object]) -> str:
    """`; did you mean X?` for the most similar name; empty if none is similar.

    >>> near("godput_bps", ["goodput_bps", "timeouts"])
    '; did you mean goodput_bps?'
    """
    found = get_close_matches(str(name), list(map(str, known)), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def listed(known: Iterable[object], most: int = 12) -> str:
    """Names as a list in an error message, at most `most` of them."""
    names = list(map(str, known))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
