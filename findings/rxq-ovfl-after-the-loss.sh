#!/bin/bash
# Guess:   With SO_RXQ_OVFL, recvmsg() reports how many datagrams the socket has dropped so far, so a receiver that was late
#          sees the loss with the next datagram it reads.
# Found:   The count is that of the moment when the datagram was queued. After an overflow, all datagrams in the buffer have the
#          count from before it, which is no control message at all if it was 0; the loss shows up only with a datagram that
#          arrives after the buffer was read. The loss at the end of a test is never seen. SO_MEMINFO has it at once.
# Version: Linux 6.18.
# Source:  1000 datagrams to a socket that is read afterwards, on loopback; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
ip link set lo up
echo "seen on Linux $(uname -r):"
python3 - <<'CODE' || { echo "changed"; exit 1; }
import socket, struct, sys
SO_RXQ_OVFL, SO_MEMINFO, SK_MEMINFO_DROPS, SENT = 40, 55, 8, 1000
receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
receiver.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
receiver.bind(("127.0.0.1", 0))
receiver.setblocking(False)
def read():
    _, control, _, _ = receiver.recvmsg(2000, 100)
    return struct.unpack("I", control[0][2])[0] if control else None
for _ in range(SENT):
    sender.sendto(bytes(1000), receiver.getsockname())
counts = []
try:
    while True:
        counts.append(read())
except BlockingIOError:
    pass
at_once = struct.unpack("9I", receiver.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 36))[SK_MEMINFO_DROPS]
sender.sendto(b"", receiver.getsockname())
later = read()
print(f"{SENT} sent, {len(counts)} read: counts in their control messages {set(counts)}; SO_MEMINFO {at_once}; next datagram {later}")
sys.exit(0 if set(counts) == {None} and at_once == later == SENT - len(counts) > 100 else 1)
CODE
