"""Text for readers: names and values from files, escaped for terminals, and numbers."""

import re

# Control characters except newline and tab, line and paragraph separators, and characters that set text direction.
_OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Escape control characters as JSON does: `\u001b`."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def number(value: float) -> str:
    """A number with 4 significant digits; `-` if it is missing."""
    return "-" if value is None or value != value else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def with_separators(text: str) -> str:
    """A number as text, with commas between the thousands of its integer part."""
    return _OF_THOUSANDS.sub(lambda found: f"{int(found[0]):,}", text)


# Digits of an integer part: no digit and no decimal point is before them.
_OF_THOUSANDS = re.compile(r"(?<![\d.])\d{4,}")
