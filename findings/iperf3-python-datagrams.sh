#!/bin/bash
# Guess:   The Python package iperf3 sends the datagrams of `iperf3 -u`, so both report the same loss on the same path.
# Found:   The package sets 65507 bytes, the largest datagram; the command takes what fits into the MTU. At an MTU of 1500
#          each datagram of the package is 45 fragments and is lost with any of them: a path that loses 1 % of packets is
#          reported with a loss of 25 % and more.
# Version: iperf3 0.1.11 (Python), iperf3 3.12 (Debian 12: iperf3, libiperf0, libsctp1).
# Source:  one test with each, on loopback with an MTU of 1500 where every 100th packet is dropped; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v apt-get dpkg ip nft python3 unshare >/dev/null ||
    { echo "skipped: root, apt-get, dpkg, iproute2, nftables and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv && venv/bin/pip -q install iperf3==0.1.11 2>/dev/null || { echo "skipped: the package cannot be had"; exit 77; }
apt-get download -qq iperf3 libiperf0 libsctp1 >/dev/null 2>&1 || { echo "skipped: iperf3 cannot be had"; exit 77; }
for package in ./*.deb; do dpkg -x "$package" root; done
export LD_LIBRARY_PATH=$(dirname "$(find "$folder/root" -name libiperf.so.0 | head -n 1)")
cat >drop.nft <<'RULES'
table ip finding {
    chain in {
        type filter hook prerouting priority raw - 500;
        ip protocol udp numgen inc mod 100 50 drop
    }
}
RULES
cat >package.py <<'CODE'
import iperf3
client = iperf3.Client()
client.server_hostname, client.port, client.protocol, client.duration, client.bandwidth = "127.0.0.1", 5201, "udp", 4, 8_000_000
result = client.run().json
print(result["start"]["test_start"]["blksize"], round(result["end"]["sum"]["lost_percent"], 1), flush=True)
CODE
cat >inside.sh <<'CODE'
ip link set lo mtu 1500 up
nft -f drop.nft
root/usr/bin/iperf3 -s >/dev/null 2>&1 & server=$!
sleep 1
root/usr/bin/iperf3 -c 127.0.0.1 -u -b 8M -t 4 -J | python3 -c '
import json, sys
result = json.load(sys.stdin)
print(result["start"]["test_start"]["blksize"], round(result["end"]["sum"]["lost_percent"], 1))'
venv/bin/python package.py 2>/dev/null
kill "$server"
CODE
seen=$(unshare -n bash inside.sh)
read -r -d '' size loss other_size other_loss <<<"$seen" || true
root/usr/bin/iperf3 --version | head -n 1
echo "seen: command: datagrams of $size bytes, loss $loss %; package: datagrams of $other_size bytes, loss $other_loss %"
[ "$size" -lt 1500 ] && [ "$other_size" = 65507 ] && [ "${loss%.*}" -le 3 ] && [ "${other_loss%.*}" -ge 25 ] ||
    { echo "changed"; exit 1; }
