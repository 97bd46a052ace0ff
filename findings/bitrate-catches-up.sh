#!/bin/bash
# Guess:   `iperf3 -b 8M`, `iperf -b 8m` and `nuttcp -R 8m` over TCP offer 8 Mbit/s at any time, as a stream of media does.
# Found:   All three hold the mean rate since the start: after an outage of 3 s they send as fast as the link allows until
#          they have caught up, here three times the rate in one second. The queue measured after an outage is that of a
#          burst, not of a stream.
# Version: iperf3 3.12, iperf 2.1.8, nuttcp 6.1.2 (Debian 12: iperf3, libiperf0, libsctp1, iperf, nuttcp).
# Source:  tests of 8 s on loopback over a filter of 1 Gbit/s that has 1 Mbit/s for 3 s; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v apt-get dpkg ip tc unshare >/dev/null ||
    { echo "skipped: root, apt-get, dpkg and iproute2 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq iperf3 libiperf0 libsctp1 iperf nuttcp >/dev/null 2>&1 || { echo "skipped: the tools cannot be had"; exit 77; }
for package in ./*.deb; do dpkg -x "$package" unpacked; done
echo "packages:" *.deb
export LD_LIBRARY_PATH=$(dirname "$(find "$folder/unpacked" -name libiperf.so.0 | head -n 1)") PATH="$folder/unpacked/usr/bin:$PATH"
cat >inside.sh <<'CODE'
ip link set lo mtu 1500 up
# nuttcp has no option for congestion control.
ip route replace local 127.0.0.1 dev lo table local congctl cubic
tc qdisc add dev lo root tbf rate 1gbit burst 20000 limit 100000
filter() { tc qdisc change dev lo root tbf rate "$1" burst 20000 limit "$2"; }
highest() { # COMMAND: highest rate of a second from the outage on, in Mbit/s
    (sleep 2.3; filter 1mbit 20000; sleep 3; filter 1gbit 100000) &
    "$@" 2>/dev/null | sed -n 's/.* \([0-9.]*\) M\(bits\/sec\|bps\).*/\1/p' | sed -n '4,8p' | sort -n | tail -n 1
}
iperf3 -s >/dev/null 2>&1 &
iperf -s >/dev/null 2>&1 &
nuttcp -S -P 5100 -p 5101
sleep 1
echo "iperf3 $(highest iperf3 -c 127.0.0.1 -C cubic -b 8M -t 8 -i 1 -f m)"
echo "iperf $(highest iperf -c 127.0.0.1 -Z cubic -b 8m -t 8 -i 1 -f m)"
echo "nuttcp $(highest nuttcp -P 5100 -p 5101 -R 8m -T 8 -i 1 127.0.0.1)"
CODE
seen=$(unshare -n -p -f --kill-child bash inside.sh)
echo "seen on Linux $(uname -r), highest rate of a second, Mbit/s:" $seen
[ "$(echo "$seen" | wc -l)" = 3 ] && echo "$seen" | while read -r _ rate; do [ "${rate%.*}" -ge 16 ] || exit 1; done || { echo "changed"; exit 1; }
