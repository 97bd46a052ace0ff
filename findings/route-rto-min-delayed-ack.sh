#!/bin/bash
# Guess:   `ip route ... rto_min 5ms` is the minimum of the sender's retransmission timeout, as ip-route(8) says. It does not
#          change what this host sends as a receiver.
# Found:   It also bounds the timer of delayed ACKs: over such a route a single segment is acknowledged after 5 ms instead of
#          40 ms. RTTs that the peer measures fall with it, so the effect of a lower timeout and that of earlier ACKs cannot
#          be told apart if both hosts of a lab get the option.
# Version: Linux 6.18, iproute2 6.1.
# Source:  a segment after an exchange of requests, on loopback, as captured; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
ip link set lo up
ip addr add 10.8.0.1/32 dev lo
delay() { # ROUTE OPTIONS: median delay of the ACK of one segment, in ms, over nine connections
    ip route replace local 10.8.0.1 dev lo table local "$@"
    python3 - <<'CODE'
import socket, statistics, struct, time
ETH_P_IP, TCP_QUICKACK, TCP_CONGESTION, SIZE, HEADERS = 0x0800, 12, 13, 100, 14 + 20 + 20
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
tap.bind(("lo", ETH_P_IP))
tap.setblocking(False)
listener = socket.create_server(("10.8.0.1", 5001))
def captured(seconds):
    packets, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            packet = tap.recv(2000)
            packets.append((time.monotonic(), len(packet), *struct.unpack(">HH", packet[34:38])))
        except BlockingIOError:
            time.sleep(0.0005)
    return packets
def ack_delay():
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"reno")
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sender.connect(listener.getsockname())
    receiver, _ = listener.accept()
    receiver.setsockopt(socket.IPPROTO_TCP, TCP_QUICKACK, 0)
    for _ in range(30):
        sender.send(b"?"); receiver.recv(1); receiver.send(b"!"); sender.recv(1)
    captured(0.2)
    sender.send(bytes(SIZE))
    packets = captured(0.2)
    data = min(at for at, length, _, port in packets if port == 5001 and length > HEADERS + SIZE)
    return min(at for at, _, port, _ in packets if port == 5001) - data
print(round(1000 * statistics.median(ack_delay() for _ in range(9))))
CODE
}
default=$(delay) lowered=$(delay rto_min 5ms)
echo "seen on Linux $(uname -r), $(ip -V), delay of an ACK: $default ms, with rto_min 5ms $lowered ms"
[ "$default" -ge 35 ] && [ "$lowered" -ge 2 ] && [ "$lowered" -le 20 ] || { echo "changed"; exit 1; }
