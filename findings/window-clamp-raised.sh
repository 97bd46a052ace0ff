#!/bin/bash
# Guess:   TCP_WINDOW_CLAMP bounds the advertised window, as tcp(7) says, and so does `ip route ... window`.
# Found:   Both are only a start. When data arrives, the kernel replaces the clamp by the size of the receive buffer, with
#          buffer tuning and also with a fixed SO_RCVBUF: with a clamp of 20000 bytes the window grows beyond 100 kB, and
#          getsockopt returns the new clamp.
# Version: Linux 6.18, iproute2 6.1.
# Source:  downloads of 20 MB on loopback with an MTU of 1500, windows from TCP_INFO (since 6.2); needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
ip link set lo mtu 1500 up
for address in 10.8.0.1 10.8.0.2 10.8.1.1 10.8.1.2; do ip addr add "$address/32" dev lo; done
ip route replace local 10.8.1.2 dev lo table local window 20000
python3 - <<'CODE'
import socket, struct, sys, threading
TCP_INFO, TCP_CONGESTION, TCP_WINDOW_CLAMP, RCV_WND, CLAMP = 11, 13, 10, 232, 20_000
def fill(peer):
    try:
        while True:
            peer.send(bytes(65536))
    except OSError:
        pass
def download(network, clamp=False, buffer=None):
    """Largest window advertised, and the clamp as getsockopt returns it at the end."""
    listener, reader = socket.socket(), socket.socket()
    for one in listener, reader:
        one.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
    listener.bind((f"10.8.{network}.2", 0))
    listener.listen()
    if buffer:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    if clamp:
        reader.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, CLAMP)
    reader.bind((f"10.8.{network}.1", 0))
    reader.connect(listener.getsockname())
    sender, _ = listener.accept()
    threading.Thread(target=fill, args=(sender,), daemon=True).start()
    received, windows = 0, []
    while received < 20_000_000:
        received += len(reader.recv(65536))
        windows.append(struct.unpack_from("I", reader.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256), RCV_WND)[0])
    told = reader.getsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP)
    reader.close()
    sender.close()
    return max(windows), told
cases = {
    "socket option": download(0, clamp=True),
    "socket option, SO_RCVBUF fixed": download(0, clamp=True, buffer=200_000),
    "window of the route": download(1),
}
for name, (largest, told) in cases.items():
    print(f"seen: clamp of {CLAMP}, {name}: largest window {largest}, clamp at the end {told}")
sys.exit(0 if all(largest > 100_000 and told > 100_000 for largest, told in cases.values()) else 1)
CODE
