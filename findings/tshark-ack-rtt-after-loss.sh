#!/bin/bash
# Guess:   `tcp.analysis.ack_rtt` of tshark is the RTT of the path: segments that were retransmitted give no sample (Karn's
#          algorithm), and neither do segments that SACK has acknowledged before.
# Found:   Both give one. A retransmitted segment counts from its first transmission; the ACK that ends a recovery counts
#          from the last segment it covers, although a SACK reported that one earlier. On a path of 100 ms the samples are
#          1.1 s and 200 ms, so the tail of a distribution of ack_rtt shows loss and recovery, not queueing delay.
# Version: tshark 4.0.17.
# Source:  the two captures below, as taken at the sender.
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
def ack(time, acknowledged, options=b""):
    return time, segment(2, ACK, 901, acknowledged, 0, options)
handshake = [
    (0, segment(1, SYN, 100, 0, 0, SACK_PERMITTED)),
    (100_000, segment(2, SYN | ACK, 900, 101, 0, SACK_PERMITTED)),
    (100_100, segment(1, ACK, 101, 901)),
]
# A segment is retransmitted after a timeout of 1 s and acknowledged 100 ms later.
write("timeout.pcap", [*handshake, data(200_000, 101), data(1_200_000, 101), ack(1_300_000, 1101)])
# The first of four segments is lost and retransmitted after three duplicate ACKs.
write("recovery.pcap", [
    *handshake, *(data(200_000 + 1000 * number, 101 + 1000 * number) for number in range(4)),
    *(ack(300_000 + 1000 * number, 101, sack(1101, 1101 + 1000 * number)) for number in (1, 2, 3)),
    data(303_500, 101), ack(403_500, 4101)])
CODE
python3 captures.py
last_rtt() { tshark -r "$1" -Y "tcp.srcport == 80 and tcp.analysis.ack_rtt" -T fields -e tcp.analysis.ack_rtt 2>/dev/null | tail -n 1; }
timeout=$(last_rtt timeout.pcap) recovery=$(last_rtt recovery.pcap)
echo "seen with $(tshark --version 2>/dev/null | head -n 1), path of 100 ms:"
echo "ACK of a segment retransmitted after 1 s: ack_rtt $timeout"
echo "ACK that ends a recovery: ack_rtt $recovery"
[[ $timeout == 1.1000* && $recovery == 0.2005* ]] || { echo "changed"; exit 1; }
