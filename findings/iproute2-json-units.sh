#!/bin/bash
# Guess:   With `-j`, tc and ip print each number in the unit of their text output.
# Found:   The rate of tc-tbf is in bit/s as text and in byte/s as JSON, eight times less. The RTT of `ip tcp_metrics` is in
#          microseconds as text and in seconds as JSON. Text shows the unit, JSON does not.
# Version: iproute2 6.1.
# Source:  a filter of 4 Mbit/s and the metrics of one connection on loopback; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip tc python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n "$0" inside
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
echo "seen with $(tc -V), Linux $(uname -r):"
ip link set lo up
tc qdisc add dev lo root tbf rate 4mbit burst 15000 latency 50ms
python3 - <<'CODE'
import json, re, socket, subprocess, sys
def shown(command):
    text = subprocess.check_output(command, text=True)
    return text, json.loads(subprocess.check_output([command[0], "-j", *command[1:]], text=True))
listener = socket.create_server(("127.0.0.1", 0))
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
sender = socket.socket()
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
sender.connect(listener.getsockname())
receiver, _ = listener.accept()
sender.sendall(b"x")
receiver.recv(1)
sender.close()
receiver.close()
text, filters = shown(["tc", "qdisc", "show", "dev", "lo"])
rate = re.search(r"rate (\S+)", text)[1], filters[0]["options"]["rate"]
text, metrics = shown(["ip", "tcp_metrics", "show"])
rtt = re.search(r"rtt (\d+)us", text)[1], metrics[0]["rtt"]
print(f"rate of tbf: text {rate[0]}, JSON {rate[1]}")
print(f"RTT of tcp_metrics: text {rtt[0]}us, JSON {rtt[1]}")
sys.exit(0 if rate == ("4Mbit", 500_000) and abs(float(rtt[0]) / 1e6 - rtt[1]) < 2e-6 else 1)
CODE
