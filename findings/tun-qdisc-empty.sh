#!/bin/bash
# Guess:   While the program that reads a TUN device (a VPN, an emulator) is slower than its traffic, packets queue in the
#          queueing discipline of the device, so its limit, or RED or CoDel, controls the queue.
# Found:   The queueing discipline stays empty and drops nothing. Packets queue in a ring of `txqueuelen` packets behind it
#          (500 by default) and are dropped when the ring is full; the discipline counts them as sent, and only the
#          device's counter of dropped packets shows them.
# Version: Linux 6.18.
# Source:  2000 datagrams into a TUN device with a pfifo of 50 packets and no reader; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip tc python3 unshare >/dev/null && [ -e /dev/net/tun ] ||
    { echo "skipped: root, iproute2, python3 and /dev/net/tun are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
echo "seen on Linux $(uname -r):"
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
python3 - <<'CODE'
import fcntl, json, os, socket, struct, subprocess, sys
def command(line):
    return subprocess.check_output(line, shell=True, text=True)
tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"tun0", 0x1001))
command("ip addr add 10.9.0.1/24 dev tun0; ip link set tun0 up; tc qdisc add dev tun0 root pfifo limit 50")
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(2000):
    sender.sendto(bytes(1000), ("10.9.0.2", 9))
discipline = json.loads(command("tc -s -j qdisc show dev tun0"))[0]
device = json.loads(command("ip -s -j link show tun0"))[0]
dropped = device["stats64"]["tx"]["dropped"]
waiting = 0
try:
    while os.read(tun, 2000):
        waiting += 1
except BlockingIOError:
    pass
print(f"pfifo: sent {discipline['packets']}, dropped {discipline['drops']}, backlog {discipline['qlen']} of 50 packets")
print(f"device: dropped {dropped}, waiting {waiting}, txqueuelen {device['txqlen']}")
full = waiting == device["txqlen"] and dropped == 2000 - waiting
empty = discipline["qlen"] == 0 and discipline["drops"] == 0 and discipline["packets"] == 2000
sys.exit(0 if full and empty else 1)
CODE
