"""The links of `make agree`: scenario tables of both directions, and the recordings of some of them."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Recording:
    """A public recording, downlink and possibly uplink, played from `skip_s` on."""

    name: str
    down: str
    up: str | None = None
    skip_s: int = 0

    def missing(self) -> str | None:
        """Why it cannot be played here."""
        shared = os.environ.get("ACKCLOCK_SHARED")
        if shared is None:
            return "ACKCLOCK_SHARED, the folder of public recordings, is not set"
        files = [Path(shared, "traces", one) for one in (self.down, self.up) if one]
        return next((f"{file} is missing" for file in files if not file.exists()), None)


@dataclass(frozen=True)
class Link:
    """One kind of radio link, both ways."""

    name: str
    # Keys of its directions, in addition to a recording if there is one.
    down: str
    up: str
    recording: Recording | None = None
    # Keys of a bearer that has no links.
    bearer: str = ""

    def missing(self) -> str | None:
        """Why it cannot be used here."""
        return self.recording.missing() if self.recording else None

    def tables(self, folder: Path) -> str:
        """The two directions in a scenario; `folder` stores shortened recordings."""
        if self.bearer:
            return f"[edge.bearer]\n{self.bearer}\n"
        down, up = self.down, self.up
        if self.recording:
            down = played(self.recording.down, self.recording.skip_s, folder) + down
            if self.recording.up:
                up = played(self.recording.up, self.recording.skip_s, folder) + up
        return f"[edge.down]\n{down}\n\n[edge.up]\n{up}\n"


def played(file: str, skip_s: int, folder: Path) -> str:
    """The keys that play a recording from `skip_s` on."""
    path = Path(os.environ.get("ACKCLOCK_SHARED", ""), "traces", file)
    if skip_s:
        folder.mkdir(parents=True, exist_ok=True)
        whole, path = path, folder / f"{path.stem}-{skip_s}{path.suffix}"
        path.write_text(later(whole.read_text(), skip_s * 1000))
    return f'kind = "trace"\nfile = "{path.resolve()}"\naccounting = "ip"\n'


def later(recording: str, skip_ms: int) -> str:
    """The part of a recording after this many milliseconds: a mahimahi file, or a list of rates and times."""
    if recording.lstrip().startswith("["):
        entries: list[dict[str, Any]] = json.loads(recording)
        while len(entries) > 1 and skip_ms >= entries[0]["duration_ms"]:
            skip_ms -= entries.pop(0)["duration_ms"]
        entries[0]["duration_ms"] -= min(skip_ms, entries[0]["duration_ms"] - 1)
        return json.dumps(entries)
    times = [int(word) - skip_ms for word in recording.split()]
    return "".join(f"{time}\n" for time in times if time > 0)


BESIDE = 'delay = "20ms"'
UP = 'kind = "constant"\nrate = "1Mbit/s"\ndelay = "30ms"'

EV_DO, LTE = (
    Recording(name, f"mahimahi-3g-lte/{file}.down", f"mahimahi-3g-lte/{file}.up")
    for name, file in [("EV-DO", "Verizon-EVDO-driving"), ("LTE", "ATT-LTE-driving-2016")]
)
# Rates of downloads over HSDPA, so no more than the links had; the recordings say 100 ms of delay.
METRO, TRAM, BUS, FERRY = (
    Recording(name, f"norway-hsdpa-3g/{file}.json")
    for name, file in [
        ("HSDPA metro", "metro.kalbakken-jernbanetorget-report.2010-09-13_1046CEST"),
        ("HSDPA tram", "tram.jernbanetorget-ljabru-report.2010-12-09_1222CET"),
        ("HSDPA bus", "bus.ljansbakken-oslo-report.2010-09-28_1407CEST"),
        ("HSDPA ferry", "ferry.nesoddtangen-oslo-report.2010-09-20_1542CEST"),
    ]
)


def plays(recording: Recording) -> Link:
    """A recording, with 20 ms each way beside it; upwards 1 Mbit/s where nothing was recorded."""
    name = f"{recording.name} from {recording.skip_s} s" if recording.skip_s else recording.name
    return Link(name, BESIDE, BESIDE if recording.up else UP, recording)


UMTS_AIR = 'kind = "dedicated", delay = "25ms", errors = { kind = "rayleigh", fer = "10%", doppler = 0.01 }'
UMTS = Link(
    "UMTS 384",
    "",
    "",
    bearer=f'kind = "radio-access"\nair.down = {{ {UMTS_AIR} }}\nair.up = {{ {UMTS_AIR}, rate = "64kbit/s" }}',
)
CONSTANT = Link("constant", 'kind = "constant"\nrate = "4Mbit/s"\ndelay = "30ms"', UP)
VARIABLE_DELAY = Link(
    "variable delay", 'kind = "variable"\nrate = "2Mbit/s"\ndelay = "30ms + e(20ms)"\nredraw = "packet"', UP
)
VARIABLE_RATE = Link(
    "variable rate",
    'kind = "variable"\nrate = "u(4Mbit/s, 1500kbit/s)"\ndelay = "30ms"\nredraw = "interval(50ms)"',
    UP,
)
