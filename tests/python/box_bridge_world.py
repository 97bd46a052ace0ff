"""Every byte before and after a box, packet by packet; `test_box_bytes.py` runs it as root.

A mobile, a bridge and a server in three network namespaces. The box is on a port of the bridge, which passes frames as
they are: on that of the server (side "mobile") or that of the mobile (side "network"). Prints one JSON object.
"""

import ctypes
import fcntl
import json
import socket
import struct
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from box_hosts import FORK, PATIENCE, Box, Capture, Host, run, stay_on_one_processor, stream

SIDE, OFFLOADS = sys.argv[1], sys.argv[2] == "offloads"
INTERFACE = {"mobile": "far0", "network": "near0"}[SIDE]
FILE = Path("/run/ackclock/box.toml")
# Servers are outside of the networks of subscribers.
SERVER, SERVER6 = "10.80.1.1", "fd80:0:1::1"
ACTED_ON, HELD_BACK = ["10.80.0.2", "fd80:0:0:2::1"], ["10.80.0.3", "fd80:0:0:3::1"]
MOBILE_MAC, SERVER_MAC = "10:80:00:00:00:02", "10:80:00:00:00:01"
PORT, SIZE = 8001, 400_000
MARK = b"from now on nothing is changed"
ENOUGH = FORK.Event()

# ---- The ends ----


def set_up(interface: str, addresses: list[str], peers: list[str], peer_mac: str) -> None:
    run("ip", "link", "set", interface, "up", "addrgenmode", "none")
    for address in addresses:
        length = "/32" if ":" in address else "/16"
        run("ip", "address", "add", address + length, "dev", interface, *["nodad"] * (":" in address))
    for peer in peers:
        run("ip", "neighbour", "add", peer, "lladdr", peer_mac, "dev", interface, "nud", "permanent")
    if not OFFLOADS:
        turn_off_offloads(interface)


def turn_off_offloads(interface: str) -> None:
    """Checksums are then in the packets, and no packet is longer than the link allows."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # ETHTOOL_STXCSUM, STSO, SGSO and SGRO by SIOCETHTOOL.
        for command in [0x17, 0x1F, 0x24, 0x2C]:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            fcntl.ioctl(any_socket, 0x8946, struct.pack("16sP16x", interface.encode(), ctypes.addressof(value)))


def serve() -> None:
    """Sends a file for every byte that a connection sends."""
    shape = "tc qdisc add dev server0 root tbf rate 20mbit burst 20kb limit 32mb"
    run(*shape.split())

    def send(connection: socket.socket) -> None:
        while connection.recv(1):
            connection.sendall(bytes(SIZE))
        connection.close()

    def accept(listener: socket.socket) -> None:
        while True:
            threading.Thread(target=send, args=listener.accept()[:1], daemon=True).start()

    for address in [SERVER, SERVER6]:
        listener = stream(address)
        listener.bind((address, PORT))
        listener.listen()
        threading.Thread(target=accept, args=(listener,), daemon=True).start()


class Mobile:
    """Connections by name, in the process of the mobile."""

    opened: dict[str, socket.socket] = {}  # noqa: RUF012 one process has one

    @classmethod
    def open(cls, name: str, address: str) -> str:
        """Returns the connection as `source` names it."""
        connection = cls.opened[name] = stream(address)
        connection.bind((address, 0))
        connection.connect((SERVER6 if ":" in address else SERVER, PORT))
        return f"{address}:{connection.getsockname()[1]}"

    @classmethod
    def fetch(cls, name: str) -> bool:
        connection, got = cls.opened[name], 0
        connection.sendall(b"x")
        while got < SIZE and (data := connection.recv(65536)):
            got += len(data)
        return got == SIZE

    @classmethod
    def fetch_until_enough(cls, name: str) -> bool:
        return all(iter(lambda: None if ENOUGH.is_set() else cls.fetch(name), None))


def datagrams(own: str, peer: str, text: bytes = b"", number: int = 100) -> None:
    """UDP and ICMP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind((own, 0))
        for size in range(number):
            udp.sendto(text or bytes(10 * size), (peer, 9))
    if not text:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as ping:
            echo = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + bytes(56)
            ping.bind((own, 0))
            ping.sendto(echo[:2] + struct.pack("!H", folded(echo)) + echo[4:], (peer, 0))


