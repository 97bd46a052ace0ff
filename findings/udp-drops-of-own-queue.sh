#!/bin/bash
# Guess:   A UDP sender whose own interface has a full queue (a shaper on the sending host) blocks in sendto(), or sees ENOBUFS,
#          so a packet that sendto() has accepted was at least sent.
# Found:   sendto() succeeds for every packet that the queueing discipline drops: of 200 packets, 9 of 10 are lost on the
#          sending host without an error. With IP_RECVERR, an option for ICMP errors, the same call fails with ENOBUFS. A
#          probe that counts its calls as sent packets reports this as loss of the path. UdpOutDatagrams has the truth.
# Version: Linux 6.18, iproute2 6.1.
# Source:  200 datagrams of 1000 bytes at once through a filter of 1 Mbit/s with a queue of 20000 bytes; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip tc nstat python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add wire0 type veth peer name wire1
ip link set wire0 up; ip link set wire1 up
ip addr add 10.9.0.1/24 dev wire0
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev wire0
tc qdisc add dev wire0 root tbf rate 1mbit burst 2000 limit 20000
send() { # IP_RECVERR: datagrams that sendto() accepted, and the name of its error
    python3 - "$1" <<'CODE'
import errno, socket, sys
IP_RECVERR = 11
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.IPPROTO_IP, IP_RECVERR, int(sys.argv[1]))
accepted, errors = 0, {"none"}
for _ in range(200):
    try:
        sender.sendto(bytes(1000), ("10.9.0.2", 9))
        accepted += 1
    except OSError as error:
        errors = {errno.errorcode[error.errno]}
print(accepted, *errors)
CODE
}
dropped() { tc -s qdisc show dev wire0 | sed -n 's/.*dropped \([0-9]*\).*/\1/p'; }
read -r accepted error <<<"$(send 0)"
lost=$(dropped) sent=$(nstat -asz UdpOutDatagrams | awk '/^Udp/ {print $2}')
read -r with_option other_error <<<"$(send 1)"
echo "seen on Linux $(uname -r), $(tc -V), 200 datagrams:"
echo "sendto() accepted $accepted, error: $error; the queue dropped $lost, UdpOutDatagrams $sent"
echo "with IP_RECVERR sendto() accepted $with_option, error: $other_error"
[ "$accepted $error" = "200 none" ] && [ "$lost" -gt 150 ] && [ "$((sent + lost))" = 200 ] && [ "$with_option" -lt 100 ] &&
    [ "$other_error" = ENOBUFS ] || { echo "changed"; exit 1; }
