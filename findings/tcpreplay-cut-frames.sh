#!/bin/bash
# Guess:   tcpreplay sends the frames of a capture that was made with a short snaplen at their original length, padded, or
#          refuses or reports them as truncated; `--mbps` is the load of the original frames.
# Found:   It sends what was captured, frames of 64 instead of 1250 bytes, and says "Truncated packets: 0". `--mbps` is
#          reached with twenty times the packets, so a replay that should take 3.5 s is over in 0.2 s.
# Version: tcpreplay 4.4.3 (Debian 12: tcpreplay 4.4.3-1, libdumbnet1).
# Source:  a capture of 700 frames, complete and cut, replayed into a veth pair; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v apt-get dpkg ip python3 unshare >/dev/null ||
    { echo "skipped: root, apt-get, dpkg, iproute2 and python3 are needed"; exit 77; }
if [ "${1:-}" != inside ]; then
    sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    (cd "$folder" && apt-get download -qq tcpreplay libdumbnet1 >/dev/null 2>&1 && for package in *.deb; do dpkg -x "$package" .; done) ||
        { echo "skipped: tcpreplay cannot be had"; exit 77; }
    script=$(readlink -f "$0")
    LD_LIBRARY_PATH=$(echo "$folder"/usr/lib/*-linux-gnu) PATH=$PATH:$folder/usr/bin unshare -n "$script" inside "$folder" || exit $?
    exit
fi
cd "$2"
tcpreplay -V >/dev/null 2>&1 || { echo "skipped: tcpreplay does not start here"; exit 77; }
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add wire0 type veth peer name wire1
ip link set wire0 up; ip link set wire1 up
python3 - <<'CODE'
import struct
for name, snaplen in (("complete.pcap", 65535), ("cut.pcap", 64)):
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snaplen, 1))
        for number in range(700):
            datagram = struct.pack(">HHHH", 4000, 5001, 1216, 0) + bytes(1208)
            frame = bytes(12) + b"\x08\x00" + struct.pack(">BBHHHBBHII", 0x45, 0, 1236, 1, 0, 64, 17, 0, 0x0A000001, 0x0A000002) + datagram
            kept = frame[:snaplen]
            file.write(struct.pack("<IIII", 1_700_000_000 + number // 100, number % 100 * 10_000, len(kept), len(frame)) + kept)
CODE
sent() { awk '$1 == "wire0:" {print $10}' /proc/net/dev; }
replay() { # FILE: bytes sent, packets reported as truncated, seconds
    local start
    start=$(sent)
    tcpreplay -i wire0 --mbps=2 "$1" >report.txt 2>&1 || { cat report.txt; exit 77; }
    echo "$(($(sent) - start)) $(sed -n 's/.*Truncated packets: *//p; s/^Actual.* in \([0-9.]*\) seconds.*/\1/p' report.txt | sort -n | paste -s -d ' ')"
}
complete=$(replay complete.pcap) cut=$(replay cut.pcap)
echo "seen with $(tcpreplay -V 2>&1 | head -1), --mbps=2:"
echo "complete frames, bytes sent, packets reported as truncated and seconds: $complete"
echo "cut frames, bytes sent, packets reported as truncated and seconds: $cut"
read -r bytes _ seconds <<<"$complete"
read -r cut_bytes truncated cut_seconds <<<"$cut"
[ "$bytes $cut_bytes $truncated" = "875000 44800 0" ] && awk "BEGIN {exit !($seconds > 3 && $cut_seconds < 1.5)}" || { echo "changed"; exit 1; }
