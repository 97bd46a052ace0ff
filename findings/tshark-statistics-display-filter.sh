#!/bin/bash
# Guess:   `tshark -q -Y FILTER -z io,stat,1` (or `-z conv,udp`) counts the packets that pass the display
#          filter, as the packet list without `-q` does.
# Found:   -Y only selects what is printed or written: statistics count every packet of the file, without a hint. A rate per
#          flow made this way is the rate of all flows. The filter must be part of the statistic (`-z io,stat,1,FILTER`,
#          `-z conv,udp,FILTER`), or be a read filter with two passes (`-2 -R FILTER`).
# Version: tshark 4.0.17.
# Source:  a capture of two flows of ten packets each.
set -euo pipefail
command -v python3 tshark >/dev/null || { echo "skipped: python3 and tshark are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 - <<'CODE'
import struct
with open("flows.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
    for number in range(20):
        datagram = struct.pack(">HHHH", 4000, 5001 + number % 2, 980, 0) + bytes(972)
        packet = struct.pack(">BBHHHBBHII", 0x45, 0, 1000, 1, 0, 64, 17, 0, 0x0A000001, 0x0A000002) + datagram
        file.write(struct.pack("<IIII", 1_700_000_000, number * 40_000, len(packet), len(packet)) + packet)
CODE
filter="udp.dstport == 5001"
listed=$(tshark -r flows.pcap -Y "$filter" 2>/dev/null | wc -l)
frames() { # TSHARK OPTIONS: packets that a statistic counts
    tshark -r flows.pcap -q "$@" 2>/dev/null | awk -F'|' '/ <> / {frames += $3} END {print frames + 0}'
}
shown=$(frames -Y "$filter" -z io,stat,1) inner=$(frames -z "io,stat,1,$filter") read=$(frames -2 -R "$filter" -z io,stat,1)
conversations=$(tshark -r flows.pcap -q -Y "$filter" -z conv,udp 2>/dev/null | grep -c '<->')
echo "seen with $(tshark -v 2>/dev/null | head -1), a filter for one flow of two:"
echo "packets: list with -Y $listed; io,stat with -Y $shown, with the filter inside $inner, with -2 -R $read"
echo "conversations of -z conv,udp with -Y: $conversations"
[ "$listed $shown $inner $read $conversations" = "10 20 10 10 2" ] || { echo "changed"; exit 1; }
