"""The scoreboard: every regulator and queue discipline on every recording, compared with the bound.

    make scoreboard                                  # all of it: half an hour of two cores
    python benches/scoreboard.py --reduced           # a part of it: minutes

Recordings are those of scenarios/recordings, of the folder ACKCLOCK_SHARED where it is set, and of each `--recordings
FOLDER`; they are not copied. A run is named by its cell: discipline x sender x recording x wired path x load x start
offset. Runs are stored in out/scoreboard, by build, and not repeated, so that an interrupted scoreboard can continue.
The tables are written there as JSON and Markdown, with one HTML page.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import scoreboard_page
from never_worse import build
from standings import Bounds, beyond, standings

from ackclock import _core
from ackclock.models import bound
from ackclock.models.order_up_to import Ints
from ackclock.progress import bar

OUT = Path("out/scoreboard")
OURS = Path(__file__).resolve().parents[1] / "scenarios" / "recordings"
PATTERNS = ("mahimahi-3g-lte/*.down", "mahimahi-3g-lte/*.up", "norway-hsdpa-3g/*.json", "ghent-4g/*.json")

SENDERS = ("reno", "sack", "cubic", "bbr")
WIRES_MS = (1, 20, 50, 100)
# Downloads at once; `pages` are short flows beside one download.
LOADS = ("1", "4", "16", "pages")
STARTS, LONGEST_S = 3, 60
# A fast link needs less time for a number that is as narrow.
MOST_PACKETS = 100_000
# A page is a connection of this many bytes, requested some time after the previous one has arrived.
WORK = 'workload = { kind = "ftp", size = "60kB", interval = "e(3s)", interval_from = "end" }'
PAGE = f'\n[[flow]]\nuser = 1\nsender = "cubic"\n{WORK}\n'
# A proxy at the radio whose window follows reports, as docs/discussion/radio-feedback.md has it on a recording. Its
# buffer is longer than any wired path needs.
RELAY = (
    'buffer = "200p"\n\n[edge.report]\nevery = "1s"\ndelay = "150ms"\n\n'
    '[relay]\nbuffer = "4MB"\ncore = {{ delay = "0ms" }}\nsteering = {{ kind = "rnf", q_ref = "{q_ref}" }}'
)
PACKET_BITS = 12_000


@dataclass(frozen=True)
class Recording:
    """A recording with its length and its capacity in packets per slot of 1 ms."""

    name: str
    file: Path
    slots: Ints

    @classmethod
    def of(cls, file: Path) -> "Recording":
        """Read it."""
        return cls(file.name, file, bound.opportunities(file))

    @property
    def seconds(self) -> float:
        """Its length."""
        return len(self.slots) * bound.SLOT_S

    @property
    def second_p(self) -> int:
        """Packets of a second at the mean rate."""
        return max(1, round(float(self.slots.sum()) / self.seconds))

    def lasts_s(self, longest_s: float) -> float:
        """Length of a run over it."""
        return float(min(self.seconds, longest_s, max(1, MOST_PACKETS // self.second_p)))

    def packets(self, begin_s: float, lasts_s: float) -> int:
        """Its capacity from a start offset on; after its end it restarts."""
        first, last = round(begin_s / bound.SLOT_S), round((begin_s + lasts_s) / bound.SLOT_S)
        return int(self.slots.take(range(first, last), mode="wrap").sum())


@dataclass(frozen=True)
class Cell:
    """Settings of a run, apart from the recording's file."""

    discipline: str
    sender: str
    recording: str
    wire_ms: int
    load: str
    start: int


