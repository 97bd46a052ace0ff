"""Scenarios as Python sees them: a path, TOML text or a mapping becomes TOML text for the engine.

The engine alone knows keys, units and defaults; nothing is checked here but that a file can be read.
"""

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from ackclock.files import in_unicode, read_text

Scenario = str | os.PathLike[str] | Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """A scenario text with the name that error messages give it and the folder of its files."""

    text: str
    name: str
    base_dir: str | None


def source(scenario: Scenario) -> Source:
    """Text of a scenario given as a path, as TOML text (a string with a line break or `=`) or as a mapping.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if its name or text is not UTF-8.
    """
    if isinstance(scenario, Mapping):
        return Source(tomli_w.dumps(dict(scenario)), "<python>", None)
    if isinstance(scenario, str) and ("\n" in scenario or "=" in scenario):
        return Source(scenario, "<python>", None)
    path = Path(scenario)
    return Source(read_text(path), in_unicode(path), str(path.parent))


def overrides(values: Mapping[str, str | float | bool]) -> list[str]:
    """`{"edge.buffer": "4p"}` as the strings that `--set` takes."""
    return [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in values.items()]


def with_keys(scenario: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a scenario with dotted keys replaced; a flow key without index means every flow."""
    changed = copy.deepcopy(dict(scenario))
    for key, value in values.items():
        *tables, last = key.split(".")
        for table in _tables(changed, tables):
            table[last] = value
    return changed


def _tables(scenario: dict[str, Any], path: list[str]) -> list[dict[str, Any]]:
    """The tables that a dotted path leads to: one, or each of an array of tables."""
    found = [scenario]
    for name in path:
        below: list[dict[str, Any]] = []
        for table in found:
            entry = table.setdefault(name, {})
            below.extend(entry if isinstance(entry, list) else [entry])
        found = below
    return found
