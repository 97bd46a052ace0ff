#!/bin/bash
# Guess:   `tcp.analysis.retransmission` of tshark marks every segment whose bytes are in the capture already.
# Found:   Not if new data was sent less than one handshake RTT before, and the last duplicate ACK is more than 20 ms old:
#          such a retransmission is marked `tcp.analysis.out_of_order`. On a path of 400 ms, where recovery after a delay
#          (RACK, limited transmit) does exactly this, a sender's capture shows reordering and no loss.
# Version: tshark 4.0.17.
# Source:  the capture below, as taken at the sender, and its twin with the retransmission 10 ms after the duplicate ACK.
set -euo pipefail
command -v python3 tshark >/dev/null || { echo "skipped: python3 and tshark are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >captures.py <<'CODE'
import struct
def segment(source, flags, sequence, acknowledged, payload=0, options=b""):
    ports = (5000, 80) if source == 1 else (80, 5000)
    header = 20 + len(options)
    tcp = struct.pack(">HHIIBBHHH", *ports, sequence, acknowledged, header << 2, flags, 65535, 0, 0) + options + bytes(payload)
    return struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0, 0x0A000000 + source, 0x0A000003 - source) + tcp
def write(name, packets):
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for time, packet in packets:
            file.write(struct.pack("<IIII", 1_700_000_000 + time // 10**6, time % 10**6, len(packet), len(packet)) + packet)
SYN, ACK = 2, 16
SACK_PERMITTED = bytes([1, 1, 4, 2])
def sack(left, right):
    return struct.pack(">BBBBII", 1, 1, 5, 10, left, right)
def data(time, sequence):
    return time, segment(1, ACK, sequence, 901, 1000)
def duplicate_ack(time, right):
    return time, segment(2, ACK, 901, 101, 0, sack(1101, right))
handshake = [
    (0, segment(1, SYN, 100, 0, 0, SACK_PERMITTED)),
    (400_000, segment(2, SYN | ACK, 900, 101, 0, SACK_PERMITTED)),
    (400_100, segment(1, ACK, 101, 901)),
]
for name, delay in (("soon.pcap", 10_000), ("later.pcap", 30_000)):
    write(name, [
        *handshake, *(data(500_000 + 1000 * number, 101 + 1000 * number) for number in range(4)),
        duplicate_ack(901_000, 2101), data(901_100, 4101), duplicate_ack(902_000, 3101), data(902_100, 5101),
        duplicate_ack(903_000, 4101), data(903_000 + delay, 101)])
CODE
python3 captures.py
marks() { tshark -r "$1" -T fields -e tcp.analysis.retransmission -e tcp.analysis.out_of_order -E separator=, 2>/dev/null | tail -n 1; }
soon=$(marks soon.pcap) later=$(marks later.pcap)
echo "seen with $(tshark --version 2>/dev/null | head -n 1), marks retransmission,out_of_order of a retransmission:"
echo "10 ms after the last duplicate ACK: $soon"
echo "30 ms after the last duplicate ACK: $later"
[ "$soon" = "1," ] && [ "$later" = ",1" ] || { echo "changed"; exit 1; }
