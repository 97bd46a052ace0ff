"""Arguments of `run`, `sweep` and `compare` as keys of the scenario and as axes of its `[sweep]`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ackclock.scenario import Source, Value, tables, toml

One = Value | Mapping[str, Any]
Values = Mapping[str, One | Sequence[One]]


def keys(
    values: Values | None, *, seed: int | None = None, runs: int | None = None, duration: str | float | None = None
) -> dict[str, Any]:
    """Keys to override; a `duration` without a unit is in seconds.

    Raises:
        ValueError: if a key is both an argument and in `values`.
    """
    seconds = f"{duration}s" if isinstance(duration, int | float | np.number) else duration
    given = {"seed": seed, "runs": runs, "duration": seconds}
    asked = {key: value for key, value in given.items() if value is not None}
    twice = [key for key in asked if key in (values or {})]
    if twice:
        raise ValueError(f"{twice[0]}: given twice, as an argument and in `set`")
    return {**(values or {}), **asked}


def one_value_each(values: Mapping[str, Any], function: str) -> dict[str, Any]:
    """The keys unchanged.

    Raises:
        ValueError: naming the key and the function, if it has a list of values.
    """
    for key, value in values.items():
        if is_axis(key, value):
            raise ValueError(f"{key}: {function} takes one value; sweep runs each of a list")
    return dict(values)


def split(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The keys with one value, and the axes: keys with a list of values.

    Raises:
        ValueError: naming the key, if a list is empty.
    """
    axes = {key: list(value) for key, value in values.items() if is_axis(key, value)}
    for key, listed in axes.items():
        if not listed:
            raise ValueError(f"{key}: an empty list; an axis has at least one value")
    return {key: value for key, value in values.items() if key not in axes}, axes


# Keys whose one value is a list.
LISTS = {"measure", "flow"} | {f"{edge}.{key}" for edge in ("edge", "edge.behind") for key in ("at", "class", "user")}


def is_axis(key: str, value: Any) -> bool:
    """Whether a value is a list, tuple, range, array or table column of values for the key.

    >>> is_axis("edge.buffer", ["4p", "8p"]), is_axis("edge.buffer", "4p"), is_axis("edge.regulator", {"kind": "wrd"})
    (True, False, False)
    >>> is_axis("measure", ["rtt_ms"]), is_axis("measure", [["rtt_ms"], []])
    (False, True)
    """
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping | np.generic):
        return False
    return key not in LISTS or all(isinstance(one, list | tuple) for one in value)


def swept(text: Source, axes: Mapping[str, Sequence[Any]]) -> Source:
    """The scenario with these axes added to its `[sweep]`; they replace axes of the same key."""
    if not axes:
        return text
    found = tables(text.text, text.name)
    own = found.pop("sweep", None)
    if own is None:
        # Appended, so that line numbers in messages stay correct.
        return replace(text, text=text.text.rstrip("\n") + "\n\n" + toml({"sweep": axes}))
    kept = {key: value for key, value in _dotted("", own).items() if key not in axes}
    return replace(text, text=toml({**found, "sweep": {**kept, **axes}}))


def unswept(text: Source) -> tuple[Source, bool]:
    """The scenario without its `[sweep]`, and whether it had one."""
    found = tables(text.text, text.name)
    had = found.pop("sweep", None) is not None
    return (replace(text, text=toml(found)) if had else text), had


def _dotted(path: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables as one dotted key per list, such as `edge.buffer`."""
    dotted: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{path}.{key}" if path else key
        dotted |= _dotted(name, value) if isinstance(value, Mapping) else {name: value}
    return dotted
