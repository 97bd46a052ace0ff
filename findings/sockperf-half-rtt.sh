#!/bin/bash
# Guess:   `sockperf ping-pong` reports the round-trip time of its messages, as ping does.
# Found:   It reports half of the RTT as "Latency" unless `--full-rtt` is given. On a path whose directions differ, the
#          number is the delay of neither: with 40 ms up and none down it is 20 ms.
# Version: sockperf 3.7 (Debian 12: sockperf 3.7-1).
# Source:  ping-pong through a proxy on loopback that delays the requests by 40 ms.
set -euo pipefail
command -v dpkg apt-get python3 >/dev/null || { echo "skipped: dpkg, apt-get and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq sockperf=3.7-1 >/dev/null 2>&1 || { echo "skipped: sockperf 3.7-1 cannot be had"; exit 77; }
dpkg -x sockperf_*.deb root
cat >proxy.py <<'CODE'
import collections, select, socket, time
front, back = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
front.bind(("127.0.0.1", 6001))
back.bind(("127.0.0.1", 0))
delayed, client = collections.deque(), None
while True:
    for ready in select.select([front, back], [], [], 0.001)[0]:
        data, address = ready.recvfrom(65536)
        if ready is front:
            client = address
            delayed.append((time.monotonic() + 0.04, data))
        else:
            front.sendto(data, client)
    while delayed and delayed[0][0] <= time.monotonic():
        back.sendto(delayed.popleft()[1], ("127.0.0.1", 6000))
CODE
root/usr/bin/sockperf server -i 127.0.0.1 -p 6000 >/dev/null 2>&1 &
python3 proxy.py &
sleep 1
latency() { # OPTION: mean that sockperf prints, in whole microseconds
    root/usr/bin/sockperf ping-pong -i 127.0.0.1 -p 6001 -t 3 "$@" 2>&1 |
        sed -n 's/.*Summary: \(Latency\|Round trip\) is \([0-9]*\)\.[0-9]* usec.*/\2/p'
}
usual=$(latency) full=$(latency --full-rtt)
echo "seen: path of 40 ms up, 0 ms down: $usual us; with --full-rtt $full us"
[ "$usual" -ge 20000 ] && [ "$usual" -lt 30000 ] && [ "$full" -ge 40000 ] && [ "$full" -lt 60000 ] || { echo "changed"; exit 1; }
