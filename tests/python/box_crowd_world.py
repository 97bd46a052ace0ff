"""Many connections and many datagrams through everything that happens to a box; `test_box_crowd.py` runs it as root.

Two network namespaces: a mobile with the box, and a server behind a link of 40 Mbit/s. The same datagrams are sent
without a box first, since a busy machine may lose some by itself. Prints one JSON object with what was seen.
"""

import itertools
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from box_hosts import FORK, PATIENCE, SO_RCVBUFFORCE, Box, Capture, Edges, Host, run, stay_on_one_processor, stream

CONNECTIONS, RATE, STOPPED = (int(word) for word in sys.argv[1:4])
SERVER, MOBILE = "10.79.0.1", "10.79.0.2"
ECHO, DOWNLOAD, DATAGRAMS = 8001, 8002, 8003
SIZE = 6_000_000
LISTENING, CAPTURING, TALKING, SENT, QUIET, DONE, SEEN = (FORK.Event() for _ in range(7))


def allow_many_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (CONNECTIONS + 1000, CONNECTIONS + 1000))


# ---- Connections ----


def listen(port: int) -> socket.socket:
    listener = stream()
    listener.bind((SERVER, port))
    listener.listen(4096)
    return listener


def send_files() -> None:
    listener = listen(DOWNLOAD)
    while True:
        with listener.accept()[0] as connection:
            connection.recv(1)
            connection.sendall(bytes(SIZE))


def download() -> dict:
    """One file after the other."""
    files, incomplete = 0, 0
    while not DONE.is_set():
        with stream() as connection:
            connection.connect((SERVER, DOWNLOAD))
            connection.sendall(b"x")
            got = sum(len(data) for data in iter(lambda: connection.recv(65536), b""))
            incomplete += got != SIZE
            files += 1
    return {"files": files, "incomplete": incomplete}


def answer() -> None:
    """Echoes what each connection sends, to its end."""
    allow_many_files()
    listener, poll, known = listen(ECHO), select.epoll(), {}
    poll.register(listener, select.EPOLLIN)
    threading.Thread(target=send_files, daemon=True).start()
    LISTENING.set()
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == listener.fileno():
                connection = listener.accept()[0]
                known[connection.fileno()] = connection
                poll.register(connection, select.EPOLLIN)
            elif data := known[descriptor].recv(4096):
                known[descriptor].sendall(data)
            else:
                known.pop(descriptor).close()


class Talk:
    """A connection that sends random bytes and expects them back."""

    def __init__(self) -> None:
        self.socket = stream()
        self.socket.connect((SERVER, ECHO))
        self.owed, self.is_broken = b"", False

    def say(self) -> None:
        text = os.urandom(300)
        self.owed += text
        try:
            self.socket.sendall(text)
        except OSError:
            self.is_broken = True

    def hear(self) -> None:
        try:
            data = self.socket.recv(4096)
        except OSError:
            data = b""
        self.is_broken |= not data or not self.owed.startswith(data)
        self.owed = self.owed[len(data) :]


class Crowd:
    """All connections say something at the beginning and at the end, some of them at any time between."""

    def __init__(self) -> None:
        self.talks, self.poll, self.echoes = [Talk() for _ in range(CONNECTIONS)], select.epoll(), 0
        self.by_descriptor = {one.socket.fileno(): one for one in self.talks}
        for descriptor in self.by_descriptor:
            self.poll.register(descriptor, select.EPOLLIN)

    def hear(self, seconds: float) -> None:
        for descriptor, _ in self.poll.poll(seconds):
            one = self.by_descriptor[descriptor]
            one.hear()
            if one.is_broken:
                self.poll.unregister(descriptor)

    def settle(self) -> None:
        limit = time.monotonic() + PATIENCE
        while any(one.owed and not one.is_broken for one in self.talks) and time.monotonic() < limit:
            self.hear(0.1)

    def all_say(self) -> None:
        for one in self.talks:
            one.say()
        self.settle()

    def some_say(self) -> None:
        """A thousand a second, by turns, until the end."""
        turns = itertools.cycle(self.talks)
        while not DONE.is_set():
            until = time.monotonic() + 0.01
            for one in itertools.islice(turns, 10):
                if not one.owed and not one.is_broken:
                    one.say()
                    self.echoes += 1
            while (rest := until - time.monotonic()) > 0:
                self.hear(rest)
        self.settle()


def talk() -> dict:
    allow_many_files()
    crowd = Crowd()
    crowd.all_say()
    TALKING.set()
    crowd.some_say()
    crowd.all_say()
    return {
        "echoes": crowd.echoes,
        "broken": sum(one.is_broken for one in crowd.talks),
        "missing": sum(len(one.owed) for one in crowd.talks),
    }


# ---- Datagrams ----


