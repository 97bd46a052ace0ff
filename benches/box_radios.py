"""A box with its default buffer over LTE, 5G-like and Starlink recordings: the table of docs/discussion/box.md.

    python benches/box_radios.py

Each cell is one download over a synthetic recording: goodput in % of that without a box, and p95 queueing delay of the
radio in ms; means of six runs of 30 s, from three start offsets and over wired paths of 5 and 20 ms. Two minutes of
CPU time.
"""

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import fmean

from box_live import write_5g_like
from regulators import printed

# Name and recording of the downlink; 5G-like has a file of its own.
RADIOS = (("LTE, in a car", "synthetic:lte-driving"), ("5G-like", ""), ("Starlink", "synthetic:starlink"))
SENDERS = ("cubic", "reno", "bbr")
SIDES = ("mobile", "network")
# Regulator and buffer of each column.
BOXES = (("none", "1000p"), ("forecast", "3bdp"), ("wrd", "3bdp"), ("wrs", "3bdp"), ("wrd", "20p"))
STARTS_S, WIRES_MS, LASTS_S, RADIO_MS = (0, 30, 60), (5, 20), 30, 20
# Goodput in bit/s and p95 queueing delay in ms.
Got = tuple[float, float]


def main() -> int:
    """Measure and print the table."""
    names = [f"`{regulator}`{', 20 packets' if buffer == '20p' else ''}" for regulator, buffer in BOXES[1:]]
    print(
        f"| recording | side | download | no box | {' | '.join(names)} |\n| --- | --- | --- |{' ---: |' * len(BOXES)}"
    )
    with tempfile.TemporaryDirectory() as folder:
        write_5g_like(faster := Path(folder) / "5g-like.csv")
        for (radio, recording), side, sender in product(RADIOS, SIDES, SENDERS):
            down = recording or str(faster)
            none, *boxes = [mean(Path(folder), down, side, sender, box) for box in BOXES]
            cells = [f"{100 * bps / none[0]:.0f} % / {p95:,.0f} ms" for bps, p95 in boxes]
            alone = f"{none[0] / 1e6:.1f} Mbit/s / {none[1]:,.0f} ms"
            print(f"| {radio} | {side} | {sender} | {' | '.join([alone, *cells])} |", flush=True)
    return 0


def mean(folder: Path, down: str, side: str, sender: str, box: tuple[str, str]) -> Got:
    """Mean of all runs of a cell."""
    with ThreadPoolExecutor() as pool:
        cases = product(STARTS_S, WIRES_MS)
        got = list(pool.map(lambda case: run(folder, scenario(down, side, sender, box, *case)), cases))
    return fmean(one for one, _ in got), fmean(one for _, one in got)


def scenario(down: str, side: str, sender: str, box: tuple[str, str], start_s: int, wire_ms: int) -> str:
    """A download that begins at a start offset of the recording."""
    regulator, buffer = box
    return (
        f'version = 1\npreset = "linux"\nduration = "{start_s + LASTS_S}s"\n\n[path]\ndelay = "{wire_ms}ms"\n\n'
        f'[edge]\nbuffer = "{buffer}"\nregulator = "{regulator}"\n'
        f'bearer = {{ kind = "observed", side = "{side}" }}\n\n[edge.behind]\nbuffer = "1s"\n\n'
        f'[edge.behind.down]\nkind = "trace"\nfile = "{down}"\n{downlink_delay(down)}\n'
        f'[edge.behind.up]\nkind = "constant"\nrate = "10Mbit/s"\ndelay = "{RADIO_MS}ms"\n\n'
        f'[[flow]]\nsender = "{sender}"\nstart = "{start_s}s"\n'
    )


def downlink_delay(down: str) -> str:
    """The key of the radio's delay; the recording of Starlink has delays of its own."""
    return "" if "starlink" in down else f'delay = "{RADIO_MS}ms"\n'


def run(folder: Path, text: str) -> Got:
    """The run of a scenario."""
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".toml") as file:
        file.write(text)
        file.flush()
        result = json.loads(printed(["ackclock", "run", file.name, "--json"]))
    return result["flows"][0]["goodput_bps"], result["bottleneck"]["queue_ms"]["p95"]


if __name__ == "__main__":
    sys.exit(main())
