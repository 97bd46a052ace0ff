"""A download through a router with a known rate, captured at both ends as tcpdump does.

capture_world.py FOLDER CONGESTION_CONTROL FAMILY: sender, router and receiver, each in a network namespace; the router
sends 10 Mbit/s to the receiver (token bucket). Writes the captures to FOLDER and prints the bytes and packets that
the router sent, headers of Ethernet included. Runs in a network namespace of its own.
"""

import os
import re
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

SO_RCVBUFFORCE, SO_TIMESTAMPNS, ETH_P_ALL, IP, IPV6 = 33, 35, 3, 0x0800, 0x86DD
TOTAL = 4_000_000
Packet = tuple[int, int, int, bytes]


class Sniffer(threading.Thread):
    """Packets of an Ethernet interface: time in ns, protocol, kind (incoming or outgoing), and frame."""

    def __init__(self, interface: str) -> None:
        super().__init__()
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.socket.bind((interface, 0))
        self.socket.settimeout(0.2)
        self.packets: list[Packet] = []
        self.is_over = False

    def run(self) -> None:
        while True:
            try:
                frame, control, _, (_, protocol, kind, *_) = self.socket.recvmsg(1 << 17, 256)
            except TimeoutError:
                if self.is_over:
                    return
                continue
            seconds, nanoseconds = struct.unpack("qq", control[0][2])
            if protocol in (IP, IPV6):
                self.packets.append((10**9 * seconds + nanoseconds, protocol, kind, frame))

    def finished(self) -> list[Packet]:
        self.is_over = True
        self.join()
        return self.packets


def cooked(packet: Packet) -> bytes:
    """Linux cooked capture, LINKTYPE_LINUX_SLL."""
    _, protocol, kind, frame = packet
    return struct.pack(">HHH8sH", kind, 1, 6, frame[6:12], protocol) + frame[14:]


def cooked2(packet: Packet) -> bytes:
    """Linux cooked capture of several interfaces, LINKTYPE_LINUX_SLL2."""
    _, protocol, kind, frame = packet
    return struct.pack(">HHIHBB8s", protocol, 0, 2, 1, kind, 6, frame[6:12]) + frame[14:]


def pcap(frames: list[tuple[int, bytes]], link: int, snaplen: int = 262144) -> bytes:
    """A file of tcpdump, with microseconds."""
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snaplen, link)]
    for at, data in frames:
        cut = data[:snaplen]
        out.append(struct.pack("<4I", at // 10**9, at % 10**9 // 1000, len(cut), len(data)) + cut)
    return b"".join(out)


def pcapng(frames: list[tuple[int, bytes]], link: int, snaplen: int = 262144) -> bytes:
    """A file of Wireshark, with nanoseconds."""
    resolution = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    out = [
        struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28),
        struct.pack("<IIHHI", 1, 32, link, 0, snaplen) + resolution + struct.pack("<I", 32),
    ]
    for at, data in frames:
        cut = data[:snaplen]
        length = 32 + len(cut) + -len(cut) % 4
        out.append(struct.pack("<7I", 6, length, 0, at >> 32, at & 0xFFFFFFFF, len(cut), len(data)))
        out.append(cut + bytes(-len(cut) % 4) + struct.pack("<I", length))
    return b"".join(out)


def serve(folder: Path, congestion_control: str) -> None:
    """The sender."""
    sniffer = Sniffer("sender1")
    sniffer.start()
    with socket.create_server(("::", 8001), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        print("ready", flush=True)
        with server.accept()[0] as client:
            client.sendall(bytes(TOTAL))
            client.shutdown(socket.SHUT_WR)
            client.recv(1)
    frames = [(at, frame) for at, _, _, frame in sniffer.finished()]
    (folder / "sender.pcap").write_bytes(pcap(frames, 1))


def fetch(folder: Path, host: str) -> None:
    """The receiver."""
    sniffer = Sniffer("receiver1")
    sniffer.start()
    with socket.create_connection((host, 8001), timeout=60) as server:
        received = 0
        while piece := server.recv(1 << 16):
            received += len(piece)
    assert received == TOTAL
    packets = sniffer.finished()
    raw, ethernet = ([(packet[0], packet[3][header:]) for packet in packets] for header in (14, 0))
    sll, sll2 = ([(packet[0], form(packet)) for packet in packets] for form in (cooked, cooked2))
    files = {
        "raw.pcap": pcap(raw, 101), "raw.pcapng": pcapng(raw, 101), "raw-cut.pcap": pcap(raw, 101, 80),
        "ethernet.pcap": pcap(ethernet, 1), "ethernet.pcapng": pcapng(ethernet, 1),
        "ethernet-cut.pcapng": pcapng(ethernet, 1, 96), "sll.pcap": pcap(sll, 113),
        "sll2.pcapng": pcapng(sll2, 276), "sll2-cut.pcap": pcap(sll2, 276, 96),
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).write_bytes(content)


def ip(words: str, inside: Sequence[str] = ()) -> None:
    subprocess.run([*inside, "ip", *words.split()], check=True)


def world(folder: str, congestion_control: str, family: str) -> None:
    """The router, which starts sender and receiver."""
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1")
    with ExitStack() as hosts:
        sender, receiver = (connected(name, number, hosts) for number, name in ((8, "sender"), (9, "receiver")))
        bucket = "qdisc add dev receiver0 root tbf rate 10mbit burst 64kb latency 200ms"
        subprocess.run(["tc", *bucket.split()], check=True)
        itself = [sys.executable, __file__]
        serving = [*sender, *itself, "serve", folder, congestion_control]
        with subprocess.Popen(serving, stdout=subprocess.PIPE) as server:
            server.stdout.readline()
            host = "10.8.0.2" if family == "ipv4" else "fd08::2"
            subprocess.run([*receiver, *itself, "fetch", folder, host], check=True)
        assert server.returncode == 0
        tc = ["tc", "-s", "qdisc", "show", "dev", "receiver0"]
        shown = subprocess.run(tc, capture_output=True, text=True, check=True)
    print(*re.search(r"Sent (\d+) bytes (\d+) pkt", shown.stdout).groups())


def connected(name: str, number: int, hosts: ExitStack) -> list[str]:
    """Connects a host to the router; returns the words that run a command on it."""
    holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec sleep 300"], stdout=subprocess.PIPE)
    hosts.callback(holder.kill)
    holder.stdout.readline()
    enter = ["nsenter", "-t", str(holder.pid), "-n"]
    ip(f"link add {name}0 type veth peer name {name}1")
    ip(f"link set {name}1 netns {holder.pid}")
    for end, inside in ((0, []), (1, enter)):
        ip(f"address add 10.{number}.0.{end + 1}/24 dev {name}{end}", inside)
        ip(f"address add fd0{number}::{end + 1}/64 dev {name}{end} nodad", inside)
        ip(f"link set {name}{end} up", inside)
    ip(f"route add default via 10.{number}.0.1", enter)
    ip(f"-6 route add default via fd0{number}::1", enter)
    return enter


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(Path(sys.argv[2]), sys.argv[3])
    elif sys.argv[1] == "fetch":
        fetch(Path(sys.argv[2]), sys.argv[3])
    else:
        os.makedirs(sys.argv[1], exist_ok=True)
        world(*sys.argv[1:])
