#!/bin/bash
# Guess:   When `tc qdisc change` raises the rate of a token bucket filter, the packets in its queue leave at the new rate.
# Found:   The timer of the old rate stays. Packets in the queue wait until the old rate would have sent the next one, or
#          until another packet is queued. After an outage emulated by a tiny rate, a sender whose window is full stays
#          blocked for as long as the tiny rate needs for one packet.
# Version: Linux 6.18, iproute2 6.1.
# Source:  ten packets in a filter of 2 kbit/s, which is changed to 10 Mbit/s; needs root.
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
tc qdisc add dev wire0 root tbf rate 2kbit burst 1600 limit 100000
send() { # COUNT: packets of 1400 bytes
    python3 -c 'import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1])): sender.sendto(bytes(1372), ("10.9.0.2", 9))' "$1"
}
sent() { tc -s qdisc show dev wire0 | sed -n 's/.* bytes \([0-9]*\) pkt.*/\1/p'; }
send 10
tc qdisc change dev wire0 root tbf rate 10mbit burst 1600 limit 100000
sleep 2
stuck=$(sent)
send 1
sleep 0.5
released=$(sent)
echo "seen on Linux $(uname -r), $(tc -V):"
echo "2 s after the change to 10 Mbit/s: $stuck of 10 packets sent"
echo "0.5 s after one more packet: $released of 11 packets sent"
[ "$stuck" -le 2 ] && [ "$released" = 11 ] || { echo "changed"; exit 1; }