class Tap:
    """The capture of a process, read when all is over."""

    frames: Capture

    @classmethod
    def begin(cls, interface: str) -> None:
        cls.frames = Capture(interface, only_tcp=False)

    @classmethod
    def end(cls) -> list[tuple[bytes, bool]]:
        seen = list(iter(lambda: cls.frames.next(0.3), None))
        assert cls.frames.lost() == 0
        return seen


# ---- What differs ----


def folded(data: bytes) -> int:
    """The checksum of the Internet."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) // 2 * 2]))
    total += data[-1] << 8 if len(data) % 2 else 0
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def tcp_of(frame: bytes) -> tuple[int, bytes] | None:
    """Where the header of TCP begins, and the addresses as checksums take them."""
    kind = frame[12:14]
    if kind == b"\x08\x00" and frame[23] == 6:
        return 14 + (frame[14] & 15) * 4, frame[26:34]
    if kind == b"\x86\xdd" and frame[20] == 6:
        return 54, frame[22:54]
    return None


def is_right(frame: bytes) -> bool:
    """Whether the checksum of TCP is right."""
    at, addresses = tcp_of(frame) or (0, b"")
    end = 14 + struct.unpack("!H", frame[16:18])[0] if len(addresses) == 8 else len(frame)
    return folded(addresses + struct.pack("!II", end - at, 6) + frame[at:end]) == 0


def source(frame: bytes) -> str:
    at, addresses = tcp_of(frame) or (0, b"")
    family, size = (socket.AF_INET, 4) if len(addresses) == 8 else (socket.AF_INET6, 16)
    return f"{socket.inet_ntop(family, addresses[:size])}:{struct.unpack('!H', frame[at : at + 2])[0]}"


def fault(old: bytes, new: bytes) -> str | None:
    """Why a frame may not have been changed like this."""
    header = tcp_of(old)
    if header is None or len(old) != len(new):
        return "it is no TCP, or its length changed"
    at = header[0]
    if {place - at for place in range(len(old)) if old[place] != new[place]} - {14, 15, 16, 17}:
        return "more than window and checksum changed"
    before, after = (struct.unpack("!H", frame[at + 14 : at + 16])[0] for frame in [old, new])
    if old[at + 13] & 0x17 != 0x10:
        return "it is no ACK"
    if not 0 < after < before:
        return f"the window went from {before} to {after}"
    if not OFFLOADS and not (is_right(old) and is_right(new)):
        return "a checksum is wrong"
    return None


def compare(before: list[bytes], after: list[bytes]) -> dict:
    """Frames of one direction on both sides of the box; the changed ones by who sent them."""
    changed = [(old, new) for old, new in zip(before, after, strict=False) if old != new]
    return {
        "frames": [len(before), len(after)],
        "bytes": sum(len(frame) for frame in before),
        "acks": Counter(source(frame) for frame in before if tcp_of(frame)),
        "changed": Counter(source(old) for old, _ in changed),
        "faults": [said for old, new in changed if (said := fault(old, new))],
    }


def sent_by(address: str, seen: list[tuple[bytes, bool]]) -> list[bytes]:
    mac = bytes.fromhex(address.replace(":", ""))
    return [frame for frame, _ in seen if frame[6:12] == mac]


# ---- What happens ----


def configure(act: bool) -> None:
    FILE.write_text(f"""