def disciplines(recording: Recording) -> dict[str, str]:
    """The tables of the edge by the name of the discipline; the regulators are those that this build has."""
    there = {one["name"] for one in json.loads(_core.list_components())["regulators"]}
    found = {f"drop-tail {buffer}": f'buffer = "{buffer}"' for buffer in ("20p", "50p", "200p", "1000p")}
    found["drop-tail 1 s"] = f'buffer = "{recording.second_p}p"'
    found |= {queue: f'buffer = "1000p"\nqueue = "{queue}"' for queue in ("codel", "fq-codel", "pie")}
    found |= {
        f"{name} {buffer}": f'buffer = "{buffer}"\nregulator = "{name}"'
        for name in ("ack-regulator", "wrs", "wrd", "wrb")
        for buffer in ("20p", "50p", "200p")
    }
    if "forecast" in there:
        # It keeps its own queue short, and needs places for the fastest second. Pages and download have one queue.
        found["forecast"] = 'buffer = "2000p"\nregulator = { kind = "forecast", scope = "queue" }'
        found["forecast short-first"] = found["forecast"] + '\nqueue = "short-first"'
    found |= {f"rnf {q_ref}": RELAY.format(q_ref=q_ref) for q_ref in ("6p", "12p", "20p")}
    return {name: f"[edge]\n{keys}" for name, keys in found.items()}


def main() -> int:
    """Run missing cells, and write the results."""
    given = options()
    folder = OUT / build()
    folder.mkdir(parents=True, exist_ok=True)
    recordings = [Recording.of(file) for file in files(given)]
    lines = list(measured(folder / "runs.jsonl", recordings, given))
    bounds = Bounds(OUT / "bounds")
    with bar("bounds") as progress:
        asked = list(product(recordings, given.wires))
        for number, (one, wire) in enumerate(asked):
            runs = bound.Downloads(one.lasts_s(given.longest), given.starts)
            bounds.learn(one.name, one.slots, wire, runs)
            if progress is not None:
                progress(number + 1, len(asked))
    found = standings(lines)
    (folder / "scoreboard.json").write_text(json.dumps([one.as_json() for one in found], indent=1) + "\n")
    page = scoreboard_page.Page(
        found, bounds, described(given, recordings), {one.name: one.second_p for one in recordings}
    )
    (folder / "scoreboard.md").write_text(page.markdown())
    (folder / "scoreboard.html").write_text(page.html())
    print(f"{len(lines)} runs; {folder}/scoreboard.html, .md and .json")
    for far in (wrong := list(beyond(found, bounds))):
        print(f"beyond the limit, so it is none: {far.discipline}, {', '.join(map(str, far.place))}", file=sys.stderr)
    return 1 if wrong else 0


def options() -> argparse.Namespace:
    """Command line options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    listed = partial(parser.add_argument, type=lambda text: text.split(","))
    parser.add_argument("--recordings", type=Path, action="append", default=[], help="a folder, beside the usual ones")
    listed("--only", default=[""], help="recordings with one of these in their name")
    listed("--senders", default=list(SENDERS))
    parser.add_argument("--wires", type=lambda text: [int(one) for one in text.split(",")], default=list(WIRES_MS))
    listed("--loads", default=list(LOADS))
    parser.add_argument("--starts", type=int, default=STARTS, help="places of a recording where runs begin")
    parser.add_argument("--longest", type=int, default=LONGEST_S, help="seconds of a run, at most")
    parser.add_argument("--reduced", action="store_true", help="only what a busy machine does in minutes")
    given = parser.parse_args()
    if given.reduced:
        given.only = ["synthetic-evdo-driving", "EVDO-driving.down", "LTE-driving-2016.down"]
        given.senders, given.starts = ["sack", "cubic", "bbr"], 3
    return given


def files(given: argparse.Namespace) -> list[Path]:
    """The selected recordings."""
    shared = Path(os.environ.get("ACKCLOCK_SHARED", "/nowhere"), "traces")
    if not shared.is_dir():
        print("ACKCLOCK_SHARED, the folder of public recordings, is not set: the synthetic ones stand for them")
    found = [*sorted(OURS.glob("*.down")), *(file for one in PATTERNS for file in sorted(shared.glob(one)))]
    found += [file for folder in given.recordings for file in sorted(folder.iterdir()) if file.is_file()]
    return [file for file in found if any(word in file.name for word in given.only)]


def described(given: argparse.Namespace, recordings: Sequence[Recording]) -> str:
    """Which part of the scoreboard this is."""
    return (
        f"{len(recordings)} recordings ({', '.join(one.name for one in recordings)}); senders "
        f"{', '.join(given.senders)}; wires of {', '.join(map(str, given.wires))} ms; loads {', '.join(given.loads)}; "
        f"{given.starts} places of each recording, runs of {given.longest} s and {MOST_PACKETS} packets at most."
    )


def measured(kept: Path, recordings: Sequence[Recording], given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One line per run; from disk if measured before."""
    known = {}
    for line in kept.read_text().splitlines() if kept.exists() else ():
        run = json.loads(line)
        known[Cell(**run["cell"]), run["lasts_s"]] = run
    batches = list(product(recordings, given.wires, given.loads))
    with bar("runs") as progress, kept.open("a") as file:
        for number, (recording, wire, load) in enumerate(batches):
            lasts = recording.lasts_s(given.longest)
            cells = list(batch(recording, wire, load, given))
            missing = [cell for cell in cells if (cell, lasts) not in known]
            for run in simulated(recording, missing, lasts, given.starts):
                known[Cell(**run["cell"]), lasts] = run
                file.write(json.dumps(run) + "\n")
            file.flush()
            yield from (known[cell, lasts] for cell in cells)
            if progress is not None:
                progress(number + 1, len(batches))


