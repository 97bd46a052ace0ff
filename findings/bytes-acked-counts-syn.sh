#!/bin/bash
# Guess:   `tcpi_bytes_acked` (`bytes_acked` of ss) is never above `tcpi_bytes_sent`, and equals it once all data is
#          acknowledged, at either end.
# Found:   At the end that called connect() it is one higher, and after a FIN is acknowledged two: it counts sequence numbers,
#          with SYN and FIN, and `bytes_sent` counts data. At the end that accepted, the SYN is not counted. Unsigned
#          arithmetic for bytes in flight wraps around, and a check for "all acknowledged" by equality waits for ever.
# Version: Linux 6.18; bytes_sent exists since 4.19.
# Source:  1000 bytes each way on loopback, TCP_INFO; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
ip link set lo up
echo "seen on Linux $(uname -r):"
python3 - <<'CODE' || { echo "changed"; exit 1; }
import socket, struct, sys, time
TCP_INFO, BYTES_ACKED, BYTES_SENT = 11, 120, 200
listener = socket.create_server(("127.0.0.1", 5001))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
ends = {"connect()": client, "accept()": server}
def show(when):
    time.sleep(0.5)
    counts = []
    for name, end in ends.items():
        info = end.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 232)
        counts.append((struct.unpack_from("Q", info, BYTES_SENT)[0], struct.unpack_from("Q", info, BYTES_ACKED)[0]))
        print(f"{when}, end that called {name}: bytes_sent {counts[-1][0]}, bytes_acked {counts[-1][1]}")
    return counts
for end in ends.values():
    end.sendall(bytes(1000))
data = show("after data")
for end in ends.values():
    end.shutdown(socket.SHUT_WR)
closed = show("after both FINs")
sys.exit(0 if data == [(1000, 1001), (1000, 1000)] and closed[1] == (1000, 1001) else 1)
CODE
