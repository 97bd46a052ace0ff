#!/bin/bash
# Guess:   A link of varying rate can be emulated by `tc qdisc change ... tbf rate` at each step of a recording: a change
#          keeps the tokens that are left, so the mean rate is that of the recording.
# Found:   Each change fills the bucket. With steps of 100 ms at an unchanged rate of 1 Mbit/s and a burst of 15000 bytes,
#          the filter sends twice its rate: every step adds up to one burst.
# Version: Linux 6.18, iproute2 6.1.
# Source:  bytes sent by a backlogged filter in 4 s, without and with changes; needs root.
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
filter="root tbf rate 1mbit burst 15000 limit 3000000"
sent() { tc -s qdisc show dev wire0 | sed -n 's/.*Sent \([0-9]*\) bytes.*/\1/p'; }
rate() { # COMMAND: kbit/s that the filter sends while the command runs once each 100 ms
    tc qdisc replace dev wire0 $filter
    python3 - <<'CODE'
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
SO_SNDBUFFORCE = 32
sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 10_000_000)
for _ in range(1500):
    sender.sendto(bytes(1458), ("10.9.0.2", 9))
CODE
    local before start
    before=$(sent) start=$(date +%s%N)
    for _ in {1..40}; do sleep 0.1; "$@"; done
    echo $((8000000 * ($(sent) - before) / ($(date +%s%N) - start)))
    tc qdisc del dev wire0 root
}
alone=$(rate true)
changed=$(rate tc qdisc change dev wire0 $filter)
echo "seen on Linux $(uname -r), $(tc -V), tbf rate 1mbit burst 15000:"
echo "without changes: $alone kbit/s"
echo "with a change to the same rate each 100 ms: $changed kbit/s"
[ "$alone" -gt 800 ] && [ "$alone" -lt 1200 ] && [ "$changed" -gt $((alone * 3 / 2)) ] || { echo "changed"; exit 1; }
