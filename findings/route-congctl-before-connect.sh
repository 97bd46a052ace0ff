#!/bin/bash
# Guess:   `ip route ... congctl reno` without `lock` is a default: an application that sets TCP_CONGESTION gets what it set,
#          as ip-route(8) says.
# Found:   Only if it is set after the handshake. The route is looked up by connect() and replaces what was set before, as
#          `iperf3 -C` and most programs do, and setsockopt() has reported success. A comparison of congestion controls
#          over such a route compares Reno with itself.
# Version: Linux 6.18, iproute2 6.1.
# Source:  the connections below, on loopback; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
grep -qw cubic /proc/sys/net/ipv4/tcp_available_congestion_control || { echo "skipped: the kernel lacks CUBIC"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
ip link set lo up
ip addr add 10.8.0.1/32 dev lo
ip route replace local 10.8.0.1 dev lo table local congctl reno
echo "seen on Linux $(uname -r), $(ip -V), over a route with congctl reno:"
python3 - <<'CODE' || { echo "changed"; exit 1; }
import socket, sys
TCP_CONGESTION = 13
listener = socket.create_server(("10.8.0.1", 5001))
def control(sender):
    return sender.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()
before, after = socket.socket(), socket.socket()
before.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
told = control(before)
before.connect(listener.getsockname())
after.connect(listener.getsockname())
after.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
seen = told, control(before), control(after)
print("cubic set before connect(): {} until then, {} once connected; set after connect(): {}".format(*seen))
sys.exit(0 if seen == ("cubic", "reno", "cubic") else 1)
CODE
