#!/bin/bash
# Guess:   A TCP socket with SO_MAX_PACING_RATE sends one or two segments at a time, evenly spaced, from its first
#          segment on, so a lab can emulate a slow link with it.
# Found:   The first ten segments of a connection leave at line rate. On a path with an RTT far below 1 ms, later segments
#          leave in bursts of a whole congestion window: a burst may have 64 kB (gso_max_size) at an RTT of 0, and half of
#          that for each 0.5 ms of RTT. With net.ipv4.tcp_tso_rtt_log = 0 they leave in pairs.
# Version: Linux 6.18; the setting exists since 5.18.
# Source:  Documentation/networking/ip-sysctl.rst, and a transfer of 60 kB at 20 kB/s on loopback, with an MSS of 1000
#          bytes; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
[ -e /proc/sys/net/ipv4/tcp_tso_rtt_log ] || { echo "skipped: the kernel lacks the setting"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
echo "seen on Linux $(uname -r), CUBIC, SO_MAX_PACING_RATE 20 kB/s, segments received at a time:"
ip link set lo up
bursts() { # RTT_LOG: segments that arrive with less than 20 ms between them, for each burst
    echo "$1" >/proc/sys/net/ipv4/tcp_tso_rtt_log
    python3 - <<'CODE'
import socket, threading, time
TCP_CONGESTION, SO_MAX_PACING_RATE, TOTAL = 13, 47, 60_000
listener = socket.create_server(("127.0.0.1", 0))
sender = socket.socket()
sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)
sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 20_000)
sender.connect(listener.getsockname())
receiver, _ = listener.accept()
threading.Thread(target=sender.sendall, args=(bytes(TOTAL),)).start()
received, last, bursts = 0, 0.0, []
while received < TOTAL:
    size = len(receiver.recv(65536))
    if time.monotonic() > last + 0.02:
        bursts.append(0)
    bursts[-1] += size
    received += size
    last = time.monotonic()
print(*[round(size / 988) for size in bursts])
CODE
}
default=$(bursts 9)
pairs=$(bursts 0)
echo "tcp_tso_rtt_log = 9 (default): $default"
echo "tcp_tso_rtt_log = 0: $pairs"
read -r -a by_default <<<"$default"
read -r -a without <<<"$pairs"
[ "${by_default[0]}" -ge 9 ] && [ "${by_default[1]}" -ge 5 ] && [ "${without[0]}" -ge 9 ] && [ "${without[1]}" -le 2 ] &&
    [ "${without[2]}" -le 2 ] || { echo "changed"; exit 1; }
