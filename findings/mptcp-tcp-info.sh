#!/bin/bash
# Guess:   TCP_INFO of an MPTCP socket (IPPROTO_MPTCP) is that of the connection: bytes of all subflows.
# Found:   It is that of the first subflow alone: with two subflows `tcpi_bytes_acked` misses what the other one delivered,
#          and RTT and congestion window are those of one path; `ss -ti` lists each subflow. SO_MAX_PACING_RATE,
#          TCP_USER_TIMEOUT and TCP_QUICKACK fail on such a socket.
# Version: Linux 6.18.
# Source:  a transfer of 32 MB over two subflows on loopback; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "$(cat /proc/sys/net/mptcp/enabled 2>/dev/null)" = 1 ] || { echo "skipped: the kernel lacks MPTCP"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
echo "seen on Linux $(uname -r):"
ip link set lo up
ip addr add 10.9.1.1/32 dev lo
ip mptcp limits set subflows 1 add_addr_accepted 1
ip mptcp endpoint add 10.9.1.1 dev lo subflow
python3 - <<'CODE'
import socket, struct, sys, threading, time
IPPROTO_MPTCP, TCP_CONGESTION, BYTES_ACKED, SO_MAX_PACING_RATE, TCP_USER_TIMEOUT, TCP_QUICKACK = 262, 13, 120, 47, 18, 12
listener, sender = (socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP) for _ in range(2))
for one in listener, sender:
    one.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
listener.bind(("127.0.0.1", 0))
listener.listen()
sender.connect(listener.getsockname())
receiver, _ = listener.accept()
received = 0
def receive():
    global received
    while data := receiver.recv(1 << 16):
        received += len(data)
        if received == 1:
            receiver.send(b"x")
reader = threading.Thread(target=receive)
reader.start()
# The second subflow joins when the first data has been answered.
sender.sendall(b"x")
sender.recv(1)
time.sleep(1)
for _ in range(500):
    sender.sendall(bytes(65536))
time.sleep(0.5)
acked = struct.unpack_from("Q", sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), BYTES_ACKED)[0]
refused = []
for name, level, option in (("SO_MAX_PACING_RATE", socket.SOL_SOCKET, SO_MAX_PACING_RATE), ("TCP_USER_TIMEOUT", socket.IPPROTO_TCP, TCP_USER_TIMEOUT),
                            ("TCP_QUICKACK", socket.IPPROTO_TCP, TCP_QUICKACK)):
    try:
        sender.setsockopt(level, option, 20_000)
    except OSError:
        refused.append(name)
sender.close()
reader.join()
print(f"received {received} bytes; tcpi_bytes_acked of the sender {acked}")
print("refused:", *refused)
sys.exit(0 if received == 500 * 65536 + 1 and acked < 0.95 * received and len(refused) == 3 else 1)
CODE
