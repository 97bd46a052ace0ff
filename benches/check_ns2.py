"""The same downloads in ackclock and in ns-2 (`make check-ns2`): Reno and SACK over nine hops and several buffers.

For each of them the means over seeds must agree: wire goodput within 2 %, timeouts within 20 % or 10 events an hour.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from statistics import fmean

import worlds
from measure import Command, usage
from rich.console import Console
from rich.table import Table
from worlds import ITEMS, ackclock

HOUR = 3600.0
SENDERS = {"reno": "Reno", "sack1": "Sack1"}


@dataclass(frozen=True)
class Case:
    """A sender over an item of table 1 with a buffer of so many packets."""

    sender: str
    item: int
    buffer: int

    def ours(self, seed: int) -> Command:
        """The run in ackclock."""
        sets = [*ITEMS[self.item].sets(), f"edge.buffer={self.buffer}p", f"flow.sender={self.sender}"]
        return ackclock("one-flow.toml", HOUR, sets, seed)

    def theirs(self, seed: int) -> Command:
        """The run in ns-2."""
        return worlds.ns2_one_flow(ITEMS[self.item], HOUR, SENDERS[self.sender], self.buffer, seed)


@dataclass(frozen=True)
class Outcome:
    """Means over the seeds."""

    goodput_bps: float
    timeouts: float


def main() -> int:
    """Run both, compare, and say how many cases miss."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--items", type=int, nargs="+", default=list(ITEMS), choices=list(ITEMS))
    options.add_argument("--buffers", type=int, nargs="+", default=[4, 6, 8, 10, 12, 16, 20])
    options.add_argument("--senders", nargs="+", default=list(SENDERS), choices=list(SENDERS))
    options.add_argument("--jobs", type=int, default=2)
    given = options.parse_args()
    if not worlds.has_ns2():
        print("skipped: ns-2 is not installed (Debian: apt install ns2)")
        return 0
    cases = [Case(*case) for case in product(given.senders, given.items, given.buffers)]
    seeds = range(1, given.seeds + 1)
    with ThreadPoolExecutor(given.jobs) as pool:
        ours = list(pool.map(lambda case: mean([ours_of(case.ours(seed)) for seed in seeds]), cases))
        theirs = list(pool.map(lambda case: mean([theirs_of(case.theirs(seed)) for seed in seeds]), cases))
    missed = show(cases, ours, theirs)
    print(f"{len(cases) - missed} of {len(cases)} cases agree over {given.seeds} seeds")
    return 1 if missed else 0


def ours_of(command: Command) -> Outcome:
    """Read the result of ackclock."""
    flow = usage(command).result()["flows"][0]
    return Outcome(flow["wire_goodput_bps"], flow["timeouts"])


def theirs_of(command: Command) -> Outcome:
    """Read the result of ns-2."""
    flow = usage(command).result()
    return Outcome(flow["wire_goodput_bps"], flow["timeouts"])


def mean(outcomes: Sequence[Outcome]) -> Outcome:
    """The mean over seeds."""
    return Outcome(fmean(one.goodput_bps for one in outcomes), fmean(one.timeouts for one in outcomes))


def agree(ours: Outcome, theirs: Outcome) -> bool:
    """Goodput within 2 %, timeouts within 20 % or 10 events."""
    goodput = abs(ours.goodput_bps / theirs.goodput_bps - 1) <= 0.02
    apart = abs(ours.timeouts - theirs.timeouts)
    return goodput and (apart <= 10 or apart <= 0.2 * theirs.timeouts)


def show(cases: Sequence[Case], ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> int:
    """Print the table and count the misses."""
    table = Table("sender", "item", "buffer", "kbit/s", "ns-2", "%", "timeouts", "ns-2", "")
    missed = 0
    for case, our, their in zip(cases, ours, theirs, strict=True):
        fine = agree(our, their)
        missed += not fine
        goodput = [f"{our.goodput_bps / 1e3:.1f}", f"{their.goodput_bps / 1e3:.1f}"]
        goodput.append(f"{100 * (our.goodput_bps / their.goodput_bps - 1):+.2f}")
        timeouts = [f"{our.timeouts:.1f}", f"{their.timeouts:.1f}"]
        table.add_row(case.sender, str(case.item), str(case.buffer), *goodput, *timeouts, "" if fine else "MISSED")
    Console(width=100).print(table)
    return missed


if __name__ == "__main__":
    sys.exit(main())
