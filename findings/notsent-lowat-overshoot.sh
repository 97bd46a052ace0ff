#!/bin/bash
# Guess:   With TCP_NOTSENT_LOWAT = 16384, as servers set it to decide late what they send next, the socket holds at most
#          16 kB of unsent data.
# Found:   The limit is checked only when a new buffer is started, and a buffer is filled up to a super-packet: once the
#          window is full, a socket takes 65 kB of unsent data, with a limit of 1 byte as with one of 16 kB. What limits it
#          is gso_max_size of the interface: with 3000 bytes, the option holds.
# Version: Linux 6.18, iproute2 6.1.
# Source:  a connection on loopback with an MTU of 1500 whose reader stops, SIOCOUTQNSD; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
echo "seen on Linux $(uname -r), largest number of unsent bytes:"
unsent() { # LIMIT
    python3 - "$1" <<'CODE'
import fcntl, socket, struct, sys, time
TCP_CONGESTION, TCP_NOTSENT_LOWAT, SIOCOUTQNSD = 13, 25, 0x894B
listener, sender = socket.socket(), socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100_000)
listener.bind(("10.8.0.1", 0))
listener.listen()
sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
sender.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, int(sys.argv[1]))
sender.connect(listener.getsockname())
sender.setblocking(False)
largest = refused = 0
while refused < 10:
    try:
        sender.send(bytes(1_000_000))
        refused = 0
    except BlockingIOError:
        refused += 1
        time.sleep(0.05)
    largest = max(largest, struct.unpack("i", fcntl.ioctl(sender, SIOCOUTQNSD, bytes(4)))[0])
print(largest)
CODE
}
ip link set lo mtu 1500 up
ip addr add 10.8.0.1/32 dev lo
one=$(unsent 1) usual=$(unsent 16384)
ip link set lo gso_max_size 3000
short=$(unsent 16384)
echo "limit 1: $one; limit 16384: $usual; limit 16384 with gso_max_size 3000: $short"
[ "$one" -gt 40000 ] && [ "$usual" -gt 40000 ] && [ "$short" -lt 20000 ] || { echo "changed"; exit 1; }
