#!/bin/bash
# Guess:   On a path with an RTT of 1.5 s, as a filled buffer of a cellular link has it, `fping -c` (the probe of many monitors)
#          reports what `ping -c` reports: no loss, 1500 ms.
# Found:   100 % loss. The timeout of `-c` and `-C` is the period between probes, 1 s by default; a reply that comes later
#          is lost. With `-t 5000` all replies are counted. A graph shows an outage where there is queueing delay.
# Version: fping 5.1 (Debian 12: fping 5.1-1).
# Source:  three probes into a TUN device whose reader answers after 1.5 s; the manual says so in the text of -t; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v apt-get dpkg ip ping python3 unshare >/dev/null && [ -e /dev/net/tun ] ||
    { echo "skipped: root, apt-get, dpkg, iproute2, ping, python3 and /dev/net/tun are needed"; exit 77; }
if [ "${1:-}" != inside ]; then
    sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    (cd "$folder" && apt-get download -qq fping >/dev/null 2>&1 && dpkg -x fping_*.deb .) || { echo "skipped: fping cannot be had"; exit 77; }
    echo "seen with fping $("$folder/usr/bin/fping" -v | sed -n "s/.*Version //p"), $(ping -V | head -1 | cut -d, -f1):"
    script=$(readlink -f "$0")
    PATH=$PATH:$folder/usr/bin unshare -n "$script" inside || exit $?
    exit
fi
ip tuntap add tun0 mode tun
ip addr add 10.8.0.1/24 dev tun0
ip link set tun0 up
python3 - <<'CODE' &
import collections, fcntl, os, select, struct, time
IFF_TUN, IFF_NO_PI, TUNSETIFF, DELAY = 1, 0x1000, 0x400454CA, 1.5  # seconds
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", b"tun0", IFF_TUN | IFF_NO_PI))
def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    return ~(total % 0xFFFF) & 0xFFFF
def reply(packet):
    message = b"\0\0\0\0" + packet[24:]
    return packet[:12] + packet[16:20] + packet[12:16] + message[:2] + struct.pack(">H", checksum(message)) + message[4:]
queue = collections.deque()
while True:
    if select.select([tun], [], [], 0.01)[0]:
        packet = os.read(tun, 2000)
        if packet[0] == 0x45 and packet[9] == 1 and packet[20] == 8:  # an echo request
            queue.append((time.monotonic() + DELAY, reply(packet)))
    while queue and queue[0][0] <= time.monotonic():
        os.write(tun, queue.popleft()[1])
CODE
trap 'kill $!' EXIT
sleep 1
lost() { sed -n 's/.* \([0-9]*\)% packet loss.*/\1/p; s/.*%loss = [0-9]*\/[0-9]*\/\([0-9]*\)%.*/\1/p'; }
ping=$(ping -q -c 3 10.8.0.2 | lost)
default=$({ fping -q -c 3 10.8.0.2 2>&1 || true; } | lost) # fping fails if nothing answers
longer=$(fping -q -c 3 -t 5000 10.8.0.2 2>&1 | lost)
echo "loss with an RTT of 1.5 s: ping -c 3 $ping %, fping -c 3 $default %, fping -c 3 -t 5000 $longer %"
[ "$ping $default $longer" = "0 100 0" ] || { echo "changed"; exit 1; }
