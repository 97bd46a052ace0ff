"""Scenarios in Python: converts a path, TOML text or a mapping to TOML text for the engine.

Only the engine knows keys, units and defaults; this module only checks that files are readable.
"""

import copy
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from ackclock.files import in_unicode, read_text

Value = str | float | bool | np.generic | os.PathLike[str]
Scenario = str | os.PathLike[str] | Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """A scenario text with its name in error messages and the folder of its files."""

    text: str
    name: str
    base_dir: str | None


def source(scenario: Scenario) -> Source:
    """Text of a scenario given as a path, as TOML text (a string with a line break or `=`) or as a mapping.

    Raises:
        OSError: if the file cannot be read.
        TypeError: naming the key, if a value of the mapping cannot be used in a scenario.
        ValueError: if it is neither of these, or its name or text is not UTF-8.
    """
    if not isinstance(scenario, str | os.PathLike | Mapping) or scenario == "":
        allowed = "the path of a file, TOML text (with a line break or `=`), or a mapping with the keys of a scenario"
        raise ValueError(f"scenario: {scenario!r} is none of {allowed}")
    if isinstance(scenario, Mapping):
        return Source(toml(scenario), "<python>", None)
    if isinstance(scenario, str) and ("\n" in scenario or "=" in scenario):
        return Source(scenario, "<python>", None)
    path = Path(scenario)
    return Source(read_text(path), in_unicode(path), str(path.parent))


def tables(text: str, name: str) -> dict[str, Any]:
    """The tables of a scenario's text.

    Raises:
        ValueError: beginning with `name`, if it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name}: not TOML: {error}") from None


def toml(scenario: Mapping[str, Any]) -> str:
    """Scenario text of a mapping, which may contain NumPy values and paths; errors as for `source`."""
    return tomli_w.dumps(_plain_table("", scenario))


def overrides(values: Mapping[str, Any]) -> list[str]:
    """`{"edge.buffer": "4p"}` as strings for `--set`; errors as for `source`."""
    # Plain text needs no quotes, and a quoted number would become text.
    return [
        f"{key}={value if isinstance(value, str) else _inline(value)}"
        for key, value in ((key, _plain(key, value)) for key, value in values.items())
    ]


def _inline(value: Any) -> str:
    """A plain value as one line of TOML."""
    match value:
        case Mapping():
            return "{ " + ", ".join(f"{json.dumps(str(key))} = {_inline(inner)}" for key, inner in value.items()) + " }"
        case list():
            return f"[{', '.join(map(_inline, value))}]"
        case bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def with_keys(scenario: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a scenario with dotted keys replaced; a flow key without index means every flow."""
    changed = copy.deepcopy(dict(scenario))
    for key, value in values.items():
        *tables, last = key.split(".")
        for table in _tables(changed, tables):
            table[last] = value
    return changed


def _tables(scenario: dict[str, Any], path: list[str]) -> list[dict[str, Any]]:
    """Tables at a dotted path: one table, or all of an array of tables; a number selects one of an array."""
    found: list[Any] = [scenario]
    for name in path:
        if name.isdecimal() and all(isinstance(entry, list) for entry in found):
            found = [entry[int(name)] for entry in found]
        else:
            found = [table.setdefault(name, {}) for table in _each(found)]
    return _each(found)


def _each(entries: list[Any]) -> list[dict[str, Any]]:
    """Replaces arrays by their tables."""
    return [table for entry in entries for table in (entry if isinstance(entry, list) else [entry])]


def _plain_table(path: str, table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain(f"{path}.{key}" if path else str(key), value) for key, value in table.items()}


def _plain(key: str, value: Any) -> Any:
    """A value as a TOML type; `key` names it in messages."""
    match value:
        case np.bool_() | np.integer():
            return value.item()
        case np.floating():
            return float(value)
        case np.ndarray():
            return [_plain(key, item) for item in value] if value.ndim > 0 else _plain(key, value[()])
        case os.PathLike():
            return in_unicode(Path(value))
        case Mapping():
            return _plain_table(key, value)
        case list() | tuple():
            return [_plain(key, item) for item in value]
        case str() | int() | float() | Decimal():
            return value
        case _:
            raise TypeError(f"{key}: {value!r} cannot be used in a scenario")
