#!/bin/bash
# Guess:   In nftables, `limit rate 6000 kbytes/minute` polices like `100 kbytes/second`, as `6000/minute` polices like
#          `100/second`, and without `burst` the bucket holds a few packets.
# Found:   A limit in packets has a bucket of `burst` packets, 5 by default. A limit in bytes has a bucket of one whole
#          unit of time plus `burst`: 100 kbytes/second lets 100 kB pass at once, 6000 kbytes/minute lets 6 MB pass at
#          once. A policer with a rate per minute or hour does not limit short downloads at all.
# Version: Linux 6.18, nftables 1.0.6.
# Source:  bursts of 10000 packets of 1000 bytes on loopback; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip nft python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2, nftables and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
echo "seen on Linux $(uname -r), $(nft --version):"
ip link set lo up
passed() { # LIMIT: packets of the burst that pass it
    nft flush ruleset
    nft -f - <<RULES || { echo "skipped: the kernel lacks limits of nftables" >&2; exit 77; }
table ip finding {
    chain in {
        type filter hook input priority 0;
        udp dport 7777 limit rate over $1 drop
        udp dport 7777 counter
    }
}
RULES
    python3 - <<'CODE'
import socket
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 7777))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(10_000):
    sender.sendto(bytes(972), ("127.0.0.1", 7777))
CODE
    nft list chain ip finding in | sed -n 's/.*counter packets \([0-9]*\).*/\1/p'
}
for limit in "100/second" "6000/minute" "100 kbytes/second" "6000 kbytes/minute"; do
    count=$(passed "$limit")
    echo "limit rate $limit: $count of 10000 packets pass at once"
    counts+=("$count")
done
[ "${counts[0]}" -lt 90 ] && [ "${counts[1]}" -lt 90 ] && [ "${counts[2]}" -ge 100 ] && [ "${counts[2]}" -lt 1000 ] &&
    [ "${counts[3]}" -ge 6000 ] || { echo "changed"; exit 1; }
