#!/bin/bash
# Guess:   "Kb" of iftop and "Kbps" of `ifstat -b` are 1000 bit/s, as rates of links are given, and both tools, like the
#          counters of the interface, count whole frames.
# Found:   Both divide by 1024, for bits too, and iftop counts IP packets without the Ethernet header. 20 Mbit/s in frames of
#          1250 bytes are 19530 "Kbps" with ifstat and 18.9 "Mb" with iftop, 6 % less: a link that is full seems not to be.
# Version: iftop 1.0pre4, ifstat 1.1 (Debian 12: iftop 1.0~pre4-9, ifstat 1.1-8.2 and libsnmp40).
# Source:  2000 frames of 1250 bytes a second into a veth pair; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v apt-get dpkg ip python3 unshare >/dev/null ||
    { echo "skipped: root, apt-get, dpkg, iproute2 and python3 are needed"; exit 77; }
if [ "${1:-}" != inside ]; then
    sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    (cd "$folder" && apt-get download -qq iftop ifstat libsnmp40 >/dev/null 2>&1 && for package in *.deb; do dpkg -x "$package" .; done) ||
        { echo "skipped: the packages cannot be had"; exit 77; }
    echo "seen with $(cd "$folder" && echo *.deb):"
    script=$(readlink -f "$0")
    LD_LIBRARY_PATH=$(echo "$folder"/usr/lib/*-linux-gnu) PATH=$PATH:$folder/usr/bin:$folder/usr/sbin \
        unshare -n "$script" inside || exit $?
    exit
fi
iftop -h >/dev/null 2>&1 && ifstat -v >/dev/null 2>&1 || { echo "skipped: iftop or ifstat does not start here"; exit 77; }
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add wire0 type veth peer name wire1
ip link set wire0 up; ip link set wire1 up
ip addr add 10.9.0.1/24 dev wire0
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev wire0
python3 - <<'CODE' &
import socket, time
FRAME, HEADERS, FRAMES, PERIOD = 1250, 14 + 20 + 8, 20, 0.01  # bytes, bytes, in each period, seconds
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
at = time.monotonic()
while True:
    for _ in range(FRAMES):
        sender.sendto(bytes(FRAME - HEADERS), ("10.9.0.2", 9))
    at += PERIOD
    time.sleep(max(0, at - time.monotonic()))
CODE
trap 'kill $!' EXIT
bytes() { awk '$1 == "wire0:" {print $10}' /proc/net/dev; }
sleep 1
start=$(bytes)
ifstat=$(ifstat -b -i wire0 10 1 | awk 'END {print int($2)}')
counter=$((($(bytes) - start) * 8 / 10 / 1000))
iftop=$(iftop -t -n -N -s 12 -i wire0 2>/dev/null | awk '/^Total send rate/ {print $5}')
echo "mean of 10 s: counter of the interface $counter kbit/s, ifstat -b $ifstat Kbps, iftop $iftop"
python3 - "$counter" "$ifstat" "$iftop" <<'CODE' || { echo "changed"; exit 1; }
import sys
counter, ifstat, iftop = int(sys.argv[1]) / 1000, int(sys.argv[2]) / 1000, float(sys.argv[3].removesuffix("Mb"))
sys.exit(0 if 19.8 < counter and 19.3 < ifstat < 19.75 and 18.5 < iftop < 19.3 else 1)
CODE