[box]
interface = "{INTERFACE}"
side = "{SIDE}"
act = {str(act).lower()}
subscribers = ["10.80.0.0/24", "fd80::/48"]
act_on = ["{ACTED_ON[0]}", "{ACTED_ON[1]}/64"]
[edge]
regulator = "wrs"
buffer = "10p"
""")


class World:
    """Mobile and server, and what both saw."""

    def __init__(self) -> None:
        self.mobile, self.server = Host(), Host()
        run("ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        for port, name, mac, host in [
            ("near0", "mobile0", MOBILE_MAC, self.mobile),
            ("far0", "server0", SERVER_MAC, self.server),
        ]:
            pair = f"ip link add {port} type veth peer name {name} address {mac} netns {host.process.pid}"
            run(*pair.split())
            run("ip", "link", "set", port, "master", "br0")
        for interface in ["br0", "near0", "far0"]:
            run("ip", "link", "set", interface, "up", "addrgenmode", "none")
        mobiles, servers = [*ACTED_ON, *HELD_BACK], [SERVER, SERVER6]
        self.mobile(set_up, "mobile0", mobiles, servers, SERVER_MAC)
        self.server(set_up, "server0", servers, mobiles, MOBILE_MAC)
        self.server(serve)

    def captured(self, happens) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes]]:
        """Frames of the mobile before and after the box, then those of the server, while something happens."""
        self.mobile(Tap.begin, "mobile0")
        self.server(Tap.begin, "server0")
        happens()
        near, far = self.mobile(Tap.end), self.server(Tap.end)
        return tuple(
            sent_by(mac, seen)
            for mac, seen in [(MOBILE_MAC, near), (MOBILE_MAC, far), (SERVER_MAC, far), (SERVER_MAC, near)]
        )

    def traffic(self) -> None:
        """Of each subscriber, of a connection that is older than the box, and what is no TCP."""
        for name in [*ACTED_ON, *HELD_BACK]:
            self.mobile(Mobile.open, name, name)
            assert self.mobile(Mobile.fetch, name)
        assert self.mobile(Mobile.fetch, "older")
        self.mobile(datagrams, ACTED_ON[0], SERVER)
        self.server(datagrams, SERVER, ACTED_ON[0])

    def phase(self) -> dict:
        up, up_after, down, down_after = self.captured(self.traffic)
        return {"up": compare(up, up_after), "down": compare(down, down_after)}

    def bypassed(self, box: Box) -> dict:
        """What is changed before and after `box bypass on` returns, while a connection is busy."""
        took = 0.0

        def happens() -> None:
            nonlocal took
            self.mobile(Mobile.open, "busy", ACTED_ON[0])
            self.mobile.begin(Mobile.fetch_until_enough, "busy")
            box.grows("clipped", 20)
            begun = time.monotonic()
            box("bypass", "on")
            took = time.monotonic() - begun
            marker = Host(self.mobile)
            marker(datagrams, ACTED_ON[0], SERVER, MARK, 1)
            box.grows("acks", 100)
            ENOUGH.set()
            assert self.mobile.end()

        before, after, *_ = self.captured(happens)
        mark = next(at for at, frame in enumerate(before) if MARK in frame)
        assert MARK in after[mark]
        return {
            "ms": 1000 * took,
            "until": compare(before[:mark], after[:mark]),
            "later": compare(before[mark:], after[mark:]),
        }


def main() -> None:
    stay_on_one_processor()
    world = World()
    # Its SYN passes before there is a box.
    older = world.mobile(Mobile.open, "older", ACTED_ON[0])
    assert world.mobile(Mobile.fetch, "older")
    box = Box(str(FILE))
    configure(act=False)
    process = box.start()
    seen = {"older": older, "measured": world.phase(), "lower": box.counts()["lower"]}
    configure(act=True)
    box("reload")
    seen["acted"] = world.phase()
    seen["bypassed"] = world.bypassed(box)
    seen["refused"] = box.counts()["refused"]
    box("stop")
    process.wait(PATIENCE)
    print(json.dumps(seen))


main()
