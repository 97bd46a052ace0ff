#!/bin/bash
# Guess:   TCP_SYNCNT is the number of SYNs that are retransmitted before connect() fails, as tcp(7) says: with 2, there are
#          three SYNs, after 0, 1 and 3 s.
# Found:   With net.ipv4.tcp_syn_linear_timeouts = 4, the default, a TCP_SYNCNT of 2 sends five retransmissions instead of
#          two, one each second at first. A test that counts SYNs at a dead link, or takes an outage's length from their
#          number, is wrong. With 0 there are two.
# Version: Linux 6.18; the setting exists since 6.5.
# Source:  connect() over a link without a receiver; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip nstat python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ -e /proc/sys/net/ipv4/tcp_syn_linear_timeouts ] || { echo "skipped: the kernel lacks the setting"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
ip link add wire0 type veth peer name wire1
ip link set wire0 up; ip link set wire1 up
ip addr add 10.9.0.1/24 dev wire0
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev wire0
counted() { nstat -asz TcpRetransSegs | awk '/^Tcp/ {print $2}'; }
attempt() { # LINEAR TIMEOUTS: retransmissions of one connect(), and its seconds
    echo "$1" >/proc/sys/net/ipv4/tcp_syn_linear_timeouts
    local before
    before=$(counted)
    python3 - <<'CODE'
import socket, time
TCP_SYNCNT = 7
client = socket.socket()
client.setsockopt(socket.IPPROTO_TCP, TCP_SYNCNT, 2)
start = time.monotonic()
try:
    client.connect(("10.9.0.2", 5001))
except TimeoutError:
    print(f"{time.monotonic() - start:.1f} s", end=" ")
CODE
    echo "$(($(counted) - before))"
}
read -r linear_time _ linear <<<"$(attempt 4)"
read -r exponential_time _ exponential <<<"$(attempt 0)"
echo "seen on Linux $(uname -r), TCP_SYNCNT 2:"
echo "tcp_syn_linear_timeouts = 4: $linear retransmissions, ETIMEDOUT after $linear_time s"
echo "tcp_syn_linear_timeouts = 0: $exponential retransmissions, ETIMEDOUT after $exponential_time s"
[ "$exponential" = 2 ] && [ "$linear" -gt 3 ] || { echo "changed"; exit 1; }
