#!/bin/bash
# Guess:   When `tc qdisc change` or `tc class change` raises the rate of a shaper (tbf, htb), the packets in its queue
#          leave at the new rate.
# Found:   The next packet leaves when the old rate would have sent it. TBF notices the new rate earlier if another packet
#          is queued, HTB does not. After an outage that is emulated by a tiny rate, both stay blocked for as long as the
#          tiny rate needs for one packet: 5 s at 2 kbit/s.
# Version: Linux 6.18, iproute2 6.1.
# Source:  ten packets in a queue of 2 kbit/s, which is changed to 10 Mbit/s; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip tc python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
echo "seen on Linux $(uname -r), $(tc -V):"
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add dev wire0 type veth peer name wire1
ip link set wire0 up; ip link set wire1 up
ip addr add 10.9.0.1/24 dev wire0
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev wire0
tbf() { tc qdisc "$1" dev wire0 root handle 1: tbf rate "$2" burst 1600 limit 100000; }
htb() {
    [ "$1" = change ] || tc qdisc add dev wire0 root handle 1: htb default 1
    tc class "$1" dev wire0 parent 1: classid 1:1 htb rate "$2" burst 1600 cburst 1600 quantum 1600
}
send() { # COUNT: packets of 1400 bytes
    python3 -c 'import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1])): sender.sendto(bytes(1372), ("10.9.0.2", 9))' "$1"
}
sent() { tc -s qdisc show dev wire0 | sed -n 's/.* bytes \([0-9]*\) pkt.*/\1/p'; }
for shaper in tbf htb; do
    "$shaper" add 2kbit
    send 10
    "$shaper" change 10mbit
    sleep 2
    stuck=$(sent)
    send 1
    sleep 0.5
    after=$(sent)
    sleep 5
    end=$(sent)
    tc qdisc del dev wire0 root
    echo "$shaper: $stuck of 10 packets sent 2 s after the change, $after of 11 sent 0.5 s after one more packet, $end 5 s later"
    seen+=("$stuck $after $end")
done
[ "${seen[0]}" = "1 11 11" ] && [ "${seen[1]}" = "2 2 11" ] || { echo "changed"; exit 1; }
