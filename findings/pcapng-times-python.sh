#!/bin/bash
# Guess:   Python readers of pcapng return the capture times that Wireshark shows for a valid file.
# Found:   dpkt applies the resolution (if_tsresol) of the first interface to all: after `mergecap` of a microsecond and a
#          nanosecond capture, times of the second are 1000 times too large. scapy and python-pcapng do not add the offset
#          of an interface (if_tsoffset): times start in 1970. All are silent.
# Version: dpkt 1.9.8, scapy 2.6.1, python-pcapng 2.1.1.
# Source:  section 4.2 of the pcapng specification (draft-ietf-opsawg-pcapng), and the two files below.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: python3 is needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv && venv/bin/pip -q install dpkt==1.9.8 scapy==2.6.1 python-pcapng==2.1.1 2>/dev/null ||
    { echo "skipped: the packages cannot be had"; exit 77; }
venv/bin/python - <<'CODE'
import struct, sys
import dpkt, pcapng
from scapy.utils import rdpcap

START = 1_700_000_000  # seconds
MICROSECONDS, NANOSECONDS = struct.pack("<HHB3x", 9, 1, 6), struct.pack("<HHB3x", 9, 1, 9)
OFFSET = struct.pack("<HHq", 14, 8, START)
def block(kind, body):
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))
def interface(options):
    return block(1, struct.pack("<HHI", 101, 0, 65535) + options + bytes(4))
def packet(number, time):
    datagram = struct.pack(">BBHHHBBHII", 0x45, 0, 28, 1, 0, 64, 17, 0, 0x0A000001, 0x0A000002) + struct.pack(">HHHH", 5000, 5001, 8, 0)
    return block(6, struct.pack("<IIIII", number, time >> 32, time & 0xFFFFFFFF, len(datagram), len(datagram)) + datagram)
def write(name, *blocks):
    with open(name, "wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + b"".join(blocks))
write("merged.pcapng", interface(MICROSECONDS), interface(NANOSECONDS),
      packet(0, START * 10**6 + 250_000), packet(1, START * 10**9 + 500_000_000))
write("offset.pcapng", interface(MICROSECONDS + OFFSET), packet(0, 250_000), packet(0, 500_000))
readers = {
    "dpkt": lambda name: [time for time, _ in dpkt.pcapng.Reader(open(name, "rb"))],
    "scapy": lambda name: [packet.time for packet in rdpcap(name)],
    "python-pcapng": lambda name: [block.timestamp for block in pcapng.FileScanner(open(name, "rb")) if hasattr(block, "packet_data")],
}
right = [START + 0.25, START + 0.5]
seen = {}
for name in ("merged.pcapng", "offset.pcapng"):
    for reader, read in readers.items():
        times = [float(time) for time in read(name)]
        seen[name, reader] = times == right
        print(f"seen: {name}, {reader}: {times}{'' if times == right else ', valid are ' + str(right)}")
wrong = {key for key, is_right in seen.items() if not is_right}
sys.exit(0 if wrong == {("merged.pcapng", "dpkt"), ("offset.pcapng", "scapy"), ("offset.pcapng", "python-pcapng")} else 1)
CODE
