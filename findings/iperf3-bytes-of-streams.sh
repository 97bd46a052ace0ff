#!/bin/bash
# Guess:   With several streams, `iperf3 -n 10M -P 4` sends 10 MiB on each of them, as `-b 8M -P 4` sends 8 Mbit/s on each.
# Found:   `-b` is per stream, `-n` and `-k` are totals: each stream sends a quarter of the bytes. A comparison of one with
#          four flows that keeps both options has four times the rate and the same amount of data.
# Version: iperf3 3.12 (Debian 12: iperf3, libiperf0, libsctp1).
# Source:  the tests below, on loopback.
set -euo pipefail
command -v dpkg apt-get python3 >/dev/null || { echo "skipped: dpkg, apt-get and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
server=
trap 'kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq iperf3 libiperf0 libsctp1 >/dev/null 2>&1 || { echo "skipped: iperf3 cannot be had"; exit 77; }
for package in ./*.deb; do dpkg -x "$package" root; done
export LD_LIBRARY_PATH=$(dirname "$(find "$folder/root" -name libiperf.so.0 | head -n 1)")
root/usr/bin/iperf3 --version | head -n 1
root/usr/bin/iperf3 -s -p 5997 >/dev/null 2>&1 & server=$!
sleep 1
test() { # OPTIONS: bytes and Mbit/s of all four streams
    root/usr/bin/iperf3 -c 127.0.0.1 -p 5997 -C cubic -P 4 -J "$@" | python3 -c '
import json, sys
total = json.load(sys.stdin)["end"]["sum_sent"]
print(total["bytes"], round(total["bits_per_second"] / 1e6))'
}
read -r bytes _ <<<"$(test -n 10M)"
read -r blocks _ <<<"$(test -k 100 -l 10000)"
read -r _ rate <<<"$(test -b 8M -t 2)"
echo "seen: four streams: -n 10M: $bytes bytes; -k 100 -l 10000: $blocks bytes; -b 8M: $rate Mbit/s"
[ "$bytes" -lt 20000000 ] && [ "$blocks" -lt 2000000 ] && [ "$rate" -ge 24 ] || { echo "changed"; exit 1; }
