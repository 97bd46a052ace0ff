#!/bin/bash
# Guess:   `tshark -z io,stat,1` puts each packet into the interval of its time, and the intervals add up to the capture.
# Found:   A packet whose time is before its predecessors' is counted in the interval that is being filled, not in its own: an
#          unsorted capture, as of several queues of a network card, has a gap and a peak in its rate, and no warning.
#          And if a capture lasts a whole number of intervals, its last packet is in none: of 31 packets in 3.0 s, 30 are
#          counted.
# Version: tshark, reordercap 4.0.17.
# Source:  captures of four packets, of which the third comes one interval late, and of 31 packets each 100 ms.
set -euo pipefail
command -v python3 tshark reordercap >/dev/null || { echo "skipped: python3, tshark and reordercap are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 - <<'CODE'
import struct
datagram = struct.pack(">HHHH", 4000, 5001, 980, 0) + bytes(972)
packet = struct.pack(">BBHHHBBHII", 0x45, 0, 1000, 1, 0, 64, 17, 0, 0x0A000001, 0x0A000002) + datagram
for name, times in (("unsorted.pcap", (0, 2200, 1200, 3300)), ("whole.pcap", range(0, 3001, 100))):
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for milliseconds in times:
            at = 1_700_000_000 + milliseconds // 1000, milliseconds % 1000 * 1000
            file.write(struct.pack("<IIII", *at, len(packet), len(packet)) + packet)
CODE
reordercap unsorted.pcap sorted.pcap >/dev/null 2>&1
intervals() { tshark -r "$1" -q -z io,stat,1 2>/dev/null | awk -F'|' '/ <> / {printf "%d ", $3}'; }
unsorted=$(intervals unsorted.pcap) sorted=$(intervals sorted.pcap) whole=$(intervals whole.pcap)
echo "seen with $(tshark -v 2>/dev/null | head -1), packets in each interval of 1 s:"
echo "packets at 0, 2.2, 1.2 and 3.3 s: $unsorted; after reordercap: $sorted"
echo "31 packets at 0, 0.1, ... 3.0 s: $whole"
[ "$unsorted/$sorted/$whole" = "1 0 2 1 /1 1 1 1 /10 10 10 " ] || { echo "changed"; exit 1; }
