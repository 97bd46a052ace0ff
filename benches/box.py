"""A box that only observes, with other traffic, and compared with an adaptive shaper.

    python benches/box.py

Recordings are EV-DO and LTE of the folder ACKCLOCK_SHARED where it is set, and the synthetic recording. Each number is
the mean of three runs of 120 s at three start offsets of the recording. The tables go to out/box.md;
docs/how-to/box.md and docs/lab/2026-11-box.md have them.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from regulators import printed
from scoreboard import OURS, PACKET_BITS, Recording

OUT = Path("out/box.md")
PLACES, LASTS_S, WIRE_MS, RADIO_MS = 3, 120, 10, 20
CUBIC = 'sender = "cubic"\n'
# One small answer every 250 ms over a persistent connection: the response time of a user during a download.
REQUESTS = (
    'sender = "cubic"\nworkload = { kind = "ftp", size = "64B", interval = "250ms", connection_per = "client" }\n'
)
UP = f'kind = "constant"\nrate = "1Mbit/s"\ndelay = "{RADIO_MS}ms"\n'


@dataclass(frozen=True)
class Traffic:
    """Traffic, and the uplink.

    Attributes:
        flows: The tables of its flows, downloads first.
        downloads: Number of counted flows.
        up: Uplink.
        more: Further keys of the radio.
    """

    name: str
    flows: tuple[str, ...] = (CUBIC,)
    downloads: int = 1
    up: str = UP
    more: str = ""


@dataclass(frozen=True)
class Got:
    """Results of a download.

    Attributes:
        goodput: Share of the link's capacity.
        p95_ms: p95 queueing delay of the radio.
        jain: Jain's index of the downloads.
        answers_ms: Median and p95 of the times of small answers, if any.
    """

    goodput: float
    p95_ms: float
    jain: float
    answers_ms: tuple[float, float] | None


def main() -> int:
    """Measure and write both tables."""
    there = list(recordings())
    OUT.parent.mkdir(exist_ok=True)
    text = f"{rivals(there)}\n{beside(there)}"
    OUT.write_text(text)
    print(text)
    return 0


def recordings() -> Iterator[tuple[Recording, Path | None]]:
    """Recordings, each with its uplink recording if there is one."""
    yield Recording.of(OURS / "synthetic-evdo-driving.down"), None
    folder = Path(os.environ.get("ACKCLOCK_SHARED", "/nowhere"), "traces", "mahimahi-3g-lte")
    if not folder.is_dir():
        print("skipped: EV-DO and LTE: ACKCLOCK_SHARED, the folder of public recordings, is not set or lacks them")
        return
    for name in ("Verizon-EVDO-driving", "ATT-LTE-driving-2016"):
        yield Recording.of(folder / f"{name}.down"), folder / f"{name}.up"


def rivals(there: list[tuple[Recording, Path | None]]) -> str:
    """A download with small answers, through every kind of box."""
    head = f"| box | {' | '.join(one.name for one, _ in there)} |\n| --- |{' ---: |' * len(there)}\n"
    traffic = Traffic("answers", (CUBIC, REQUESTS))
    names = dict.fromkeys(name for one, _ in there for name in boxes(one))
    rows = ((name, [cell(got(one, boxes(one)[name], traffic)) for one, _ in there]) for name in names)
    return head + "".join(f"| {name} | {' | '.join(cells)} |\n" for name, cells in rows)


def boxes(recording: Recording) -> dict[str, str]:
    """Kinds of boxes as keys of `[edge]`; shapers know the recording's mean rate."""
    mean_bps = recording.second_p * PACKET_BITS
    found = {"none": observed("mobile", "none", "1000p")}
    for side in ("mobile", "network"):
        for least, base, most in ((0.1, 1, 4), (0.1, 0.5, 2)):
            rates = ", ".join(
                f'{key} = "{share * mean_bps:.0f}bit/s"'
                for key, share in (("min", least), ("base", base), ("max", most))
            )
            bearer = f'bearer = {{ kind = "autorate", side = "{side}", {rates} }}\n'
            found[f"`autorate`, {side}: {least}, {base}, {most} of the mean"] = f'buffer = "1000p"\n{bearer}'
        regulators = ("wrs", "wrd") if side == "mobile" else ("wrs", "wrd", "wrb")
        found |= {f"`{name}` 50p, {side}": observed(side, name, "50p") for name in regulators}
        found[f"`forecast`, {side}"] = observed(side, "forecast", "1000p")
    return found


def observed(side: str, regulator: str, buffer: str) -> str:
    """Keys of an observing box."""
    return f'buffer = "{buffer}"\nregulator = "{regulator}"\nbearer = {{ kind = "observed", side = "{side}" }}\n'


