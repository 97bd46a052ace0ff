#!/bin/bash
# Guess:   `ip route ... initrwnd 100` makes the first advertised window 100 segments, as ip-route(8) says, so that a server
#          with a large initial window is not held back.
# Found:   It only lowers the window. The first one is half of the default receive buffer (the second number of
#          net.ipv4.tcp_rmem, 131072 bytes) and at most 65535 bytes. initrwnd 100 changes nothing, and 20 or 30, as old
#          advice has it to raise the window, lowers it: 30 is 43440 bytes instead of 65160.
# Version: Linux 6.18, iproute2 6.1.
# Source:  connections on loopback with an MTU of 1500, windows from TCP_INFO (since 6.2); needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
ip link set lo mtu 1500 up
ip addr add 10.8.0.1/32 dev lo
echo "4096 131072 6291456" >/proc/sys/net/ipv4/tcp_rmem
window() { # ROUTE OPTIONS: advertised window of a client that has just connected
    ip route replace local 10.8.0.1 dev lo table local "$@"
    python3 - <<'CODE'
import socket, struct
TCP_INFO, RCV_WND = 11, 228
listener = socket.create_server(("10.8.0.1", 5001))
client = socket.create_connection(listener.getsockname())
print(struct.unpack_from("I", client.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 232), RCV_WND)[0])
CODE
}
default=$(window) thirty=$(window initrwnd 30) hundred=$(window initrwnd 100)
echo "seen on Linux $(uname -r), $(ip -V), first advertised window in bytes:"
echo "without initrwnd $default, with initrwnd 30 $thirty, with initrwnd 100 $hundred"
[ "$default" -gt 60000 ] && [ "$thirty" -lt 45000 ] && [ "$hundred" = "$default" ] || { echo "changed"; exit 1; }
