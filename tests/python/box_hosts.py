"""Hosts of the box's tests: processes in network namespaces, sockets, and right edges in a capture."""

import ctypes
import json
import multiprocessing
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

# Fork: a host calls functions of the script that made it.
FORK = multiprocessing.get_context("fork")
SO_RCVBUFFORCE, SO_ATTACH_FILTER, SOL_PACKET, PACKET_STATISTICS = 33, 26, 263, 6
PACKET_OUTGOING = 4
CLONE_NEWNET = 0x40000000
# Seconds that anything is waited for on a busy machine.
PATIENCE = 60


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def stay_on_one_processor() -> None:
    """A veth pair queues packets by CPU: on two CPUs, it reorders those of one connection by itself."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def stream(address: str = "0.0.0.0") -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


class Host:
    """A process in a network namespace of its own, or in that of another host. Calls functions one after the other."""

    def __init__(self, inside: "Host | None" = None, *, apart: bool = True) -> None:
        self._here, there = FORK.Pipe()
        self.process = FORK.Process(target=self._serve, args=(there, inside, apart), daemon=True)
        self.process.start()
        self.end()

    @staticmethod
    def _serve(pipe: Any, inside: "Host | None", apart: bool) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if inside is not None:
            with open(f"/proc/{inside.process.pid}/ns/net") as namespace:
                entered = libc.setns(namespace.fileno(), CLONE_NEWNET)
        else:
            entered = libc.unshare(CLONE_NEWNET) if apart else 0
        if entered:
            sys.exit(f"no network namespace: {os.strerror(ctypes.get_errno())}")
        pipe.send(None)
        while True:
            function, arguments = pipe.recv()
            try:
                pipe.send(function(*arguments))
            except Exception:
                traceback.print_exc()
                os._exit(1)

    def begin(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Starts a function; `end` waits for its result."""
        self._here.send((function, arguments))

    def end(self) -> Any:
        return self._here.recv()

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.begin(function, *arguments)
        return self.end()


class Box:
    """`ackclock box` on an interface or with a file, and its verbs, which work without the process too."""

    def __init__(self, target: str) -> None:
        self.target = target

    def start(self, *options: str) -> subprocess.Popen:
        """Returns once it has reported, after a second."""
        command = [str(shutil.which("ackclock")), "box", self.target, *options, "--json"]
        started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert started.stdout is not None
        started.stdout.readline()
        threading.Thread(target=started.stdout.read, daemon=True).start()
        return started

    def __call__(self, verb: str, *options: str) -> str:
        return run("ackclock", "box", verb, self.target, *options)

    def counts(self) -> dict[str, int]:
        return json.loads(self("status", "--json"))["counts"]

    def grows(self, key: str, by: int = 1) -> int:
        """By how much a count grew, once it did so by so much."""
        before, limit = self.counts()[key], time.monotonic() + PATIENCE
        while (now := self.counts()[key]) < before + by and time.monotonic() < limit:
            time.sleep(0.1)
        return now - before


class Capture:
    """Frames of an interface as a socket of packets sees them, the oldest first."""

    def __init__(self, interface: str, *, only_tcp: bool) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
        if only_tcp:
            # Protocol of IPv4 is TCP: else nothing of the frame is kept.
            ldh, ldb, jeq, ret = 0x28, 0x30, 0x15, 0x06
            program = [
                (ldh, 0, 0, 12),
                (jeq, 0, 3, 0x800),
                (ldb, 0, 0, 23),
                (jeq, 0, 1, 6),
                (ret, 0, 0, 256),
                (ret, 0, 0, 0),
            ]
            code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in program))
            filtered = struct.pack("@HP", len(program), ctypes.addressof(code))
            self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, filtered)
        self._socket.bind((interface, 3))

    def next(self, timeout: float | None) -> tuple[bytes, bool] | None:
        """A frame and whether it leaves the interface; none after so many seconds without one."""
        self._socket.settimeout(timeout)
        try:
            frame, place = self._socket.recvfrom(65535 + 64)
        except TimeoutError:
            return None
        return frame, place[2] == PACKET_OUTGOING

    def lost(self) -> int:
        """Frames that found no room."""
        return struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]


class Edges:
    """Right edges that the ACKs of one address advertise to the interface of a server, by connection."""

    def __init__(self, mobile: str) -> None:
        self._mobile = socket.inet_aton(mobile)
        self.scales, self.edges, self.ends, self.left, self.acks = {}, {}, {}, 0, 0

    def see(self, frame: bytes, leaves: bool) -> None:
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            return
        if leaves:
            self._see_sent(frame[14:])
        elif frame[26:30] == self._mobile:
            self._see_ack(frame[14:])

    def _see_sent(self, ip: bytes) -> None:
        """Notes where the server's data ends."""
        tcp = ip[(ip[0] & 15) * 4 :]
        source, target, seq, _, offset, flags, _ = struct.unpack("!HHIIBBH", tcp[:16])
        if flags & 1:
            size = struct.unpack("!H", ip[2:4])[0] - (ip[0] & 15) * 4 - (offset >> 4) * 4
            self.ends[target, source] = (seq + size + 1) % 2**32

    def _see_ack(self, ip: bytes) -> None:
        tcp = ip[(ip[0] & 15) * 4 :]
        source, target, _, ack, offset, flags, window = struct.unpack("!HHIIBBH", tcp[:16])
        connection = source, target
        if flags & 2:
            self.scales[connection], self.edges[connection] = scale_of(tcp[20 : (offset >> 4) * 4]), None
            self.ends.pop(connection, None)
            return
        if flags & 4 or not flags & 16 or connection not in self.scales:
            return
        if self.ends.get(connection) == ack:
            return  # Nothing can follow: what TIME-WAIT says of its window means nothing.
        self.acks += 1
        edge, last = ack + (window << self.scales[connection]), self.edges[connection]
        # Modulo 2^32.
        ahead = 0 if last is None else (edge - last + 2**31) % 2**32 - 2**31
        self.left += ahead < 0
        self.edges[connection] = edge if ahead >= 0 else last


def scale_of(options: bytes) -> int:
    at = 0
    while at < len(options) and options[at]:
        if options[at] == 1:
            at += 1
            continue
        if options[at] == 3:
            return options[at + 2]
        at += options[at + 1]
    return 0
