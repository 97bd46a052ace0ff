"""The same downloads in ackclock and in ns-2 (`make check-ns2`): Reno and SACK over nine hops and several buffers.

For each of them the means over seeds must agree: wire goodput within 2 %, timeouts within 20 % or 10 events an hour.
The mean of the signed differences of all cases must be within 0.15 %, as far as its standard error tells. Windows are
halved in whole segments, as the agents of ns-2 did when the sources were written, and exactly, as they do since 2006.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from math import inf, sqrt
from statistics import fmean, stdev

import worlds
from measure import Command, usage
from worlds import ITEMS, ackclock

HOUR = 3600.0
SENDERS = {"reno": "Reno", "sack1": "Sack1"}
HALVES = {"window": False, "exact-window": True}
MOST_BIAS = 0.15
LINE = "{:7} {:13} {:>4} {:>6} {:>8} {:>8} {:>6} {:>9} {:>6} {:>8}"


@dataclass(frozen=True)
class Case:
    """A sender over an item of table 1 with a buffer of so many packets."""

    sender: str
    halves: str
    item: int
    buffer: int

    def ours(self, seed: int) -> Command:
        """The run in ackclock."""
        sender = f'flow.sender={{ kind = "{self.sender}", halves = "{self.halves}" }}'
        sets = [*ITEMS[self.item].sets(), f"edge.buffer={self.buffer}p", sender]
        return ackclock("one-flow.toml", HOUR, sets, seed)

    def theirs(self, seed: int) -> Command:
        """The run in ns-2."""
        tcp, exact = SENDERS[self.sender], HALVES[self.halves]
        return worlds.ns2_one_flow(ITEMS[self.item], HOUR, tcp, self.buffer, seed, exact)


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
    options.add_argument("--halves", nargs="+", default=list(HALVES), choices=list(HALVES))
    options.add_argument("--jobs", type=int, default=2)
    given = options.parse_args()
    if not worlds.has_ns2():
        print("skipped: ns-2 is not installed (Debian: apt install ns2)")
        return 0
    cases = [Case(*case) for case in product(given.senders, given.halves, given.items, given.buffers)]
    seeds = range(1, given.seeds + 1)
    print(LINE.format("sender", "halves", "item", "buffer", "kbit/s", "ns-2", "%", "timeouts", "ns-2", "done"))
    with ThreadPoolExecutor(given.jobs) as pool:
        # A line as soon as it is there, because all of them take long.
        compared = zip(cases, pool.map(lambda case: compare(case, seeds), cases), strict=True)
        missed, apart = 0, []
        for done, (case, means) in enumerate(compared, 1):
            missed += show(case, *means, f"{done}/{len(cases)}")
            apart.append(difference(*means))
    print(f"{len(cases) - missed} of {len(cases)} cases agree over {given.seeds} seeds")
    return 1 if missed or biased(apart) else 0


def difference(ours: Outcome, theirs: Outcome) -> float:
    """By how much more our goodput is, percent."""
    return 100 * (ours.goodput_bps / theirs.goodput_bps - 1)


def biased(apart: Sequence[float]) -> bool:
    """Print the mean of the signed differences; whether it is more than chance makes of what is allowed."""
    mean, error = fmean(apart), stdev(apart) / sqrt(len(apart)) if len(apart) > 1 else inf
    print(f"mean of the signed differences {mean:+.3f} +- {error:.3f} %; at most {MOST_BIAS} % are allowed")
    return abs(mean) > MOST_BIAS + 2 * error


def compare(case: Case, seeds: Sequence[int]) -> tuple[Outcome, Outcome]:
    """Run a case in both."""
    ours = mean([outcome(case.ours(seed)) for seed in seeds])
    return ours, mean([outcome(case.theirs(seed)) for seed in seeds])


def outcome(command: Command) -> Outcome:
    """Read the result of a run: ours has a row for each flow, that of ns-2 is the row."""
    result = usage(command).result()
    flow = result["flows"][0] if "flows" in result else result
    return Outcome(flow["wire_goodput_bps"], flow["timeouts"])


def mean(outcomes: Sequence[Outcome]) -> Outcome:
    """The mean over seeds."""
    return Outcome(fmean(one.goodput_bps for one in outcomes), fmean(one.timeouts for one in outcomes))


def agree(ours: Outcome, theirs: Outcome) -> bool:
    """Goodput within 2 %, timeouts within 20 % or 10 events."""
    goodput = abs(ours.goodput_bps / theirs.goodput_bps - 1) <= 0.02
    apart = abs(ours.timeouts - theirs.timeouts)
    return goodput and (apart <= 10 or apart <= 0.2 * theirs.timeouts)


def show(case: Case, ours: Outcome, theirs: Outcome, done: str) -> bool:
    """Print the line of a case; whether it misses."""
    missed = not agree(ours, theirs)
    goodput = [f"{ours.goodput_bps / 1e3:.1f}", f"{theirs.goodput_bps / 1e3:.1f}"]
    goodput.append(f"{difference(ours, theirs):+.2f}")
    timeouts = [f"{ours.timeouts:.1f}", f"{theirs.timeouts:.1f}"]
    line = LINE.format(case.sender, case.halves, case.item, case.buffer, *goodput, *timeouts, done)
    print(f"{line} MISSED" if missed else line, flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
