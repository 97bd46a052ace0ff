"""The two ends of a run of `box_live.py`, each with the box if the box is on its side.

    box_ends.py serve RUN       sends to all who connect, and UDP datagrams to all who ask for them
    box_ends.py take RUN        downloads, and prints how much came
    box_ends.py cost RUN        both, over a veth pair with a token bucket filter, and what the box cost

RUN is a `Run` as JSON. The first two run in the namespaces of `ackclock link`, all as root.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

PORT, CHUNK, DATAGRAM = 5001, 1 << 16, 1472
# `ackclock link` names the devices at both ends so.
INTERFACE = "ackclock0"
# Time after the start of the link at which the downloads begin, so that they meet the same part of the recording.
BEGIN_S = 3.0
COST_BPS, SERVER, CLIENT = 300_000_000, "10.79.0.1", "10.79.0.2"
FILES = Path("/run/ackclock")


@dataclass(frozen=True)
class Run:
    """What both ends must know.

    Attributes:
        control: Congestion control of the server.
        seconds: Time of the downloads.
        flows: Number of downloads from each of the servers.
        servers: Addresses of the server, each asked from another address of the client.
        udp_bps: Rate of the datagrams beside.
        regulator: Regulator of the box; no box if None.
        side: Side of the radio on which the box is.
        act_on: Subscribers that the box acts on; everybody if empty.
        reports: File for the reports that a box prints each second; every run with a box has one.
    """

    control: str
    seconds: float
    flows: int = 1
    servers: list[str] = field(default_factory=list)
    udp_bps: float = 0
    regulator: str | None = None
    side: str = "mobile"
    act_on: list[str] = field(default_factory=list)
    reports: str = ""

    def json(self) -> str:
        """As an argument."""
        return json.dumps(asdict(self))


def main() -> None:
    """Be one end, or both."""
    end, words = sys.argv[1:]
    run = Run(**json.loads(words))
    began = time.monotonic()
    match end:
        case "serve":
            with box(run, "network"):
                serve(run)
        case "take":
            with box(run, "mobile"):
                time.sleep(max(0.0, began + BEGIN_S - time.monotonic()))
                print(json.dumps({"taken_bytes": take(run)}), flush=True)
        case "cost":
            print(json.dumps(cost(run)), flush=True)


@contextlib.contextmanager
def box(run: Run, side: str) -> Iterator[int]:
    """The process of the box, if the box is on this side."""
    if run.regulator is None or run.side != side:
        yield 0
        return
    subprocess.run(["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", str(FILES)], check=True)
    # Networks are named only if the box must tell subscribers apart.
    some = 'subscribers = ["100.64.0.0/10", "fd00::/8"]\n' if run.act_on else ""
    chosen = f"act_on = {json.dumps(run.act_on)}\n" if run.act_on else ""
    (FILES / "box.toml").write_text(
        f'[box]\ninterface = "{INTERFACE}"\nside = "{side}"\nact = true\n{some}{chosen}\n'
        f'[edge]\nregulator = "{run.regulator}"\nbuffer = "20p"\n'
    )
    command = ["ackclock", "box", str(FILES / "box.toml"), "--json"]
    reports = Path(run.reports)
    with reports.open("w") as file, subprocess.Popen(command, stdout=file) as started:
        # The first report comes after a second.
        while not reports.stat().st_size:
            if started.poll() is not None:
                sys.exit("the box has not started")
            time.sleep(0.02)
        yield started.pid
        started.send_signal(signal.SIGTERM)


def serve(run: Run) -> None:
    """Send to all who come."""
    threading.Thread(target=send_datagrams, args=(run.udp_bps,), daemon=True).start()
    with socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, run.control.encode())
        while True:
            threading.Thread(target=send, args=(server.accept()[0],), daemon=True).start()


def send(peer: socket.socket) -> None:
    """Send without end."""
    with contextlib.suppress(OSError), peer:
        while True:
            peer.sendall(bytes(CHUNK))


def send_datagrams(bps: float) -> None:
    """Send datagrams at a constant rate to the one who asks."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("", PORT))
        _, peer = sender.recvfrom(1)
        due = time.monotonic()
        while True:
            sender.sendto(bytes(DATAGRAM), peer)
            due += (DATAGRAM + 28) * 8 / bps
            time.sleep(max(0.0, due - time.monotonic()))


def take(run: Run) -> int:
    """Download for the time of the run; the bytes that came."""
    until = time.monotonic() + run.seconds
    servers = run.servers or [os.environ["ACKCLOCK_BASE"]]
    taken = [0] * run.flows * len(servers)

    def download(number: int) -> None:
        with connect(servers[number % len(servers)], until) as peer:
            while (left := until - time.monotonic()) > 0:
                peer.settimeout(left)
                with contextlib.suppress(TimeoutError):
                    taken[number] += len(peer.recv(CHUNK))

    threads = [threading.Thread(target=download, args=(number,)) for number in range(len(taken))]
    for thread in threads:
        thread.start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asks:
        if run.udp_bps:
            asks.sendto(b"?", (servers[0], PORT))
        for thread in threads:
            thread.join()
        # Without downloads, only the datagrams take time.
        time.sleep(max(0.0, until - time.monotonic()))
    return sum(taken)


def connect(server: str, until: float) -> socket.socket:
    """A connection; the server may be a little later than we."""
    while True:
        try:
            return socket.create_connection((server, PORT), timeout=until - time.monotonic())
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def cost(run: Run) -> dict[str, float]:
    """Share of a core that the box's process uses during a download through the interface of the box."""
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    command = ["unshare", "--net", sys.executable, __file__, "serve", replace(run, regulator=None).json()]
    with subprocess.Popen(command) as server:
        there = ["nsenter", f"--net=/proc/{server.pid}/ns/net"]
        # The namespace exists once it is not ours any more.
        while Path(f"/proc/{server.pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink():
            time.sleep(0.02)
        bucket = f"rate {COST_BPS} burst 300kb limit 3mb"
        for words in (
            ["ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", INTERFACE, "netns", str(server.pid)],
            ["ip", "address", "add", f"{CLIENT}/24", "dev", INTERFACE],
            ["ip", "link", "set", INTERFACE, "up"],
            [*there, "ip", "address", "add", f"{SERVER}/24", "dev", INTERFACE],
            [*there, "ip", "link", "set", INTERFACE, "up"],
            [*there, "tc", "qdisc", "add", "dev", INTERFACE, "root", "tbf", *bucket.split()],
        ):
            subprocess.run(words, check=True)
        with box(run, "mobile") as process:
            before, began = cpu_s(process), time.monotonic()
            taken = take(run)
            took = time.monotonic() - began
            used = cpu_s(process) - before
        server.kill()
    return {"rate_bps": taken * 8 / took, "core_share": used / took}


def cpu_s(process: int) -> float:
    """CPU time that a process has used, s."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
