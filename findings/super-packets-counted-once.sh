#!/bin/bash
# Guess:   Counters of an interface (`ip -s link`) and of its queueing discipline (`tc -s qdisc`) show the same packets
#          and bytes, and a pfifo of 10 packets holds at most 10 packets of the MTU.
# Found:   With segmentation offload (veth by default), the device counts a super-packet of 44 segments once, with one set
#          of headers, and tc counts 44 with theirs. A pfifo of 10 packets holds 10 super-packets, which is 440 segments.
#          tc-tbf splits a super-packet only if it is longer than `burst`, so its queue can be 44 times as long as intended.
# Version: Linux 6.18, iproute2 6.1.
# Source:  20 UDP super-packets of 44 segments into a veth pair; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip tc python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add dev wire0 type veth peer name wire1
ip link set wire0 up; ip link set wire1 up
ip addr add 10.9.0.1/24 dev wire0
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev wire0
send() {
    python3 - <<'CODE'
import socket
SO_SNDBUFFORCE, UDP_SEGMENT = 32, 103
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 10_000_000)
sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1448)
for _ in range(20):
    sender.sendto(bytes(44 * 1448), ("10.9.0.2", 9))
CODE
}
tc qdisc add dev wire0 root pfifo limit 1000
send
device=$(ip -s -j link show wire0 | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["stats64"]["tx"]["packets"])')
counted=$(tc -s qdisc show dev wire0 | sed -n 's/.* bytes \([0-9]*\) pkt.*/\1/p')
tc qdisc replace dev wire0 root handle 1: tbf rate 100kbit burst 70000 limit 10000000
tc qdisc add dev wire0 parent 1:1 pfifo limit 10
send
queue=$(tc -s -j qdisc show dev wire0 root | python3 -c 'import json, sys; [one] = json.load(sys.stdin); print(one["backlog"], one["qlen"])')
read -r bytes packets <<<"$queue"
echo "seen on Linux $(uname -r), $(tc -V):"
echo "20 super-packets of 44 segments: the device counts $device packets, tc counts $counted"
echo "pfifo limit 10: $packets packets of $bytes bytes in all"
[ "$device" = 20 ] && [ "$counted" = 880 ] && [ "$packets" = 10 ] && [ "$bytes" -gt 600000 ] || { echo "changed"; exit 1; }
