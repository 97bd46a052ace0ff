#!/bin/bash
# Guess:   In pfifo_fast, the default queue of the kernel, packets marked EF (voice) leave before best effort, those marked AF41
#          (video) not after it, and not after AF42, and those marked CS1 (background) after best effort.
# Found:   EF and CS1 are in the band of best effort. AF41 is in the lowest band, below best effort, and AF42, to be dropped
#          before AF41, is in the highest. The kernel reads the byte as the TOS of RFC 1349, where AF41 has the bit for
#          throughput and AF42 the bit for delay. A lab uplink with such a queue delays video that is marked as video.
# Version: Linux 6.18, iproute2 6.1.
# Source:  datagrams with IP_TOS in a queue of 1 Mbit/s; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip tc python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add wire0 type veth peer name wire1
ip link set wire0 up; ip link set wire1 up
ip addr add 10.9.0.1/24 dev wire0
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev wire0
tc qdisc add dev wire0 root handle 1: tbf rate 1mbit burst 2000 limit 100000
tc qdisc add dev wire0 parent 1:1 pfifo_fast 2>/dev/null || { echo "skipped: the kernel lacks pfifo_fast"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
echo "seen on Linux $(uname -r), $(tc -V), pfifo_fast $(tc qdisc show dev wire0 | grep -o 'priomap.*'):"
python3 - <<'CODE' || { echo "changed"; exit 1; }
import socket, sys
MARKS = {"best effort": 0x00, "EF": 0xB8, "AF41": 0x88, "CS1": 0x20, "AF42": 0x90}
SENT = ["best effort"] * 10 + ["AF41", "EF", "CS1", "AF42", "best effort", "best effort"]
ETH_P_IP, TOS, LENGTH = 0x0800, 14 + 1, 1000
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
tap.bind(("wire1", ETH_P_IP))
tap.settimeout(5)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for name in SENT:
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, MARKS[name])
    sender.sendto(bytes(LENGTH), ("10.9.0.2", 9))
names = {mark: name for name, mark in MARKS.items()}
order = [names[tap.recv(2000)[TOS]] for _ in SENT]
print("sent:", ", ".join(SENT))
print("left:", ", ".join(order))
place = order.index
sys.exit(0 if order[-1] == "AF41" and place("AF42") < place("EF") < place("CS1") and order[place("EF") - 1] == "best effort"
         and order[place("CS1") + 1] == "best effort" else 1)
CODE
