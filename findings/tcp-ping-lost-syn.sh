#!/bin/bash
# Guess:   A ping over TCP (tcp-latency, tcppinglib) reports a lost SYN as lost, and other values are round-trip times.
# Found:   The kernel retransmits the SYN after one second, and the tools count the connection that follows: they report an
#          RTT above 1000 ms, and no loss. With a quarter of the SYNs dropped, tcppinglib shows 0 % loss. The mean and the
#          maximum show the timeout of the SYN, not the path.
# Version: tcp-latency 0.0.12, tcppinglib 2.0.5.
# Source:  eight pings with each, on loopback, where every fourth SYN is dropped; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip nft python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2, nftables and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv && venv/bin/pip -q install tcp-latency==0.0.12 tcppinglib==2.0.5 2>/dev/null ||
    { echo "skipped: the packages cannot be had"; exit 77; }
cat >drop.nft <<'RULES'
table ip finding {
    chain in {
        type filter hook input priority 0;
        tcp dport 8000 tcp flags & (syn | ack) == syn numgen inc mod 4 2 drop
    }
}
RULES
cat >ping.py <<'CODE'
import socket, sys, threading
from tcp_latency import measure_latency
from tcppinglib import tcpping
listener = socket.create_server(("127.0.0.1", 8000))
def accept():
    while True:
        listener.accept()[0].close()
threading.Thread(target=accept, daemon=True).start()
times = measure_latency(host="127.0.0.1", port=8000, runs=8, wait=0)
host = tcpping("127.0.0.1", port=8000, count=8, interval=0)
slow = sum(one > 900 for one in times if one is not None)
print(f"seen: tcp-latency: {times.count(None)} of 8 lost, {slow} above 900 ms, highest {max(one or 0 for one in times):.0f} ms")
print(f"seen: tcppinglib: loss {host.packet_loss}, highest RTT {host.max_rtt:.0f} ms, mean {host.avg_rtt:.0f} ms")
sys.exit(0 if None not in times and slow and host.packet_loss == 0 and host.max_rtt > 900 else 1)
CODE
unshare -n bash -c "ip link set lo up; nft -f drop.nft; venv/bin/python ping.py" || { echo "changed"; exit 1; }
