#!/bin/bash
# Guess:   `ip route ... cwnd lock 4` clamps the congestion window of every connection over this route; ip-route(8) names
#          no exception.
# Found:   The first connection to a host is not clamped: the clamp is read from tcp_metrics, whose entry the first
#          connection makes when it ends. With net.ipv4.tcp_no_metrics_save = 1, often set for measurements, no
#          connection is clamped.
# Version: Linux 6.18, iproute2 6.1.
# Source:  the connections below, on loopback; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
ip link set lo up
ip addr add 10.8.0.1/32 dev lo
ip route replace local 10.8.0.1 dev lo table local cwnd lock 4
windows() { # NO_METRICS_SAVE: congestion windows at the end of three downloads, one after the other
    echo "$1" >/proc/sys/net/ipv4/tcp_no_metrics_save
    python3 - <<'CODE'
import socket, struct, threading, time
TCP_INFO, TCP_CONGESTION, SND_CWND = 11, 13, 80
listener = socket.create_server(("10.8.0.1", 5001))
def receive():
    for _ in range(3):
        peer, _ = listener.accept()
        while peer.recv(1 << 16):
            pass
        peer.close()
threading.Thread(target=receive).start()
for _ in range(3):
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"reno")
    sender.connect(("10.8.0.1", 5001))
    for _ in range(300):
        sender.sendall(bytes(65536))
    print(struct.unpack_from("I", sender.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 104), SND_CWND)[0], end=" ", flush=True)
    sender.shutdown(socket.SHUT_WR)
    sender.recv(1)
    sender.close()
    time.sleep(0.2)
CODE
}
saved=$(windows 0)
ip tcp_metrics flush all >/dev/null
unsaved=$(windows 1)
echo "seen on Linux $(uname -r), $(ip -V), Reno over a route with cwnd lock 4:"
echo "congestion windows of three connections, metrics saved: $saved"
echo "congestion windows of three connections, tcp_no_metrics_save = 1: $unsaved"
read -r first second third <<<"$saved"
read -r other later last <<<"$unsaved"
[ "$first" -gt 4 ] && [ "$second" = 4 ] && [ "$third" = 4 ] && [ "$other" -gt 4 ] && [ "$later" -gt 4 ] && [ "$last" -gt 4 ] ||
    { echo "changed"; exit 1; }
