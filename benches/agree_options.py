"""Effect of each option of the preset `linux` on the agreement of the worlds (`make agree-options`).

Each is disabled alone, for simulated senders over the cells of `make agree`, whose kernel runs are read from
out/agree.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from statistics import median

import agree
from agree import Job, Worlds
from agreement import Outcome, difference
from cells import SENDERS, Cell, Sender
from rich.progress import track

# Kernel runs per cell and sender, and simulated runs for each of them.
RUNS, STARTS = 3, 4


@dataclass(frozen=True)
class Option:
    """One or several options with their values without the preset: of the sender, and of the flow."""

    names: str
    what: str
    sender: Mapping[str, object] = field(default_factory=dict)
    flow: Mapping[str, object] = field(default_factory=dict)


OPTIONS = [
    Option("all on", ""),
    Option(
        '`stack = "linux"`',
        "all but what the flow says: RACK-TLP, F-RTO, counted duplicates without SACK, and the rows below",
        {"stack": "rfc", "timestamps": "on"},
    ),
    Option("`prr`", "a reduction is spread over the recovery", {"prr": "off"}),
    Option('`growth = "bytes"`', "delayed ACKs do not halve the growth", {"growth": "acks"}),
    Option('`halves = "cwnd"`', "the window is reduced, not what is in flight", {"halves": "flight"}),
    Option(
        '`rto.bounds = "variation"`', "the timeout is at least 200 ms *above* the mean", {"rto": {"bounds": "timeout"}}
    ),
    Option("`undo`, `response`", "a reduction that timestamps prove spurious is taken back", {"undo": "none"}),
    Option('`cubic.hystart = "classic"`', "hybrid slow start, after every timeout too", {"cubic": {"hystart": "off"}}),
    Option(
        "`bbr.aggregation`, `pacing_margin`, `even_window`",
        "room for bundled ACKs, 1 % below the estimate, even windows",
        {"bbr": {"aggregation": "off", "pacing_margin": 0.0, "even_window": "off"}},
    ),
    Option('`bbr.losses = "linux"`', "each loss is subtracted from the window", {"bbr": {"losses": "draft"}}),
    Option("`bbr.policer`", "the search for a policer (long-term sampling)", {"bbr": {"policer": "off"}}),
    Option("`bbr.bursts`", "pacing makes up for half of what it missed", {"bbr": {"bursts": "off"}}),
    Option(
        '`receive_window = "tuned"`',
        "the window begins at 64 KiB and grows with what arrives in order",
        flow={"receive_window": "whole"},
    ),
    Option(
        "`acks.quick`",
        "single ACKs at the beginning, after a silence, after repeated data, and where the window grows",
        flow={"acks.quick": 0},
    ),
]


def main() -> int:
    """Simulate without each option, and write the table."""
    parser = agree.argument_parser(__doc__)
    parser.set_defaults(kinds=["bulk"])
    given = parser.parse_args()
    cells = agree.usable(agree.fixed(given))
    senders = [sender for sender in SENDERS if any(cell.sender == sender for cell in cells)]
    worlds = Worlds(given.out, cells)
    jobs = [Job(cell, 1 + run) for cell in cells for run in range(RUNS)]
    if missing := [job for job in jobs if not worlds.kept(job).exists()]:
        print(f"{len(missing)} runs of the kernel are missing in {given.out}: `make agree` makes them", file=sys.stderr)
        return 2
    rows = [row(worlds, option, cells, senders) for option in track(OPTIONS, "Options", transient=True)]
    heading = ["option", "what it does", "median", *(sender.ours for sender in senders)]
    table = [heading, ["---", "---", *["---:"] * (1 + len(senders))], *rows]
    page = "".join(f"| {' | '.join(words)} |\n" for words in table)
    print(page, end="")
    (given.out / "options.md").write_text(page)
    return 0


# Senders that use an option, of options that not all use.
WINDOWED = ("newreno", "sack", "cubic")
ONLY_OF = {"cubic": ("cubic",), "bbr": ("bbr",), "prr": WINDOWED, "growth": WINDOWED}


def row(worlds: Worlds, option: Option, cells: list[Cell], senders: list[Sender]) -> list[str]:
    """The median difference in goodput without an option, and the worst one of each sender."""
    differences = {
        sender: list(apart(worlds, option, [cell for cell in cells if cell.sender == sender])) for sender in senders
    }
    middle = median(abs(one) for many in differences.values() for one in many)
    worst = (max(many, key=abs) for many in differences.values())
    return [option.names, option.what, f"{middle:.1f} %", *(f"{one:+.0f} %" for one in worst)]


def apart(worlds: Worlds, option: Option, cells: list[Cell]) -> Iterator[float]:
    """Difference in goodput without an option in each cell, in percent of the kernel's."""
    flow = {f"flow.{key}": inline(value) for key, value in option.flow.items()}
    for cell in cells:
        kind = cell.sender.ours
        used = {key: value for key, value in option.sender.items() if kind in ONLY_OF.get(key, (kind,))}
        sets = {"flow.sender": inline({"kind": kind, "ecn": cell.ecn, **used}), **flow}
        jobs = [Job(cell, 1 + run) for run in range(RUNS)]
        real = [worlds.real(job) for job in jobs]
        with ThreadPoolExecutor() as pool:
            simulate = partial(worlds.simulated, starts=STARTS, sets=sets)
            ours = [one for many in pool.map(simulate, jobs, real) for one in many]
        kernel, simulated = (Outcome.mean([agree.outcome(one, cell) for one in world]) for world in (real, ours))
        yield difference(simulated, kernel, "goodput_bps")


def inline(value: object) -> str:
    """A value as one line of TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {inline(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


if __name__ == "__main__":
    sys.exit(main())
