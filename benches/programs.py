"""The two programs of a run of `make agree`, with the kernel's TCP set up as the simulator's preset `linux` is.

    programs.py send RUN        sends what is asked for
    programs.py take RUN        takes it for so long, from when the link has run for a while; prints when and how much

RUN is a `Run` as JSON. Both set what the kernel keeps for each network namespace, so they need root; nothing outside
the namespace changes. What is asked for on a connection is asked through a pipe beside the link, since in the simulator
requests take no time.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Literal

PORT = 5001
# Of programs that go before all other work, as that of the link around them.
PRIORITY = 10
CHUNK = 1 << 16
# Nothing of one run may be remembered in the next, and the largest window is that of the preset.
SETTINGS = {
    "tcp_no_metrics_save": "1",
    "tcp_timestamps": "1",
    "tcp_window_scaling": "1",
    "tcp_mtu_probing": "0",
    "tcp_slow_start_after_idle": "1",
    "tcp_rmem": "4096 131072 12582912",
    "tcp_wmem": "4096 16384 12582912",
}


@dataclass(frozen=True)
class Run:
    """What both programs must know."""

    control: str
    sack: int
    ecn: int
    # When the download begins, since the link began, and how long it lasts.
    begin_s: float
    seconds: float
    # The pipe of the requests, and the bytes that each asks for; everything at once without end where there is none.
    pipe: str | None = None
    size: int = 0
    interval_s: float = 0
    since: str = "start"
    # Whether the programs go before all other work once they are ready; an interpreter is too long in starting.
    real_time: bool = False

    def json(self) -> str:
        """As an argument."""
        return json.dumps(asdict(self))


def main() -> None:
    """Be one end."""
    match sys.argv[1:]:
        case ["send", words]:
            run = Run(**json.loads(words))
            configure(run)
            send(run)
        case ["take", words]:
            run = Run(**json.loads(words))
            configure(run)
            take(run)
        case _:
            sys.exit(__doc__)


def configure(run: Run) -> None:
    """Set the namespace up."""
    for name, value in {**SETTINGS, "tcp_sack": str(run.sack), "tcp_ecn": str(run.ecn)}.items():
        Path("/proc/sys/net/ipv4", name).write_text(value)


@contextmanager
def requests(run: Run, mode: Literal["rb", "wb"]) -> Iterator[BinaryIO | None]:
    """The pipe of requests, from when the other end has opened it too; nothing where all is sent at once."""
    if run.pipe is None:
        yield None
    else:
        with open(run.pipe, mode, buffering=0) as pipe:
            yield pipe


def hurry(run: Run) -> None:
    """Go before all other work from now on, where that is meant."""
    if run.real_time:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))


def send(run: Run) -> None:
    """Send to the one who comes."""
    with socket.create_server(("", PORT)) as server:
        hurry(run)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, run.control.encode())
        with requests(run, "rb") as asked, server.accept()[0] as peer:
            chosen = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
            if chosen != run.control:
                sys.exit(f"the kernel sends by {chosen}, not by {run.control}")
            # The rest of a file waits for no acknowledgement, as with every server of files; without end there is none.
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(asked is not None))
            with suppress(ConnectionResetError, BrokenPipeError):
                answer(peer, asked, run.size)


def answer(peer: socket.socket, asked: BinaryIO | None, size: int) -> None:
    """Send so much for each request, or without end."""
    if asked is None:
        while True:
            peer.sendall(bytes(CHUNK))
    while several := asked.read(CHUNK):
        for _ in several:
            peer.sendall(bytes(size))


def take(run: Run) -> None:
    """Take what comes from the first SYN on, and ask for more when it is time."""
    began = link_began()
    hurry(run)
    with requests(run, "wb") as asks:
        time.sleep(max(0.0, began + run.begin_s - time.monotonic()))
        begins = time.monotonic()
        taken = read(run, asks, begins)
    print(json.dumps({"begins_s": begins - began, "taken_bytes": taken}), flush=True)


def read(run: Run, asks: BinaryIO | None, begins: float) -> int:
    """How much came."""
    until, due = begins + run.seconds, begins if asks else float("inf")
    taken = asked = 0
    peer: socket.socket | None = None
    try:
        while (now := time.monotonic()) < until:
            if due <= now and asks:
                asks.write(b"?")
                asked += run.size
                due = due + run.interval_s if run.since == "start" else float("inf")
                if peer:
                    continue
            try:
                # An outage may be as long as the run.
                peer = peer or connect(until)
                peer.settimeout(max(1e-4, min(until, due) - time.monotonic()))
                came = len(peer.recv(CHUNK))
            except TimeoutError:
                continue
            if not came:
                sys.exit("the sender has hung up")
            taken += came
            if asks and run.since == "end" and taken == asked:
                due = time.monotonic() + run.interval_s
        return taken
    finally:
        if peer:
            peer.close()


def connect(until: float) -> socket.socket:
    """The server may be a little later than we."""
    while True:
        try:
            return socket.create_connection((os.environ["ACKCLOCK_BASE"], PORT), timeout=until - time.monotonic())
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def link_began() -> float:
    """When the link around us began, by the clock that waits here: the quickest of several answers tells best."""
    answers: list[tuple[float, float]] = []
    for _ in range(5):
        asked = time.monotonic()
        shown = subprocess.run(["ackclock", "link", "show"], capture_output=True, check=True).stdout
        answered = time.monotonic()
        began = (asked + answered) / 2 - json.loads(shown)["duration_s"]
        answers.append((answered - asked, began))
    return min(answers)[1]


if __name__ == "__main__":
    main()