def send_datagrams(to: str, rate: int) -> int:
    """Some every millisecond; one that is late sends no more for it."""
    sent, due = 0, time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect((to, DATAGRAMS))
        while not SENT.is_set():
            for _ in range(rate // 1000):
                sender.send(struct.pack("!I", sent) + bytes(96))
                sent += 1
            due = max(due + 0.001, time.monotonic() - 0.01)
            time.sleep(max(0, due - time.monotonic()))
    return sent


class Receiver:
    """Counts datagrams, in the process that it is bound in."""

    bound: "Receiver"

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
        self._socket.bind((address, DATAGRAMS))
        self._socket.settimeout(1)

    def count(self, interface: str) -> dict:
        """What arrived until all is quiet, and how much of the rest the kernel says it dropped."""
        before, received, behind, highest = dropped(interface), 0, 0, -1
        while True:
            try:
                number = struct.unpack("!I", self._socket.recv(200)[:4])[0]
            except TimeoutError:
                if QUIET.is_set():
                    break
                continue
            received += 1
            behind += number < highest
            highest = max(highest, number)
        return {"received": received, "behind": behind, "dropped": dropped(interface) - before}


def bind(address: str) -> None:
    Receiver.bound = Receiver(address)


def count(interface: str) -> dict:
    return Receiver.bound.count(interface)


def dropped(interface: str) -> int:
    """By the sockets of UDP, the interface and its queue, in this namespace."""
    names, values = (
        line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Udp:")
    )
    stats = json.loads(run("ip", "-s", "-json", "link", "show", interface))[0]["stats64"]
    queues = json.loads(run("tc", "-s", "-json", "qdisc", "show", "dev", interface))
    own = stats["rx"]["dropped"] + stats["tx"]["dropped"] + sum(queue.get("drops", 0) for queue in queues)
    return own + int(dict(zip(names, values, strict=True))["RcvbufErrors"])


@dataclass(frozen=True)
class End:
    """Two processes of one end of the link: one sends datagrams, the other receives those of the other end."""

    address: str
    peer: str
    interface: str
    sender: Host
    receiver: Host


def with_datagrams(ends: list[End], rate: int, happens: Callable[[], None]) -> dict:
    """What became of the datagrams that both ends sent meanwhile."""
    SENT.clear()
    QUIET.clear()
    for end in ends:
        end.receiver.begin(count, end.interface)
    for end in ends:
        end.sender.begin(send_datagrams, end.peer, rate // 2)
    happens()
    SENT.set()
    sent = sum(end.sender.end() for end in ends)
    QUIET.set()
    seen = [end.receiver.end() for end in ends]
    return {"rate": rate, "sent": sent} | {key: sum(one[key] for one in seen) for key in seen[0]}


def alone(ends: list[End]) -> dict:
    """Two seconds without a box, at half of the rate as long as the machine itself loses datagrams."""
    rate = RATE
    while True:
        seen = with_datagrams(ends, rate, lambda: time.sleep(2))
        if (seen["received"], seen["behind"]) == (seen["sent"], 0) or rate < 4000:
            return seen
        rate //= 2


# ---- The box ----


def capture() -> dict:
    """Edges of all connections, as the server sees them."""
    edges, frames = Edges(MOBILE), Capture("server0", only_tcp=True)
    CAPTURING.set()
    while not SEEN.is_set():
        while frame := frames.next(0.5):
            edges.see(*frame)
    return {"left": edges.left, "acks": edges.acks, "not_captured": frames.lost()}


def trouble(seen: dict, files: Host) -> None:
    box, options = Box("radio0"), ["--act", "--regulator", "wrs"]
    first = box.start(*options)
    files.begin(download)
    seen["clipped"] = box.grows("clipped")
    first.kill()
    first.wait()
    begun, before = time.monotonic(), box.counts()["stale"]
    seen["clipped_without_a_process"] = box.grows("clipped")
    second = box.start(*options)
    seen["restart"] = {"seconds": time.monotonic() - begun, "stale": box.counts()["stale"] - before}
    seen["clipped_after_restart"] = box.grows("clipped")
    if STOPPED:
        second.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED)
        seen["stale"] = box.grows("stale")
        second.send_signal(signal.SIGCONT)
        seen["clipped_after_stop"] = box.grows("clipped")
    seen["refused"] = box.counts()["refused"]
    box("stop")
    seen["ended"] = second.wait(PATIENCE)
    seen["left_behind"] = [name for name in os.listdir("/sys/fs/bpf") if name == "ackclock"]
    # All goes on without it.
    time.sleep(0.5)


def link(server: Host) -> None:
    radio = "10:79:00:00:00:02", MOBILE, "radio0"
    far = "10:79:00:00:00:01", SERVER, "server0"
    add = (
        f"ip link add radio0 address {radio[0]} type veth peer name server0 address {far[0]} netns {server.process.pid}"
    )
    run(*add.split())
    for do, (_, own, name), (peer, address, _) in [(run, radio, far), (partial(server, run), far, radio)]:
        # Nothing but the test sends: what the kernel sends from another CPU makes this CPU's queue overtake itself.
        for command in [
            f"ip link set {name} addrgenmode none",
            f"ip address add {own}/24 dev {name}",
            f"ip link set {name} up",
            f"ip neighbour add {address} lladdr {peer} dev {name} nud permanent",
        ]:
            do(*command.split())
    # Room for what a receiver's own window lets a server send.
    shape = "tc qdisc add dev server0 root tbf rate 40mbit burst 20kb limit 32mb"
    server(run, *shape.split())


def main() -> None:
    stay_on_one_processor()
    server = Host()
    link(server)
    talking, files = Host(apart=False), Host(apart=False)
    answering, capturing = Host(server), Host(server)
    ends = [
        End(MOBILE, SERVER, "radio0", Host(apart=False), Host(apart=False)),
        End(SERVER, MOBILE, "server0", Host(server), Host(server)),
    ]
    for end in ends:
        end.receiver(bind, end.address)
    answering.begin(answer)
    capturing.begin(capture)
    assert LISTENING.wait(PATIENCE)
    assert CAPTURING.wait(PATIENCE)
    seen: dict = {}
    talking.begin(talk)
    assert TALKING.wait(PATIENCE)
    seen["alone"] = alone(ends)
    seen["datagrams"] = with_datagrams(ends, seen["alone"]["rate"], lambda: trouble(seen, files))
    DONE.set()
    seen |= talking.end() | files.end()
    SEEN.set()
    print(json.dumps(seen | capturing.end()))


main()
