#!/bin/bash
# Guess:   TCP_MAXSEG = 1000 makes segments of 1000 bytes; on a connection that is established it is applied to the following
#          segments, or setsockopt() fails.
# Found:   Set before connect(), segments carry 988 bytes: the timestamp option is inside the 1000. Set on a connection,
#          setsockopt() succeeds and nothing changes, in later segments or in what getsockopt() returns. A workaround for a
#          tunnel's MTU that sets it on accepted sockets does nothing.
# Version: Linux 6.18.
# Source:  50000 bytes on loopback with an MTU of 1500, mean payload of a segment from TCP_INFO; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
ip link set lo mtu 1500 up
echo "seen on Linux $(uname -r), TCP_MAXSEG 1000 over an MTU of 1500:"
python3 - <<'CODE' || { echo "changed"; exit 1; }
import socket, struct, sys
TCP_INFO, TCP_MAXSEG, TCP_CONGESTION, DATA_SEGS_OUT, SEGMENTS = 11, 2, 13, 156, 50
listener = socket.create_server(("127.0.0.1", 5001))
def connection(connect_first):
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"reno")
    for connects in (connect_first, not connect_first):
        if connects:
            sender.connect(listener.getsockname())
            peer, _ = listener.accept()
        else:
            sender.setsockopt(socket.IPPROTO_TCP, TCP_MAXSEG, 1000)
    sent = SEGMENTS * 988
    sender.sendall(bytes(sent))
    while sent:
        sent -= len(peer.recv(sent))
    segments = struct.unpack_from("I", sender.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 232), DATA_SEGS_OUT)[0]
    return segments, sender.getsockopt(socket.IPPROTO_TCP, TCP_MAXSEG)
before, after = connection(False), connection(True)
print(f"{SEGMENTS * 988} bytes, set before connect(): {before[0]} segments, getsockopt() {before[1]}")
print(f"{SEGMENTS * 988} bytes, set after connect(): {after[0]} segments, getsockopt() {after[1]}")
sys.exit(0 if before == (SEGMENTS, 988) and after[0] < 40 and after[1] == 1448 else 1)
CODE
