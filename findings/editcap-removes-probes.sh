#!/bin/bash
# Guess:   `editcap -d` removes the copies that a capture on several interfaces or a mirror port has: equal frames within
#          moments. Packets that a sender has sent 20 ms apart stay.
# Found:   Time plays no part, a frame is compared with the four before it. Of probes or heartbeats with an equal payload,
#          over IPv6 (IPv4 has an identification), one is left, and the rest is counted as duplicates: a loss
#          or rate computed after this cleaning is wrong. `-w 0.001` compares within a millisecond.
# Version: editcap 4.0.17.
# Source:  twenty datagrams that a Python socket sends on loopback 20 ms apart, as captured; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v editcap ip python3 tshark unshare >/dev/null ||
    { echo "skipped: root, editcap, tshark, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ip link set lo up
cd "$folder"
python3 - <<'CODE'
import socket, struct, time
ETH_P_IPV6 = 0x86DD
taps = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IPV6))
taps.bind(("lo", ETH_P_IPV6))
receiver, sender = (socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) for _ in range(2))
receiver.bind(("::1", 0))
with open("probes.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for _ in range(20):
        sender.sendto(bytes(100), receiver.getsockname())
        frame = taps.recv(2000)
        now = time.time()
        file.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(frame), len(frame)) + frame)
        time.sleep(0.02)
CODE
packets() { tshark -r "$1" 2>/dev/null | wc -l; }
editcap -d probes.pcap removed.pcap >/dev/null 2>&1
editcap -w 0.001 probes.pcap within.pcap >/dev/null 2>&1
seen="$(packets probes.pcap) $(packets removed.pcap) $(packets within.pcap)"
read -r all removed within <<<"$seen"
echo "seen with $(editcap --version 2>/dev/null | head -1):"
echo "$all probes; $removed after editcap -d, $within after editcap -w 0.001"
[ "$seen" = "20 1 20" ] || { echo "changed"; exit 1; }