def batch(recording: Recording, wire: int, load: str, given: argparse.Namespace) -> Iterator[Cell]:
    """All cells of a recording, a wire and a load."""
    for discipline, sender, start in product(disciplines(recording), given.senders, range(given.starts)):
        yield Cell(discipline, sender, recording.name, wire, load, start)


def simulated(recording: Recording, cells: Sequence[Cell], lasts: float, starts: int) -> Iterator[dict[str, Any]]:
    """Run cells side by side."""
    texts = [scenario(recording, cell, cell.start / starts * recording.seconds, lasts) for cell in cells]
    for cell, (line,) in zip(cells, _core.run_many(texts), strict=True):
        begin = cell.start / starts * recording.seconds
        yield {"cell": asdict(cell), "lasts_s": lasts, **reached(json.loads(line), recording.packets(begin, lasts))}


def scenario(recording: Recording, cell: Cell, begin: float, lasts: float) -> str:
    """The scenario of a cell: a wired path, the recording as downlink, and an uplink of 10 Mbit/s."""
    count, beside = (1, PAGE + f'start = "{begin:.3f}s"\n') if cell.load == "pages" else (int(cell.load), "")
    return (
        f'version = 1\npreset = "linux"\nduration = "{begin + lasts:.3f}s"\nseed = {1 + cell.start}\n\n'
        f'[path]\ndelay = "{cell.wire_ms}ms"\n\n{disciplines(recording)[cell.discipline]}\n\n'
        f'[edge.down]\nkind = "trace"\nfile = "{recording.file.resolve()}"\naccounting = "ip"\n\n'
        f'[edge.up]\nrate = "10Mbit/s"\n\n'
        f'[[flow]]\nsender = "{cell.sender}"\ncount = {count}\nstart = "{begin:.3f}s"\n{beside}'
    )


def reached(run: dict[str, Any], packets: int) -> dict[str, Any]:
    """Results of a run; goodput with packet headers, as a share of the link's capacity."""
    rows = run["users"] or run["flows"]
    # 1448 of the 1500 bytes of a packet are payload where there are timestamps.
    sent = sum(one["delivered_bytes"] for one in rows) * 8 * 1500 / 1448
    pages = run["transfers"][0]["latency_ms"] if run.get("transfers") else {}
    return {
        "goodput": sent / (max(packets, 1) * PACKET_BITS),
        "p95_s": (run["bottleneck"]["queue_ms"]["p95"] or 0.0) / 1e3,
        "drops": run["bottleneck"]["drops"],
        "timeouts": sum(one["timeouts"] for one in rows),
        "jain": run["fairness"]["jain_flows"],
        "pages": run["transfers"][0]["count"] if run.get("transfers") else None,
        "page_p50_s": pages["p50"] / 1e3 if pages.get("p50") else None,
        "page_p95_s": pages["p95"] / 1e3 if pages.get("p95") else None,
    }


if __name__ == "__main__":
    sys.exit(main())
