#!/bin/bash
# Guess:   In the report of hey, a request that timed out counts with its timeout in the latency distribution, or is left
#          out of all numbers.
# Found:   It is left out of `Average`, `Slowest` and all percentiles, and counted in `Requests/sec`. With half of the
#          requests unanswered for 1 s, hey reports milliseconds as the 99th percentile and twice the rate of answers: the
#          worse an outage is, the better the percentiles. Only the error distribution at the end tells.
# Version: hey 0.1.4 (Debian 12: hey 0.1.4-2+b4).
# Source:  40 requests, of which the server never answers every second one.
set -euo pipefail
command -v apt-get dpkg python3 >/dev/null || { echo "skipped: apt-get, dpkg and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq hey=0.1.4-2+b4 >/dev/null 2>&1 || { echo "skipped: hey 0.1.4 cannot be had"; exit 77; }
dpkg -x ./hey_*.deb root
cat >serve.py <<'CODE'
import itertools, socket, threading
requests = itertools.count()
def serve(peer):
    while peer.recv(65536):
        if next(requests) % 2 == 0:
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
CODE
python3 serve.py >port 2>/dev/null &
until [ -s port ]; do sleep 0.1; done
root/usr/bin/hey -n 40 -c 4 -t 1 "http://127.0.0.1:$(cat port)/" >report
python3 - <<'CODE'
import re, sys
report = open("report").read()
def number(pattern):
    return float(re.search(pattern, report).group(1))
total, slowest, rate = number(r"Total:\s+(\S+)"), number(r"Slowest:\s+(\S+)"), number(r"Requests/sec:\s+(\S+)")
answers = number(r"\[200\]\s+(\d+)")
print(f"seen: {answers:.0f} answers in {total:.1f} s, reported: slowest {slowest:.3f} s, {rate:.1f} requests/s")
sys.exit(0 if answers <= 25 and total > 3 and slowest < 0.9 and abs(rate * total - 40) < 1 else 1)
CODE
