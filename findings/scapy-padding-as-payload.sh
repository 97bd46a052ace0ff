#!/bin/bash
# Guess:   `len(packet[TCP].payload)` of scapy is the number of data bytes of a segment: 0 for a pure ACK.
# Found:   It is 6 for an ACK in an Ethernet frame of 60 bytes, the minimum, to which network cards pad: scapy makes the
#          padding a layer inside TCP. ACKs look like data, the bytes of a download's reverse direction are not 0, and
#          duplicate ACKs are missed. A capture at the sender does not show it, because the card pads later. The IP length
#          has the right number.
# Version: scapy 2.6.1; dpkt 1.9.8 has 0 bytes.
# Source:  the frame below, an ACK without options.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: python3 is needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" -q install scapy==2.6.1 dpkt==1.9.8 2>/dev/null ||
    { echo "skipped: the packages cannot be had"; exit 77; }
"$folder/venv/bin/python" - <<'CODE' || { echo "changed"; exit 1; }
import struct, sys
import dpkt
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
MINIMUM, ACK = 60, 0x10
segment = struct.pack(">HHIIBBHHH", 5001, 5002, 1, 1, 5 << 4, ACK, 500, 0, 0)
packet = struct.pack(">BBHHHBBHII", 0x45, 0, 40, 1, 0, 64, 6, 0, 0x0A000001, 0x0A000002) + segment
frame = (bytes(12) + b"\x08\x00" + packet).ljust(MINIMUM, b"\0")
read = Ether(frame)
payload = len(read[TCP].payload)
by_length = read[IP].len - 4 * read[IP].ihl - 4 * read[TCP].dataofs
other = len(dpkt.ethernet.Ethernet(frame).data.data.data)
print(f"seen for an ACK in {MINIMUM} bytes: scapy {payload} bytes of payload, {by_length} by the IP length; dpkt {other}")
sys.exit(0 if (payload, by_length, other) == (6, 0, 0) else 1)
CODE
