"""Comparison of two worlds: quantities, tables, and goals.

    python benches/agreement.py docs/lab/2026-11-agreement.md

prints for the table on a page the summary that `make agree` prints for its own table.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from math import comb
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rich.table import Table

# A link used by at least this share is full, whatever the sender.
FULL = 0.95
# If the kernel's own runs differ by more than this, in percent of their mean, there are several outcomes.
SEVERAL = 5.0


@dataclass(frozen=True)
class Outcome:
    """One run, or the mean of several: goodput, percentiles of queueing delay, retransmissions per second."""

    goodput_bps: float
    queue_p50_ms: float
    queue_p95_ms: float
    retransmits_per_s: float

    @classmethod
    def mean(cls, outcomes: Sequence["Outcome"]) -> "Outcome":
        """The mean of each."""
        return cls(*(fmean(values) for values in zip(*map(astuple, outcomes), strict=True)))


def difference(ours: Outcome, kernel: Outcome, quantity: str) -> float:
    """Simulated minus kernel, in percent of the kernel's; 0 if both are 0."""
    simulated, real = getattr(ours, quantity), getattr(kernel, quantity)
    return 100 * (simulated / real - 1) if real else (0.0 if simulated == 0 else float("inf"))


QUANTITIES = [field.name for field in fields(Outcome)]
# Heading, divisor and decimals of each quantity.
SHOWN = [("kbit/s", 1e3, 0), ("p50 ms", 1, 0), ("p95 ms", 1, 0), ("again/s", 1, 2)]
CELL = ["kind", "link", "buffer", "edge", "sends", "sender"]
HEADINGS = [
    *CELL,
    *("link kbit/s", "kbit/s", "runs", "ours", "runs", "%"),
    *(word for name, *_ in SHOWN[1:] for word in (name, "ours", "%")),
]


@dataclass(frozen=True)
class Pair:
    """One cell in both worlds."""

    # Words for the columns of `CELL`.
    cell: tuple[str, ...]
    kernel_runs: Sequence[Outcome]
    ours_runs: Sequence[Outcome]
    # Capacity of the link during the download, payload.
    capacity_bps: float

    @property
    def kernel(self) -> Outcome:
        """The mean over the runs of the kernel."""
        return Outcome.mean(self.kernel_runs)

    @property
    def ours(self) -> Outcome:
        """The mean over the runs of the simulator."""
        return Outcome.mean(self.ours_runs)

    def difference(self, quantity: str) -> float:
        """Simulated minus kernel, in percent of the kernel's."""
        return difference(self.ours, self.kernel, quantity)

    def words(self) -> list[str]:
        """A row of the table."""
        row = [*self.cell, f"{self.capacity_bps / 1e3:.0f}"]
        for quantity, (_, divisor, decimals) in zip(QUANTITIES, SHOWN, strict=True):
            for world, runs in ((self.kernel, self.kernel_runs), (self.ours, self.ours_runs)):
                row.append(f"{getattr(world, quantity) / divisor:.{decimals}f}")
                row += [spread(runs)] if quantity == QUANTITIES[0] else []
            row.append(f"{self.difference(quantity):+.1f}")
        return row


def spread(runs: Sequence[Outcome]) -> str:
    """Minimum and maximum goodput of several runs, kbit/s."""
    rates = [run.goodput_bps / 1e3 for run in runs]
    return f"{min(rates):.0f}-{max(rates):.0f}"


def table(pairs: Sequence[Pair]) -> Table:
    """For a terminal."""
    shown = Table(*HEADINGS)
    for pair in pairs:
        wide = abs(pair.difference("goodput_bps")) > WORST
        shown.add_row(*pair.words(), style="bold" if wide else "")
    return shown


def markdown(pairs: Sequence[Pair]) -> str:
    """For a page."""
    rows = [pair.words() for pair in pairs]
    heads = [HEADINGS, ["---"] * len(CELL) + ["---:"] * (len(HEADINGS) - len(CELL))]
    return lines_of([*heads, *rows]) + "\n" + judgement(rows)


def lines_of(rows: Sequence[Sequence[str]]) -> str:
    """Rows in Markdown."""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    kind: str
    cell: str
    # What is sent.
    sends: str
    link: float
    kernel: float
    least: float
    most: float
    ours: float
    # By the names of the quantities, in per cent.
    apart: dict[str, float]

    @classmethod
    def read(cls, words: Sequence[str]) -> "Row":
        """From its words."""
        cell, (link, kernel, kernel_runs, ours, *rest) = words[: len(CELL)], words[len(CELL) :]
        least, most = map(float, kernel_runs.split("-"))
        # Behind the runs of ours come the difference and, of each further quantity, both worlds and the difference.
        apart = {name: float(percent) for (name, *_), percent in zip(SHOWN, rest[1::3], strict=True)}
        return cls(
            cell[0],
            " ".join(cell),
            cell[CELL.index("sends")],
            float(link),
            float(kernel),
            least,
            most,
            float(ours),
            apart,
        )

    def fills(self) -> bool:
        """Whether the link is full in both worlds."""
        return min(self.kernel, self.ours) >= FULL * self.link


