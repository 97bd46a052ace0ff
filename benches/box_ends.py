"""The two ends of a run of `box_live.py`, each with the box if the box is on its side.

    box_ends.py serve RUN          sends to all who connect, and UDP datagrams to all who ask for them
    box_ends.py take RUN           downloads, and prints how much came
    box_ends.py radio RUN PROGRAM  both, over the TUN devices of a radio's program, which is ended after them
    box_ends.py cost RUN           both, over a veth pair with a token bucket filter, and what the box cost

RUN is a `Run` as JSON. The first two run in the namespaces of `ackclock link`, the others in new ones, all as root.
"""

import contextlib
import json
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

PORT, CHUNK, DATAGRAM = 5001, 1 << 16, 1472
# The first byte of a connection says what the client wants: all that can be sent, or a small answer.
ALL, SMALL, SMALL_BYTES = b"a", b"s", 5000
# `ackclock link` names the devices at both ends so.
INTERFACE = "ackclock0"
# Time after the start of the link at which the downloads begin, so that they meet the same part of the recording.
BEGIN_S = 3.0
PATIENCE_S = 10.0
# Connections that fetch their small answers at the same time, so that two hundred of them take seconds.
AT_ONCE = 20
# Downloads beside other connections begin at multiples of `STEP_S`, so that they meet the same part of the recording
# with and without a box. Connections that are reset send for `SENDS_S` before.
STEP_S, SENDS_S = 10.0, 1.0
NS3_SERVER, NS3_MOBILE = "1.0.0.2", "7.0.0.2"
COST_BPS, SERVER, CLIENT = 300_000_000, "10.79.0.1", "10.79.0.2"
FILES = Path("/run/ackclock")


