#!/bin/bash
# Guess:   A UDP socket with SO_TXTIME or SO_MAX_PACING_RATE is paced by the kernel, as TCP is since Linux 4.13 without
#          tc-fq; or the kernel refuses the option where no queueing discipline can serve it.
# Found:   Without tc-fq or tc-etf on the interface both options are accepted, getsockopt returns what was set, and packets
#          leave at once. An application that relies on them sends bursts and sees no error.
# Version: Linux 6.18.
# Source:  datagrams on loopback, without a queueing discipline and with pfifo; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip tc python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
echo "seen on Linux $(uname -r):"
ip link set lo up
delays() { # prints delays of datagrams that should be paced
    python3 - <<'CODE'
import socket, struct, sys, time
SO_MAX_PACING_RATE, SO_TXTIME, CLOCK_MONOTONIC = 47, 61, 1
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 0))
receiver.settimeout(10)
timed = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
timed.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("iI", CLOCK_MONOTONIC, 0))
start = time.monotonic_ns()
departure = (socket.SOL_SOCKET, SO_TXTIME, struct.pack("Q", start + 2_000_000_000))
timed.sendmsg([b"x"], [departure], 0, receiver.getsockname())
receiver.recv(10)
after_txtime = (time.monotonic_ns() - start) / 1e9
paced = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
paced.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 10_000)
rate = paced.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE)
start = time.monotonic_ns()
for _ in range(40):
    paced.sendto(bytes(1000), receiver.getsockname())
for _ in range(40):
    receiver.recv(2000)
after_pacing = (time.monotonic_ns() - start) / 1e9
print(f"SO_TXTIME 2 s ahead: received after {after_txtime:.3f} s; SO_MAX_PACING_RATE {rate} byte/s: 40 kB received after {after_pacing:.3f} s")
sys.exit(0 if after_txtime < 1 and after_pacing < 1 and rate == 10_000 else 1)
CODE
}
bare=$(delays) || { echo "changed: $bare"; exit 1; }
echo "no queueing discipline: $bare"
tc qdisc add dev lo root pfifo
queued=$(delays) || { echo "changed: $queued"; exit 1; }
echo "pfifo: $queued"