def rows_of(page: str) -> Iterator[list[str]]:
    """The rows of the table of a page."""
    cells = ([word.strip() for word in line.strip("| ").split("|")] for line in page.splitlines())
    return (row for row in cells if len(row) == len(HEADINGS) and row != HEADINGS and not row[0].startswith("---"))


@dataclass(frozen=True)
class Value:
    """Result of a goal: number, text, and cell."""

    number: float
    words: str


@dataclass(frozen=True)
class Goal:
    """A goal of the project."""

    words: str
    value: Callable[[Sequence[Row]], Value]
    reached: Callable[[float], bool]


def middle(quantity: str) -> Callable[[Sequence[Row]], Value]:
    """Median of the absolute differences."""

    def value(rows: Sequence[Row]) -> Value:
        size = median(abs(row.apart[quantity]) for row in rows)
        return Value(size, f"{size:.1f} %")

    return value


def worst(quantity: str) -> Callable[[Sequence[Row]], Value]:
    """Largest absolute difference, and its cell."""

    def value(rows: Sequence[Row]) -> Value:
        row = max(rows, key=lambda row: abs(row.apart[quantity]))
        size = abs(row.apart[quantity])
        return Value(size, f"{size:.1f} % ({row.cell})")

    return value


def bias(quantity: str) -> Callable[[Sequence[Row]], Value]:
    """p-value of the sign test."""

    def value(rows: Sequence[Row]) -> Value:
        more, less = (sum(sign * row.apart[quantity] > 0 for row in rows) for sign in (1, -1))
        chance = 100 * sign_test(more, less)
        return Value(chance, f"{chance:.1f} % (more in {more}, less in {less} of {len(rows)})")

    return value


def sign_test(more: int, less: int) -> float:
    """Two-sided sign test: probability of at least this imbalance by chance; ties are ignored."""
    count = more + less
    tail: float = sum(comb(count, few) for few in range(min(more, less) + 1)) / 2**count
    return min(1.0, 2 * tail)


def at_most(quantity: str, words: str, limit: float, of: Callable[[str], Callable[[Sequence[Row]], Value]]) -> Goal:
    """A difference must be at most this large, in percent."""
    return Goal(f"{words} at most {limit:g} %", of(quantity), lambda number: number <= limit)


def unbiased(quantity: str, words: str) -> Goal:
    """Neither world has significantly more, by the sign test."""
    return Goal(f"{words}: sign test above 5 %", bias(quantity), lambda number: number > 5)


MEDIAN, WORST = 1.0, 5.0
GOALS = [
    at_most("kbit/s", "goodput apart in the median by", MEDIAN, middle),
    at_most("kbit/s", "goodput apart at worst by", WORST, worst),
    at_most("p95 ms", "95th percentile of the queue apart in the median by", 5, middle),
    at_most("again/s", "retransmissions apart in the median by", 20, middle),
    unbiased("kbit/s", "no bias in goodput"),
    unbiased("p95 ms", "no bias in the 95th percentile of the queue"),
    unbiased("again/s", "no bias in retransmissions"),
]
DRAWN = "drawn"


def judgement(shown: Sequence[Sequence[str]]) -> str:
    """Goals over all and over drawn cells, medians by kind, and the roles of full links and chance."""
    rows = [Row.read(words) for words in shown]
    groups = {f"all {len(rows)}": rows}
    some = [row for row in rows if row.kind == DRAWN]
    if 0 < len(some) < len(rows):
        groups[f"the {len(some)} drawn"] = some
    heads = ["goal", *(word for name in groups for word in (name, "reached"))]
    goals = [[goal.words, *(word for group in groups.values() for word in judged(goal, group))] for goal in GOALS]
    said = lines_of([heads, ["---"] * len(heads), *goals])
    return f"{said}\n{by_kind(rows)}\n{remarks(rows)}"


def judged(goal: Goal, rows: Sequence[Row]) -> tuple[str, str]:
    """The value, and whether the goal is reached."""
    value = goal.value(rows)
    return value.words, "yes" if goal.reached(value.number) else "no"


