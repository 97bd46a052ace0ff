#!/bin/bash
# Guess:   scapy's rdpcap and PcapReader return each packet of a capture at its captured length.
# Found:   Both cut packets at 65535 bytes, without a warning, also in a file whose snaplen is 262144, the default of
#          tcpdump. Super-packets of a BIG TCP interface (gso_max_size above 65536) are longer: a rate from len(packet)
#          is about three times too low at 184306 bytes. `wirelen` has the length.
# Version: scapy 2.6.1; dpkt 1.9.8 returns all bytes.
# Source:  the capture below, of one IPv6 super-packet of 184306 bytes, as such an interface has it.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: python3 is needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv && venv/bin/pip -q install scapy==2.6.1 dpkt==1.9.8 2>/dev/null || { echo "skipped: the packages cannot be had"; exit 77; }
venv/bin/python - <<'CODE' || { echo "changed"; exit 1; }
import struct, sys
import dpkt
from scapy.utils import rdpcap
LENGTH, SNAPLEN, ETHERNET, TCP = 184306, 262144, 1, 6
host = lambda number: bytes(15) + bytes([number])
# The payload length of such a packet is 0.
segment = struct.pack(">HHIIBBHHH", 5001, 5002, 1, 1, 5 << 4, 0x10, 500, 0, 0)
packet = bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, 0, TCP, 64) + host(1) + host(2) + segment
packet += bytes(LENGTH - len(packet))
with open("big.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAPLEN, ETHERNET))
    file.write(struct.pack("<IIII", 1_700_000_000, 0, LENGTH, LENGTH) + packet)
[read] = rdpcap("big.pcap")
[(_, other)] = dpkt.pcap.Reader(open("big.pcap", "rb"))
print(f"in the file: a packet of {LENGTH} bytes")
print(f"seen: scapy {len(read.original)} bytes, wirelen {read.wirelen}; dpkt {len(other)} bytes")
sys.exit(0 if (len(read.original), read.wirelen, len(other)) == (65535, LENGTH, LENGTH) else 1)
CODE
