"""A box that only observes, beside other traffic and beside a shaper that steers its rate.

    python benches/box.py

Recordings are EV-DO and LTE of the folder ACKCLOCK_SHARED where it is set, and the synthetic recording. Each number is
the mean of three runs of 120 s that begin at three places of the recording. The tables go to out/box.md;
docs/how-to/box.md has them.
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
# One small answer every 250 ms over a connection that stays: how long it takes is what a user feels beside a download.
REQUESTS = (
    'sender = "cubic"\nworkload = { kind = "ftp", size = "64B", interval = "250ms", connection_per = "client" }\n'
)
UP = f'kind = "constant"\nrate = "1Mbit/s"\ndelay = "{RADIO_MS}ms"\n'


@dataclass(frozen=True)
class Traffic:
    """What passes, and over which link back.

    Attributes:
        flows: The tables of its flows, downloads first.
        downloads: How many flows of them are counted.
        up: The link back.
        more: What else the radio says.
    """

    name: str
    flows: tuple[str, ...] = (CUBIC,)
    downloads: int = 1
    up: str = UP
    more: str = ""


@dataclass(frozen=True)
class Got:
    """What a download got.

    Attributes:
        goodput: Share of what the link could send.
        p95_ms: 95th percentile of the wait before the radio.
        jain: Jain's index of the downloads.
        answers_ms: Median and 95th percentile of the times of small answers, where there are some.
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
    """Recordings, each with that of its way back where there is one."""
    yield Recording.of(OURS / "synthetic-evdo-driving.down"), None
    folder = Path(os.environ.get("ACKCLOCK_SHARED", "/nowhere"), "traces", "mahimahi-3g-lte")
    if not folder.is_dir():
        print("skipped: EV-DO and LTE: ACKCLOCK_SHARED, the folder of public recordings, is not set or lacks them")
        return
    for name in ("Verizon-EVDO-driving", "ATT-LTE-driving-2016"):
        yield Recording.of(folder / f"{name}.down"), folder / f"{name}.up"


def rivals(there: list[tuple[Recording, Path | None]]) -> str:
    """A download and small answers beside it under everything that a box can do."""
    head = f"| box | {' | '.join(one.name for one, _ in there)} |\n| --- |{' ---: |' * len(there)}\n"
    traffic = Traffic("answers", (CUBIC, REQUESTS))
    names = dict.fromkeys(name for one, _ in there for name in boxes(one))
    rows = ((name, [cell(got(one, boxes(one)[name], traffic)) for one, _ in there]) for name in names)
    return head + "".join(f"| {name} | {' | '.join(cells)} |\n" for name, cells in rows)


def boxes(recording: Recording) -> dict[str, str]:
    """What a box can be, as the keys of `[edge]`; a shaper is told the mean rate of the recording."""
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
    """The keys of a box that observes."""
    return f'buffer = "{buffer}"\nregulator = "{regulator}"\nbearer = {{ kind = "observed", side = "{side}" }}\n'


def beside(there: list[tuple[Recording, Path | None]]) -> str:
    """`forecast` under other traffic: in a box on either side, and beside the queue with a loop that is as long."""
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
    """One download of CUBIC beside what makes a box's life hard."""
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
    """The mean over the places of the recording."""
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
    """A run that begins at a place of the recording; without a box `forecast` stands beside the queue."""
    radio = "edge.behind" if box else "edge"
    own = 'buffer = "1000p"\n' if box else 'buffer = "2000p"\nregulator = "forecast"\n'
    # What the box has to go through the radio, the wire has for the regulator beside the queue.
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
    """What a run reached; goodput with the headers of its packets, as a share of what the link could send."""
    each = [one["delivered_bytes"] for one in run["flows"][: traffic.downloads]]
    goodput = sum(each) * 8 * 1500 / 1448 / (recording.packets(begin, LASTS_S) * PACKET_BITS)
    jain = sum(each) ** 2 / (len(each) * sum(one**2 for one in each))
    answers = run["transfers"][0]["latency_ms"] if run.get("transfers") else None
    times = (answers["p50"], answers["p95"]) if answers else None
    return Got(goodput, run["bottleneck"]["queue_ms"]["p95"], jain, times)


def cell(one: Got) -> str:
    """Goodput in % / p95 of the wait in ms (small answers: median, p95), and Jain's index where it is below 0.99."""
    text = f"{100 * one.goodput:.1f} / {one.p95_ms:.0f}"
    if one.answers_ms is not None:
        text += f" ({one.answers_ms[0]:.0f}, {one.answers_ms[1]:.0f})"
    return text + (f", Jain {one.jain:.2f}" if one.jain < 0.99 else "")


if __name__ == "__main__":
    sys.exit(main())
