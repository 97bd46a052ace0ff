"""Results of models: named numbers for terminal and JSON, and a plot."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = Mapping[str, Any]
FEWEST_PLAIN, MOST_PLAIN = 1e-4, 1e7  # numbers in between are printed without exponent


@dataclass(frozen=True)
class Answer:
    """Result of a model.

    Attributes:
        values: Numbers, words and lists of rows by name, as printed by `--json`; a name ends with its unit.
        said: The result in words; without it the terminal shows the values one below the other.
        draw: Plots it.
    """

    values: Values
    said: str = ""
    draw: "Callable[[], Figure] | None" = None

    def text(self) -> str:
        """Text for the terminal: words or values, then each list of rows as a table."""
        single = {name: value for name, value in self.values.items() if not _is_table(value)}
        parts = [self.said or _beside(single)]
        parts += [f"{_worded(name)}\n{_table(rows)}" for name, rows in self.values.items() if _is_table(rows)]
        return "\n\n".join(filter(None, parts))

    def as_json(self) -> Values:
        """The values, with undefined numbers as null."""
        known = known_numbers(dict(self.values))
        assert isinstance(known, dict)
        return known


def throughput(packets_per_second: float, draw: "Callable[[], Figure] | None" = None) -> Answer:
    """Result of a throughput model."""
    kbps = 8 * packets_per_second
    return Answer(
        {"packets_per_s": packets_per_second, "kbps_at_1000_bytes": kbps},
        f"{packets_per_second:.4g} packets/s, {kbps:.4g} kbit/s at 1000 bytes a packet",
        draw,
    )


def curve(
    x: Sequence[float], y: Callable[[float], float], at: float, xlabel: str, ylabel: str, log: bool = False
) -> "Figure":
    """Plot of a function over its argument, with the requested point."""
    from ackclock import plot

    with plot.panel(xlabel, ylabel) as (figure, axes):
        axes.plot(x, [y(one) for one in x], color=plot.COLOURS[0])
        axes.plot([at], [y(at)], "o", color=plot.COLOURS[1])
        if log:
            axes.set(xscale="log", yscale="log")
        else:
            axes.set_ylim(0, None)
    return figure


def around(value: float, factor: float, points: int = 120) -> list[float]:
    """Values at equal ratios from `value` / `factor` to `value` * `factor`."""
    return [value * factor ** (2 * i / (points - 1) - 1) for i in range(points)]


def known_numbers(value: Any) -> Any:
    """A value for JSON: numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {key: known_numbers(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [known_numbers(one) for one in value]
    if isinstance(value, bool | str | int) or value is None:
        return value
    return float(value) if math.isfinite(value) else None


def _is_table(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) > 0 and isinstance(value[0], Mapping)


def _worded(name: str) -> str:
    return name.replace("_", " ")


def _beside(values: Values) -> str:
    width = max((len(name) for name in values), default=0)
    return "\n".join(f"{_worded(name):{width}}  {_cell(value)}" for name, value in values.items())


def _table(rows: Sequence[Values]) -> str:
    heads = [_worded(name) for name in rows[0]]
    cells = [[_cell(row[name]) for name in rows[0]] for row in rows]
    widths = [max(len(line[i]) for line in [heads, *cells]) for i in range(len(heads))]
    lines = [heads, ["-" * width for width in widths], *cells]
    return "\n".join("  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines)


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    if isinstance(value, str | int):
        return str(value)
    size = abs(value)
    if size == 0 or FEWEST_PLAIN <= size < MOST_PLAIN:
        return f"{value:.4g}" if size < 1000 else f"{value:.1f}".removesuffix(".0")
    return f"{value:.4g}"
