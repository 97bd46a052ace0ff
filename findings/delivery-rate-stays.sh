#!/bin/bash
# Guess:   `tcpi_delivery_rate` (`delivery_rate` of ss) is the rate at which the peer received data lately: it falls when the
#          application sends less, perhaps marked with `app_limited`.
# Found:   It keeps the highest rate until a sample that the network limited replaces it: a sample that the application
#          limited counts only if it is higher. After one burst, a stream of 0.4 Mbit/s shows the rate of the burst for as
#          long as it lives, whatever the link has become. A meter of throughput needs differences of `bytes_acked`.
# Version: Linux 6.18; the field exists since 4.9.
# Source:  a burst of 20 MB, then 1000 bytes each 20 ms for 3 s, on loopback; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
ip link set lo up
echo "seen on Linux $(uname -r), Reno:"
python3 - <<'CODE' || { echo "changed"; exit 1; }
import socket, struct, sys, threading, time
TCP_INFO, TCP_CONGESTION, BYTES_ACKED, DELIVERY_RATE = 11, 13, 120, 160
listener = socket.create_server(("127.0.0.1", 5001))
def receive():
    peer, _ = listener.accept()
    while peer.recv(1 << 20):
        pass
threading.Thread(target=receive, daemon=True).start()
sender = socket.socket()
sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"reno")
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
sender.connect(listener.getsockname())
def info(offset):
    return struct.unpack_from("Q", sender.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 232), offset)[0]
sender.sendall(bytes(20_000_000))
time.sleep(0.5)
burst = info(DELIVERY_RATE)
shown, delivered = [], []
for _ in range(3):
    start, acked = time.monotonic(), info(BYTES_ACKED)
    for _ in range(50):
        sender.sendall(bytes(1000))
        time.sleep(0.02)
    delivered.append((info(BYTES_ACKED) - acked) / (time.monotonic() - start))
    shown.append(info(DELIVERY_RATE))
megabits = lambda rates: " ".join(f"{8e-6 * rate:.2f}" for rate in rates)
print(f"after the burst: tcpi_delivery_rate {megabits([burst])} Mbit/s")
print(f"in each of the 3 s after it: delivered {megabits(delivered)} Mbit/s, tcpi_delivery_rate {megabits(shown)} Mbit/s")
sys.exit(0 if min(shown) >= burst > 100 * max(delivered) else 1)
CODE
