"""What two worlds are compared by, and the tables that show it."""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from statistics import fmean, median
from typing import Any

from rich.table import Table

# What the project aims at, in per cent of goodput.
MEDIAN, WORST = 3.0, 10.0


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

    @property
    def kernel(self) -> Outcome:
        """The mean over the runs of the kernel."""
        return Outcome.mean(self.kernel_runs)

    @property
    def ours(self) -> Outcome:
        """The mean over the runs of the simulator."""
        return Outcome.mean(self.ours_runs)

    def difference(self, quantity: str) -> float:
        """Ours less the kernel's, in per cent of the kernel's; 0 where both are."""
        ours, kernel = getattr(self.ours, quantity), getattr(self.kernel, quantity)
        return 100 * (ours / kernel - 1) if kernel else (0.0 if ours == 0 else float("inf"))

    def words(self) -> list[str]:
        """A row of the table."""
        row = [*self.cell, self.sender]
        for quantity, (_, divisor, decimals) in zip(QUANTITIES, SHOWN, strict=True):
            numbers = [getattr(world, quantity) / divisor for world in (self.kernel, self.ours)]
            row += [f"{number:.{decimals}f}" for number in numbers]
            row.append(f"{self.difference(quantity):+.1f}")
        row[5:5] = [spread(self.kernel_runs)]
        row[7:7] = [spread(self.ours_runs)]
        return row


def spread(runs: Sequence[Outcome]) -> str:
    """Least and most goodput of several runs, in kbit/s."""
    rates = [run.goodput_bps / 1e3 for run in runs]
    return f"{min(rates):.0f}-{max(rates):.0f}"


HEADINGS = ["link", "buffer", "regulator", "sender", *(word for name, *_ in SHOWN for word in (name, "ours", "%"))]
HEADINGS[5:5] = ["runs"]
HEADINGS[7:7] = ["runs"]


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
    return "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n" + summary(pairs) + "\n"


def summary(pairs: Sequence[Pair]) -> str:
    """Median and worst of each quantity."""
    lines = []
    for quantity, (name, *_) in zip(QUANTITIES, SHOWN, strict=True):
        apart = sorted(((abs(pair.difference(quantity)), pair) for pair in pairs), key=lambda one: one[0])
        worst, where = apart[-1]
        cell = " ".join((*where.cell, where.sender))
        lines.append(f"{name}: median {median(a for a, _ in apart):.1f} %, worst {worst:.1f} % ({cell})")
    beyond = sum(abs(pair.difference("goodput_bps")) > WORST for pair in pairs)
    lines.append(
        f"goodput more than {WORST:g} % apart in {beyond} of {len(pairs)}; the aim is a median of {MEDIAN:g} %"
    )
    return "\n".join(lines)


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