@dataclass(frozen=True)
class Run:
    """What both ends must know.

    Attributes:
        control: Congestion control of the server.
        seconds: Time of the downloads.
        flows: Number of downloads from each of the servers.
        idle: Connections that fetch a small answer before the downloads, and stay open.
        resets: Connections that are reset with data on its way when the downloads begin.
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
    idle: int = 0
    resets: int = 0
    servers: list[str] = field(default_factory=list)
    udp_bps: float = 0
    regulator: str | None = None
    buffer: str = "20p"
    side: str = "mobile"
    act_on: list[str] = field(default_factory=list)
    reports: str = ""

    def json(self) -> str:
        """As an argument."""
        return json.dumps(asdict(self))


def main() -> None:
    """Be one end, or both."""
    end, words, *program = sys.argv[1:]
    run = Run(**json.loads(words))
    began = time.monotonic()
    match end:
        case "serve":
            with box(run, "network"):
                serve(run)
        case "take":
            with box(run, "mobile"):
                time.sleep(max(0.0, began + BEGIN_S - time.monotonic()))
                print(json.dumps({"taken_bytes": take(run, began + BEGIN_S)}), flush=True)
        case "radio":
            over_radio(words, program)
        case "cost":
            print(json.dumps(cost(run)), flush=True)


@contextlib.contextmanager
def box(run: Run, side: str) -> Iterator[int]:
    """The process of the box, if the box is on this side."""
    if run.regulator is None or run.side != side:
        yield 0
        return
    subprocess.run(["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(FILES.parent)], check=True)
    FILES.mkdir(mode=0o700)
    # Networks are named only if the box must tell subscribers apart.
    some = 'subscribers = ["100.64.0.0/10", "fd00::/8"]\n' if run.act_on else ""
    chosen = f"act_on = {json.dumps(run.act_on)}\n" if run.act_on else ""
    (FILES / "box.toml").write_text(
        f'[box]\ninterface = "{INTERFACE}"\nside = "{side}"\nact = true\n{some}{chosen}\n'
        f'[edge]\nregulator = "{run.regulator}"\nbuffer = "{run.buffer}"\n'
    )
    command = ["ackclock", "box", str(FILES / "box.toml"), "--json"]
    reports = Path(run.reports)
    with reports.open("w") as file, subprocess.Popen(command, stdout=file) as started:
        # The first report comes after a second.
        while not reports.stat().st_size:
            if started.poll() is not None:
                sys.exit("the box has not started")
            time.sleep(0.02)
        try:
            yield started.pid
        finally:
            started.send_signal(signal.SIGTERM)


def serve(run: Run) -> None:
    """Send to all who come."""
    threading.Thread(target=send_datagrams, args=(run.udp_bps,), daemon=True).start()
    with socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, run.control.encode())
        while True:
            threading.Thread(target=send, args=(server.accept()[0],), daemon=True).start()


def send(peer: socket.socket) -> None:
    """Send what is wanted, and keep the connection until the client closes it."""
    with contextlib.suppress(OSError), peer:
        while wanted := peer.recv(1):
            if wanted == SMALL:
                peer.sendall(bytes(SMALL_BYTES))
            while wanted == ALL:
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


def take(run: Run, begin: float) -> int:
    """Download for the time of the run; the bytes that came. Begins at `begin` or, beside other connections, later."""
    servers = run.servers or [os.environ["ACKCLOCK_BASE"]]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        idle = list(pool.map(fetched, [servers[0]] * run.idle))
    left = [connect(servers[0], time.monotonic() + PATIENCE_S) for _ in range(run.resets)]
    if idle or left:
        begin += STEP_S * math.ceil((time.monotonic() + SENDS_S - begin) / STEP_S)
    leave(left, begin)
    # A box that has started late shortens no download.
    until = max(begin, time.monotonic()) + run.seconds

    def download(server: str) -> int:
        taken = 0
        with connect(server, until) as peer:
            peer.sendall(ALL)
            while (left := until - time.monotonic()) > 0:
                peer.settimeout(left)
                with contextlib.suppress(TimeoutError):
                    taken += len(peer.recv(CHUNK))
        return taken

    downloads = run.flows * servers
    with (
        ThreadPoolExecutor(max(1, len(downloads))) as pool,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asks,
    ):
        parts = pool.map(download, downloads)
        if run.udp_bps:
            asks.sendto(b"?", (servers[0], PORT))
        taken = sum(parts)
        # Without downloads, only the datagrams take time.
        time.sleep(max(0.0, until - time.monotonic()))
    for peer in idle:
        peer.close()
    return taken


def fetched(server: str) -> socket.socket:
    """An open connection that has fetched a small answer."""
    peer = connect(server, time.monotonic() + PATIENCE_S)
    peer.sendall(SMALL)
    left = SMALL_BYTES
    while left > 0:
        left -= len(peer.recv(left))
    return peer


def leave(peers: list[socket.socket], until: float) -> None:
    """Reset connections at `until`, while data of each is on its way."""
    time.sleep(max(0.0, until - SENDS_S - time.monotonic()))
    for peer in peers:
        peer.sendall(ALL)
    time.sleep(max(0.0, until - time.monotonic()))
    for peer in peers:
        # Closing without waiting resets the connection.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()


def connect(server: str, until: float) -> socket.socket:
    """A connection; the server may be a little later than we."""
    while True:
        try:
            return socket.create_connection((server, PORT), timeout=until - time.monotonic())
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def over_radio(words: str, program: list[str]) -> None:
    """Both ends over a radio whose program makes the TUN devices `ns3net` and `ns3ue`; prints what both print."""
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as radio:
        assert radio.stdout is not None
        if radio.stdout.readline() != "ready\n":
            sys.exit(f"{program[0]} has not started")
        run = Run(**json.loads(words))
        end = [sys.executable, __file__]
        there = namespace([*end, "serve", words], "ns3net", NS3_SERVER)
        here = namespace([*end, "take", replace(run, servers=[NS3_SERVER]).json()], "ns3ue", NS3_MOBILE)
        here.wait()
        # With the box beside it.
        os.killpg(there.pid, signal.SIGTERM)
        print(radio.stdout.read(), end="")


def namespace(command: list[str], device: str, address: str) -> subprocess.Popen[bytes]:
    """A command in a namespace of its own with this device as its only way out."""
    # It begins when the device is up.
    wait = f'until ip link show {INTERFACE} up 2>/dev/null | grep -q UP; do sleep 0.02; done; exec "$@"'
    started = subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", wait, "sh", *command], start_new_session=True
    )
    inside = ["nsenter", f"--net=/proc/{started.pid}/ns/net"]
    until_apart(started.pid)
    for words in (
        ["ip", "link", "set", device, "netns", str(started.pid)],
        [*inside, "ip", "link", "set", device, "name", INTERFACE],
        [*inside, "ip", "address", "add", address, "dev", INTERFACE],
        [*inside, "ip", "link", "set", INTERFACE, "up"],
        [*inside, "ip", "route", "add", "default", "dev", INTERFACE],
    ):
        subprocess.run(words, check=True)
    return started


def until_apart(process: int) -> None:
    """Wait until a process is in a network namespace of its own."""
    while Path(f"/proc/{process}/ns/net").readlink() == Path("/proc/self/ns/net").readlink():
        time.sleep(0.02)


def cost(run: Run) -> dict[str, float]:
    """Share of a core that the box's process uses during a download through the interface of the box."""
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    command = ["unshare", "--net", sys.executable, __file__, "serve", replace(run, regulator=None).json()]
    with subprocess.Popen(command) as server:
        there = ["nsenter", f"--net=/proc/{server.pid}/ns/net"]
        until_apart(server.pid)
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
            taken = take(run, time.monotonic())
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
