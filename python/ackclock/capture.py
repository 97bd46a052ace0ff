"""Round-trip times of a capture: pcapng of `ackclock run --pcap`, or pcap of tcpdump.

A sample is the time from a data segment to the first ACK of its last byte, at the capture's first interface. A
retransmitted segment gives no sample (Karn), because its ACK is ambiguous.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ackclock.files import naming

PCAPNG = b"\x0a\x0d\x0d\x0a"
# Magic numbers of pcap, with byte order and seconds per tick.
PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6),
    b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
    b"\xa1\xb2\x3c\x4d": (">", 1e-9),
}
ETHERNET, RAW = 1, (101, 228, 229)
HEADER_OF_ETHERNET = 14
TCP = 6
Packet = tuple[float, bytes]
End = tuple[bytes, int]


def is_capture(head: bytes) -> bool:
    """Whether a file that begins with these four bytes is a capture."""
    return head == PCAPNG or head in PCAP


def round_trips(path: Path) -> list[float]:
    """Round-trip samples of a capture, ms.

    Raises:
        OSError: naming the file, if it cannot be read.
        ValueError: if it is not a complete capture of IP packets, or has no sample.
    """
    with naming(path):
        data = path.read_bytes()
    watched = _Watched()
    try:
        for time, packet in _packets(data):
            watched.see(time, packet)
    except (struct.error, IndexError):
        raise ValueError("the capture ends in the middle of a packet") from None
    if not watched.samples:
        raise ValueError("no data segment of TCP is acknowledged in it")
    return watched.samples


@dataclass
class _Watched:
    """Unacknowledged segments, by the endpoint that will acknowledge them."""

    waiting: dict[tuple[End, End], dict[int, float | None]] = field(default_factory=dict)
    highest: dict[tuple[End, End], int] = field(default_factory=dict)
    samples: list[float] = field(default_factory=list)

    def see(self, time: float, packet: bytes) -> None:
        """Process an IP packet."""
        if not (parsed := _segment(packet)):
            return
        source, target, seq, ack, length = parsed
        if length:
            key, end = (target, source), (seq + length) % 2**32
            waiting = self.waiting.setdefault(key, {})
            again = end in waiting or not _after(end, self.highest.get(key, (end - 1) % 2**32))
            waiting[end] = None if again else time
            if not again:
                self.highest[key] = end
        if ack is not None:
            waiting = self.waiting.get((source, target), {})
            reached = [end for end in waiting if not _after(end, ack)]
            sent = [waiting.pop(end) for end in reached]
            # If an ACK covers several segments, the last one triggered it.
            if sent and sent[-1] is not None and reached[-1] == ack:
                self.samples.append(1e3 * (time - sent[-1]))


def _after(a: int, b: int) -> bool:
    """Whether sequence number `a` is after `b`."""
    return 0 < (a - b) % 2**32 < 2**31


def _segment(packet: bytes) -> tuple[End, End, int, int | None, int] | None:
    """Source, destination, sequence number, ACK number and payload length; None if it is not TCP."""
    if packet[0] >> 4 == 4:
        start, protocol = 4 * (packet[0] & 15), packet[9]
        total = int.from_bytes(packet[2:4], "big")
        source, target = packet[12:16], packet[16:20]
    else:
        start, protocol = 40, packet[6]
        total = 40 + int.from_bytes(packet[4:6], "big")
        source, target = packet[8:24], packet[24:40]
    if protocol != TCP:
        return None
    ports = struct.unpack_from(">HHIIBB", packet, start)
    from_port, to_port, seq, ack, offset, flags = ports
    length = total - start - 4 * (offset >> 4)
    return (source, from_port), (target, to_port), seq, ack if flags & 0x10 else None, max(0, length)


def _packets(data: bytes) -> Iterator[Packet]:
    """Time in seconds and IP packet of each frame of the first interface."""
    if data[:4] in PCAP:
        order, tick = PCAP[data[:4]]
        link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
        at = 24
        while at < len(data):
            seconds, fraction, captured, _ = struct.unpack_from(order + "4I", data, at)
            yield seconds + tick * fraction, _bare(link, data[at + 16 : at + 16 + captured])
            at += 16 + captured
        return
    yield from _blocks(data)


def _blocks(data: bytes) -> Iterator[Packet]:
    order = "<" if data[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
    interfaces: list[tuple[int, float]] = []
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from(order + "2I", data, at)
        if size < 12:
            raise struct.error
        if kind == 1:
            link = struct.unpack_from(order + "H", data, at + 8)[0]
            interfaces.append((link, _tick(data[at + 16 : at + size - 4], order)))
        elif kind == 6:
            interface, high, low, captured = struct.unpack_from(order + "4I", data, at + 8)
            if interface == 0:
                link, tick = interfaces[0]
                yield tick * (high << 32 | low), _bare(link, data[at + 28 : at + 28 + captured])
        at += size


def _tick(options: bytes, order: str) -> float:
    """Seconds per tick, from the option if_tsresol."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(order + "2H", options, at)
        if code == 9:
            value = options[at + 4]
            return float(2.0 ** -(value & 0x7F) if value & 0x80 else 10.0**-value)
        if code == 0:
            break
        at += 4 + (length + 3) // 4 * 4
    return 1e-6


def _bare(link: int, frame: bytes) -> bytes:
    if link == ETHERNET:
        frame = frame[HEADER_OF_ETHERNET:]
    elif link not in RAW:
        raise ValueError(f"frames of link type {link}; it must be captured as IP packets or Ethernet")
    if not frame or frame[0] >> 4 not in (4, 6):
        # for example ARP
        return bytes([0x60]) + bytes(59)
    return frame
