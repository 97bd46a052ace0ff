"""The cells of `make agree`: link x buffer x regulator, as scenario files that both worlds read."""

import os
from dataclasses import dataclass
from pathlib import Path

RECORDINGS = Path("traces", "mahimahi-3g-lte")


@dataclass(frozen=True)
class Link:
    """One kind of radio link, both ways."""

    down: str
    up: str
    recording: str | None = None

    def tables(self) -> str:
        """The two directions in a scenario."""
        return f"[edge.down]\n{self.down}\n\n[edge.up]\n{self.up}\n"

    def missing(self) -> str | None:
        """Why it cannot be used here."""
        if self.recording is None:
            return None
        shared = os.environ.get("ACKCLOCK_SHARED")
        if shared is None:
            return "ACKCLOCK_SHARED, the folder of public recordings, is not set"
        files = [Path(shared, RECORDINGS, f"{self.recording}.{way}") for way in ("down", "up")]
        return next((f"{file} is missing" for file in files if not file.exists()), None)


def plays(recording: str) -> Link:
    """A recording, with 20 ms each way beside it."""
    folder = Path(os.environ.get("ACKCLOCK_SHARED", ""), RECORDINGS)
    down, up = (
        f'kind = "trace"\nfile = "{folder / recording}.{way}"\naccounting = "ip"\ndelay = "20ms"'
        for way in ("down", "up")
    )
    return Link(down, up, recording)


LINKS = {
    "constant": Link(
        'kind = "constant"\nrate = "4Mbit/s"\ndelay = "30ms"',
        'kind = "constant"\nrate = "1Mbit/s"\ndelay = "30ms"',
    ),
    "variable delay": Link(
        'kind = "variable"\nrate = "2Mbit/s"\ndelay = "30ms + e(20ms)"\nredraw = "packet"',
        'kind = "constant"\nrate = "1Mbit/s"\ndelay = "30ms"',
    ),
    "variable rate": Link(
        'kind = "variable"\nrate = "u(4Mbit/s, 1500kbit/s)"\ndelay = "30ms"\nredraw = "interval(50ms)"',
        'kind = "constant"\nrate = "1Mbit/s"\ndelay = "30ms"',
    ),
    "EV-DO": plays("Verizon-EVDO-driving"),
    "LTE": plays("ATT-LTE-driving-2016"),
}


@dataclass(frozen=True)
class Cell:
    """A link, what the queue before it holds, and what regulates the ACKs."""

    link: str
    buffer: str
    regulator: str

    @property
    def name(self) -> str:
        """A name that files can have."""
        return f"{self.link}-{self.buffer}-{self.regulator}".replace(" ", "-").lower()

    def scenario(self, seconds: float) -> str:
        """The scenario file."""
        return (
            f'version = 1\npreset = "linux"\nduration = "{seconds:g}s"\n\n'
            f'[edge]\nbuffer = "{self.buffer}"\nregulator = "{self.regulator}"\n\n{LINKS[self.link].tables()}'
        )


CELLS = [
    Cell("constant", "0.5bdp", "none"),
    Cell("constant", "1bdp", "ack-regulator"),
    Cell("constant", "4bdp", "none"),
    Cell("variable delay", "1bdp", "none"),
    Cell("variable delay", "2bdp", "ack-regulator"),
    Cell("variable rate", "1bdp", "none"),
    Cell("variable rate", "2bdp", "none"),
    Cell("variable rate", "2bdp", "ack-regulator"),
    Cell("EV-DO", "2bdp", "none"),
    Cell("EV-DO", "4bdp", "ack-regulator"),
    Cell("LTE", "1bdp", "none"),
    Cell("LTE", "2bdp", "ack-regulator"),
]
