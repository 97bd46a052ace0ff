#!/bin/bash
# Guess:   Linux falls back from ECN at a lost handshake in the same way on both sides: neither a repeated SYN nor a
#          repeated SYN-ACK mentions ECN (net.ipv4.tcp_ecn_fallback = 1).
# Found:   Only the SYN falls back. A repeated SYN has neither ECE nor CWR; a repeated SYN-ACK still has ECE.
# Version: Linux 6.18.
# Source:  the packets of both below, at a TUN device; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip python3 unshare >/dev/null && [ -e /dev/net/tun ] ||
    { echo "skipped: root, iproute2, python3 and /dev/net/tun are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
seen=$(python3 - <<'CODE'
import fcntl, os, select, socket, struct, subprocess, time
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"tun0", 0x1001))
subprocess.check_call("ip addr add 10.9.0.1/24 dev tun0 && ip link set tun0 up", shell=True)
open("/proc/sys/net/ipv4/tcp_ecn", "w").write("1")
def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
def syn():
    ends = socket.inet_aton("10.9.0.2") + socket.inet_aton("10.9.0.1")
    tcp = struct.pack(">HHIIBBHHHHH", 5000, 80, 100, 0, 6 << 4, 0xC2, 65535, 0, 0, 0x0204, 1460)
    tcp = tcp[:16] + struct.pack(">H", checksum(ends + struct.pack(">BBH", 0, 6, len(tcp)) + tcp)) + tcp[18:]
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0) + ends
    return ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:] + tcp
names = {0xC2: "SYN,ECE,CWR", 0x02: "SYN", 0x52: "SYN,ACK,ECE", 0x12: "SYN,ACK"}
def flags(seconds):
    end, found = time.monotonic() + seconds, []
    while time.monotonic() < end:
        if select.select([tun], [], [], 0.1)[0]:
            packet = os.read(tun, 2000)
            if packet[0] >> 4 == 4 and packet[9] == 6:
                found.append(names.get(packet[33], hex(packet[33])))
    return " ".join(found)
client = socket.socket()
client.setblocking(False)
client.connect_ex(("10.9.0.2", 81))
print("client:", flags(1.6))
client.close()
listener = socket.socket()
listener.bind(("10.9.0.1", 80))
listener.listen()
os.write(tun, syn())
print("server:", flags(1.6))
CODE
)
echo "Linux $(uname -r), tcp_ecn = 1, no answer to the first packet"
echo "$seen"
[ "$seen" = "client: SYN,ECE,CWR SYN
server: SYN,ACK,ECE SYN,ACK,ECE" ] || { echo "changed"; exit 1; }
