"""What two worlds are compared by, the tables that show it, and what is said of them.

    python benches/agreement.py docs/discussion/agreement.md

says of the table on a page what `make agree` says below the one that it measured, both from the numbers as they stand
there.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rich.table import Table

# What the project aims at, in per cent of goodput.
MEDIAN, WORST = 3.0, 10.0
# A link of which so much is used carries what it can, whoever sends.
FULL = 0.95


@dataclass(frozen=True)
class Outcome:
    """One run, or the mean of several: goodput, percentiles of the queue delay, retransmissions a second."""

    goodput_bps: float
    queue_p50_ms: float
    queue_p95_ms: float
    retransmits_per_s: float

    @classmethod
    def mean(cls, outcomes: Sequence["Outcome"]) -> "Outcome":
        """The mean of each."""
        return cls(*(fmean(values) for values in zip(*map(astuple, outcomes), strict=True)))


def difference(ours: Outcome, kernel: Outcome, quantity: str) -> float:
    """Ours less the kernel's, in per cent of the kernel's; 0 where both are."""
    simulated, real = getattr(ours, quantity), getattr(kernel, quantity)
    return 100 * (simulated / real - 1) if real else (0.0 if simulated == 0 else float("inf"))


QUANTITIES = [field.name for field in fields(Outcome)]
# Heading, divisor and decimals of each quantity.
SHOWN = [("kbit/s", 1e3, 0), ("p50 ms", 1, 0), ("p95 ms", 1, 0), ("again/s", 1, 2)]


@dataclass(frozen=True)
class Pair:
    """One sender over one cell, in both worlds."""

    cell: tuple[str, str, str]
    sender: str
    kernel_runs: Sequence[Outcome]
    ours_runs: Sequence[Outcome]
    # Payload that the link could have carried while the download ran.
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
        """Ours less the kernel's, in per cent of the kernel's."""
        return difference(self.ours, self.kernel, quantity)

    def words(self) -> list[str]:
        """A row of the table."""
        row = [*self.cell, self.sender]
        for quantity, (_, divisor, decimals) in zip(QUANTITIES, SHOWN, strict=True):
            numbers = [getattr(world, quantity) / divisor for world in (self.kernel, self.ours)]
            row += [f"{number:.{decimals}f}" for number in numbers]
            row.append(f"{self.difference(quantity):+.1f}")
        row[5:5] = [spread(self.kernel_runs)]
        row[7:7] = [spread(self.ours_runs)]
        row[4:4] = [f"{self.capacity_bps / 1e3:.0f}"]
        return row


def spread(runs: Sequence[Outcome]) -> str:
    """Least and most goodput of several runs, in kbit/s."""
    rates = [run.goodput_bps / 1e3 for run in runs]
    return f"{min(rates):.0f}-{max(rates):.0f}"


HEADINGS = ["link", "buffer", "regulator", "sender", *(word for name, *_ in SHOWN for word in (name, "ours", "%"))]
HEADINGS[5:5] = ["runs"]
HEADINGS[7:7] = ["runs"]
HEADINGS[4:4] = ["link kbit/s"]


def table(pairs: Sequence[Pair]) -> Table:
    """For a terminal."""
    shown = Table(*HEADINGS)
    for pair in pairs:
        wide = abs(pair.difference("goodput_bps")) > WORST
        shown.add_row(*pair.words(), style="bold" if wide else "")
    return shown


def markdown(pairs: Sequence[Pair]) -> str:
    """For a page."""
    rows = [HEADINGS, ["---"] * 4 + ["---:"] * (len(HEADINGS) - 4), *(pair.words() for pair in pairs)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n" + summary(rows[2:])


@dataclass(frozen=True)
class Row:
    """A row of the table, as it is shown."""

    cell: str
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
        least, most = map(float, words[6].split("-"))
        apart = {name: float(words[at]) for (name, *_), at in zip(SHOWN, (9, 12, 15, 18), strict=True)}
        return cls(" ".join(words[:4]), float(words[4]), float(words[5]), least, most, float(words[7]), apart)

    def fills(self) -> bool:
        """Whether the link is full in both worlds."""
        return min(self.kernel, self.ours) >= FULL * self.link


def rows_of(page: str) -> Iterator[list[str]]:
    """The rows of the table of a page."""
    cells = ([word.strip() for word in line.strip("| ").split("|")] for line in page.splitlines())
    return (row for row in cells if len(row) == len(HEADINGS) and row != HEADINGS and not row[0].startswith("---"))


def summary(shown: Sequence[Sequence[str]]) -> str:
    """Median, worst and bias of each quantity, as a list; goodput also where the link is not full."""
    rows = [Row.read(words) for words in shown]
    lines = [f"{name}: {middle(rows, name)}; ours is {bias(rows, name)}" for name, *_ in SHOWN]
    open_links = [row for row in rows if not row.fills()]
    if open_links:
        where = f"in the {len(open_links)} of {len(rows)} where the link is not full in both worlds"
        lines.append(f"goodput {where} ({100 * FULL:.0f} %): {middle(open_links, SHOWN[0][0])}")
    above, below = sum(row.ours > row.most for row in rows), sum(row.ours < row.least for row in rows)
    lines.append(
        f"goodput outside the range of the kernel's own runs in {above + below} of {len(rows)}, above it in {above}"
    )
    beyond = sum(abs(row.apart[SHOWN[0][0]]) > WORST for row in rows)
    lines.append(f"goodput more than {WORST:g} % apart in {beyond} of {len(rows)}; the aim is a median of {MEDIAN:g} %")
    return "".join(f"- {line}\n" for line in lines)


def middle(rows: Sequence[Row], quantity: str) -> str:
    """How far apart the worlds are, in the median and at worst."""
    worst = max(rows, key=lambda row: abs(row.apart[quantity]))
    size = median(abs(row.apart[quantity]) for row in rows)
    return f"median {size:.1f} %, worst {abs(worst.apart[quantity]):.1f} % ({worst.cell})"


def bias(rows: Sequence[Row], quantity: str) -> str:
    """To which side the worlds are apart."""
    more, less = (sum(sign * row.apart[quantity] > 0 for row in rows) for sign in (1, -1))
    return f"more in {more} of {len(rows)} and less in {less}"


def plain(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """For programs."""
    return [
        {
            **dict(zip(("link", "buffer", "regulator"), pair.cell, strict=True)),
            "sender": pair.sender,
            "kernel": [asdict(run) for run in pair.kernel_runs],
            "simulated": [asdict(run) for run in pair.ours_runs],
            "difference_percent": {quantity: pair.difference(quantity) for quantity in QUANTITIES},
        }
        for pair in pairs
    ]


if __name__ == "__main__":
    print(summary(list(rows_of(Path(sys.argv[1]).read_text()))), end="")
