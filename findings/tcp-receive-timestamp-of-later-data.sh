#!/bin/bash
# Guess:   With SO_TIMESTAMPNS (or SO_TIMESTAMPING), recvmsg() on a TCP socket returns the arrival time of the bytes that it
#          returns, as for UDP; of the last of them if they came in several segments.
# Found:   It may be the arrival time of later bytes, which are still in the queue: the kernel merges segments that wait and
#          keeps only the last time. A reader that is late gets one time for all that has waited: 500 bytes that came
#          0.9 s ago are stamped as if they had just come. Delays before a slow reader and gaps between segments vanish.
# Version: Linux 6.18.
# Source:  four segments, 0.3 s apart, on loopback, read after the last; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
ip link set lo up
echo "seen on Linux $(uname -r):"
python3 - <<'CODE' || { echo "changed"; exit 1; }
import socket, struct, sys, time
SO_TIMESTAMPNS, TCP_CONGESTION = 35, 13
def stamps(sender, receiver):
    sent, read = [], []
    for _ in range(4):
        sent.append(time.time())
        sender.send(bytes(500))
        time.sleep(0.3)
    for _ in sent:
        _, [(_, _, stamp)], _, _ = receiver.recvmsg(500, 100)
        seconds, nanoseconds = struct.unpack("qq", stamp)
        read.append(seconds + nanoseconds * 1e-9)
    return [[one - sent[0] for one in times] for times in (sent, read)]
listener = socket.create_server(("127.0.0.1", 5001))
tcp = socket.socket()
tcp.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"reno")
tcp.connect(listener.getsockname())
udp, udp_receiver = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
udp_receiver.bind(("127.0.0.1", 0))
udp.connect(udp_receiver.getsockname())
latest = {}
for name, sender, receiver in (("UDP", udp, udp_receiver), ("TCP", tcp, listener.accept()[0])):
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sent, read = stamps(sender, receiver)
    latest[name] = read[0] - sent[0]
    print(f"{name}, sent at", *(f"{one:.2f}" for one in sent), "stamped", *(f"{one:.2f}" for one in read), "s")
sys.exit(0 if latest["UDP"] < 0.25 and latest["TCP"] > 0.85 else 1)
CODE
