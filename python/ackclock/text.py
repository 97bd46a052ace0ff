"""Text from outside, made fit for a terminal: names and values of files may be anybody's."""

import re

# Control characters but line end and tab, separators of lines and paragraphs, and what sets the direction of writing.
_OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Escape what a terminal would obey, as JSON does: `\u001b`."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