def beside(there: list[tuple[Recording, Path | None]]) -> str:
    """`forecast` with other traffic: in a box on either side, and at the queue with a loop of equal length."""
    head = "| recording | traffic | no box | `forecast` behind the radio | before it | beside the queue |\n"
    text = head + "| --- | --- | ---: | ---: | ---: | ---: |\n"
    for recording, way_back in there:
        for traffic in traffics(way_back):
            kinds = [
                observed("mobile", "none", "1000p"),
                observed("mobile", "forecast", "1000p"),
                observed("network", "forecast", "1000p"),
                "",
            ]
            cells = (cell(got(recording, box, traffic)) for box in kinds)
            text += f"| {recording.name} | {traffic.name} | {' | '.join(cells)} |\n"
    return text


def traffics(way_back: Path | None) -> Iterator[Traffic]:
    """One CUBIC download with traffic that is difficult for a box."""
    yield Traffic("one CUBIC")
    yield Traffic("4 CUBIC", (CUBIC + "count = 4\n",), 4)
    for each in (2, 8):
        near, far = f"{CUBIC}count = {each}\n", f'{CUBIC}count = {each}\nroute = "60ms"\n'
        yield Traffic(f"{2 * each} CUBIC, half of them 60 ms further", (near, far), 2 * each)
    yield Traffic("small answers beside", (CUBIC, REQUESTS))
    yield Traffic("an upload beside", (CUBIC, CUBIC + 'towards = "server"\n'), 1, UP, 'up_buffer = "20p"\n')
    for share in ("1%", "10%", "30%"):
        yield Traffic(f"{share} of the ACKs lost", up=f'{UP}loss = "{share}"\n')
    if way_back is not None:
        up = f'kind = "trace"\nfile = "{way_back.resolve()}"\naccounting = "ip"\ndelay = "{RADIO_MS}ms"\n'
        yield Traffic("a recorded way back", up=up)
    yield Traffic("one BBR", ('sender = "bbr"\n',))


def got(recording: Recording, box: str, traffic: Traffic) -> Got:
    """Mean over the start offsets of the recording."""
    begins = [place / PLACES * recording.seconds for place in range(PLACES)]
    runs = [reached(simulated(scenario(recording, box, traffic, begin)), recording, traffic, begin) for begin in begins]
    answers = [one.answers_ms for one in runs if one.answers_ms is not None]
    times = (fmean(one for one, _ in answers), fmean(other for _, other in answers)) if answers else None
    return Got(
        fmean(one.goodput for one in runs), fmean(one.p95_ms for one in runs), fmean(one.jain for one in runs), times
    )


def simulated(text: str) -> dict[str, Any]:
    """The run of a scenario."""
    file = OUT.with_suffix(".toml")
    file.write_text(text)
    run: dict[str, Any] = json.loads(printed(["ackclock", "run", str(file), "--json"]))
    return run


def scenario(recording: Recording, box: str, traffic: Traffic, begin: float) -> str:
    """A run at a start offset of the recording; without a box, `forecast` is at the queue."""
    radio = "edge.behind" if box else "edge"
    own = 'buffer = "1000p"\n' if box else 'buffer = "2000p"\nregulator = "forecast"\n'
    # The delay that a box has through the radio is added to the wired path of a regulator at the queue.
    wire = WIRE_MS if box else WIRE_MS + RADIO_MS
    flows = "".join(f'\n[[flow]]\nstart = "{begin:.3f}s"\n{flow}' for flow in traffic.flows)
    return (
        f'version = 1\npreset = "linux"\nduration = "{begin + LASTS_S:.3f}s"\n\n[path]\ndelay = "{wire}ms"\n\n'
        + (f"[edge]\n{box}\n" if box else "")
        + f"[{radio}]\n{own}{traffic.more}\n"
        f'[{radio}.down]\nkind = "trace"\nfile = "{recording.file.resolve()}"\n'
        f'accounting = "ip"\ndelay = "{RADIO_MS}ms"\n\n'
        f"[{radio}.up]\n{traffic.up}{flows}"
    )


def reached(run: dict[str, Any], recording: Recording, traffic: Traffic, begin: float) -> Got:
    """Results of a run; goodput with packet headers, as a share of the link's capacity."""
    each = [one["delivered_bytes"] for one in run["flows"][: traffic.downloads]]
    goodput = sum(each) * 8 * 1500 / 1448 / (recording.packets(begin, LASTS_S) * PACKET_BITS)
    jain = sum(each) ** 2 / (len(each) * sum(one**2 for one in each))
    answers = run["transfers"][0]["latency_ms"] if run.get("transfers") else None
    times = (answers["p50"], answers["p95"]) if answers else None
    return Got(goodput, run["bottleneck"]["queue_ms"]["p95"], jain, times)


def cell(one: Got) -> str:
    """Goodput in % / p95 queueing delay in ms (small answers: median, p95), and Jain's index if below 0.99."""
    text = f"{100 * one.goodput:.1f} / {one.p95_ms:.0f}"
    if one.answers_ms is not None:
        text += f" ({one.answers_ms[0]:.0f}, {one.answers_ms[1]:.0f})"
    return text + (f", Jain {one.jain:.2f}" if one.jain < 0.99 else "")


if __name__ == "__main__":
    sys.exit(main())
