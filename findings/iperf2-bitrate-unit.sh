#!/bin/bash
# Guess:   `iperf -u -b 8M` sends 8 Mbit/s, as `iperf3 -u -b 8M` does.
# Found:   iperf 2 sends 8.39 Mbit/s, 4.9 % more: capital suffixes are powers of 1024 for rates, too, while its reports have
#          Mbit/s of 10^6. `-b 8m` is 8 Mbit/s. A link of exactly this rate overflows with the one and not with the other.
# Version: iperf 2.1.8 (Debian 12: iperf 2.1.8+dfsg-1).
# Source:  the tests below, on loopback; iperf(1) says so in its notes.
set -euo pipefail
command -v dpkg apt-get python3 >/dev/null || { echo "skipped: dpkg, apt-get and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
server=
trap 'kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq iperf=2.1.8+dfsg-1 >/dev/null 2>&1 || { echo "skipped: iperf 2.1.8+dfsg-1 cannot be had"; exit 77; }
dpkg -x iperf_*.deb root
python3 -c '
import socket, time
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 5996))
time.sleep(60)' & server=$!
sleep 1
# The sink never answers, and iperf warns of it.
rate() { root/usr/bin/iperf -u -c 127.0.0.1 -p 5996 -t 3 -y C -b "$1" 2>/dev/null | head -n 1 | cut -d , -f 9; }
capital=$(rate 8M) small=$(rate 8m)
echo "seen: -b 8M: $capital bit/s, -b 8m: $small bit/s"
[ "$capital" -gt 8250000 ] && [ "$capital" -lt 8600000 ] && [ "$small" -gt 7800000 ] && [ "$small" -lt 8200000 ] ||
    { echo "changed"; exit 1; }