def by_kind(rows: Sequence[Row]) -> str:
    """Medians of each kind of cells."""
    heads = ["kind", "cells", "goodput, median", "worst", "p95, median", "retransmissions, median", "more", "less"]
    body = []
    for kind in dict.fromkeys(row.kind for row in rows):
        some = [row for row in rows if row.kind == kind]
        sides = [str(sum(sign * row.apart["kbit/s"] > 0 for row in some)) for sign in (1, -1)]
        medians = [middle(name)(some).words for name in ("kbit/s", "p95 ms", "again/s")]
        body.append([kind, str(len(some)), medians[0], worst("kbit/s")(some).words, *medians[1:], *sides])
    return lines_of([heads, ["---"] * len(heads), *body])


def remarks(rows: Sequence[Row]) -> str:
    """Goodput on links that are not full, and compared with the scatter of the kernel's own runs."""
    lines = []
    if open_links := [row for row in rows if not row.fills()]:
        where = f"in the {len(open_links)} of {len(rows)} where the link is not full in both worlds"
        values = (of("kbit/s")(open_links).words for of in (middle, worst))
        lines.append(f"goodput {where} ({100 * FULL:.0f} %): median {', worst '.join(values)}")
        lines += limited_by(open_links)
    above, below = sum(row.ours > row.most for row in rows), sum(row.ours < row.least for row in rows)
    lines.append(
        f"goodput outside the range of the kernel's own runs in {above + below} of {len(rows)}, above it in {above}"
    )
    if several := [row for row in rows if row.most - row.least > SEVERAL / 100 * row.kernel]:
        inside = sum(row.least <= row.ours <= row.most for row in several)
        wide = f"where it is wider than {SEVERAL:.0f} % of the mean"
        lines.append(f"goodput within that range in {inside} of the {len(several)} {wide}")
    return "".join(f"- {line}\n" for line in lines)


BULK = "bulk"


def limited_by(rows: Sequence[Row]) -> Iterator[str]:
    """Goodput on links that are not full, by the sender's limit: its congestion window, or its program."""
    for words, some in (
        ("that send without end", [row for row in rows if row.sends == BULK]),
        ("that a program limits", [row for row in rows if row.sends != BULK]),
    ):
        if some:
            beyond = sum(abs(row.apart["kbit/s"]) > MEDIAN for row in some)
            size = middle("kbit/s")(some).words
            yield f"goodput in the {len(some)} of these {words}: median {size}, beyond {MEDIAN:g} % in {beyond}"


def first_measured(lines: Iterable[str]) -> str:
    """Number of drawn sets with a cell beyond the goal in the build that measured them first, from JSON lines."""
    first: dict[str, tuple[str, list[float]]] = {}
    for record in map(json.loads, lines):
        build, sizes = first.setdefault(record["drawn_from"], (record["built_from"], []))
        if record["built_from"] == build:
            sizes.append(abs(record["difference_percent"]["goodput_bps"]))
    beyond = sum(max(sizes) > WORST for _, sizes in first.values())
    return f"- a cell beyond {WORST:g} % when first measured: {beyond} of the {len(first)} drawn sets\n"


# Markers around measured results on a page.
BEGIN, END = "<!-- measured by make agree -->\n", "<!-- end of what was measured -->\n"


def put(page: str, shown: str) -> str:
    """A page with its measured results replaced."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{shown}\n{END}{after}"


def plain(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """For programs."""
    return [
        {
            **dict(zip(CELL, pair.cell, strict=True)),
            "kernel": [asdict(run) for run in pair.kernel_runs],
            "simulated": [asdict(run) for run in pair.ours_runs],
            "difference_percent": differences(pair),
        }
        for pair in pairs
    ]


def line(pair: Pair) -> dict[str, Any]:
    """One cell in few words: the means of both worlds, how many runs each had, and least and most goodput."""
    worlds = {"kernel": (pair.kernel, pair.kernel_runs), "ours": (pair.ours, pair.ours_runs)}
    return {
        "cell": dict(zip(CELL, pair.cell, strict=True)),
        "capacity_bps": round(pair.capacity_bps),
        **{
            name: {key: round(value, 3) for key, value in asdict(mean).items()}
            | {"runs": len(runs), "kbps": spread(runs)}
            for name, (mean, runs) in worlds.items()
        },
        "difference_percent": differences(pair),
    }


def differences(pair: Pair) -> dict[str, float | None]:
    """Differences by quantity, in percent; None if the kernel has 0 and the simulator does not."""
    sizes = {quantity: pair.difference(quantity) for quantity in QUANTITIES}
    return {name: None if size == float("inf") else round(size, 2) for name, size in sizes.items()}


if __name__ == "__main__":
    print(judgement(list(rows_of(Path(sys.argv[1]).read_text()))), end="")
    print(first_measured(Path(__file__).with_name("drawn.jsonl").read_text().splitlines()), end="")
