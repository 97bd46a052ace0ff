#!/bin/bash
# Guess:   In the CSV of bwm-ng, which has no header line, rates and counts have the same order of directions.
# Found:   Rates are sent, received, total; counts of bytes are received, sent. Rates of packets are sent, received, total
#          again, and counts received, sent again. A reader that takes one order for all has upload and download swapped.
# Version: bwm-ng 0.6.3 (Debian 12: bwm-ng 0.6.3-2+b1).
# Source:  an interface that only sends, 20 packets of 1000 bytes a second; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v apt-get dpkg ip python3 unshare >/dev/null ||
    { echo "skipped: root, apt-get, dpkg, iproute2 and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq bwm-ng=0.6.3-2+b1 >/dev/null 2>&1 || { echo "skipped: bwm-ng 0.6.3-2+b1 cannot be had"; exit 77; }
dpkg -x bwm-ng_*.deb root
cat >inside.sh <<'CODE'
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add dev wire0 type veth peer name wire1
ip link set wire0 up; ip link set wire1 up
ip addr add 10.9.0.1/24 dev wire0
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev wire0
python3 -c '
import socket, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(60):
    sender.sendto(bytes(958), ("10.9.0.2", 9))
    time.sleep(0.05)' &
sleep 0.5
root/usr/bin/bwm-ng -o csv -t 1000 -c 2 -I wire0 | grep ";wire0;" | tail -n 1
wait
CODE
row=$(unshare -n bash inside.sh)
echo "seen, of an interface that only sends: $row"
IFS=';' read -r _ _ first_rate second_rate _ first_count second_count first_packets second_packets _ first_number second_number _ <<<"$row"
positive() { [ "${1%.*}" -gt 0 ]; }
positive "$first_rate" && ! positive "$second_rate" && ! positive "$first_count" && positive "$second_count" &&
    positive "$first_packets" && ! positive "$second_packets" && ! positive "$first_number" && positive "$second_number" ||
    { echo "changed"; exit 1; }
