#!/bin/bash
# Guess:   In the tcp_info of pyroute2 (DiagSocket, INET_DIAG_INFO) `tcpi_snd_wscale` and `tcpi_rcv_wscale` are the two
#          window scales of a connection, like `wscale:` of ss(8).
# Found:   Both are the scale that the peer advertises. The one of this host is missing: a window computed from a captured
#          packet with `tcpi_rcv_wscale` is wrong by a power of two if the two ends advertise different scales.
# Version: pyroute2 0.9.7, iproute2 6.1.
# Source:  a connection on loopback whose ends advertise different scales; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip ss python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" -q install pyroute2==0.9.7 2>/dev/null ||
    { echo "skipped: pyroute2 cannot be had"; exit 77; }
cat >"$folder/scales.py" <<'CODE'
import re, socket, subprocess, sys
from pyroute2 import DiagSocket
INET_DIAG_INFO, PORT = 2, 5055
listener = socket.create_server(("127.0.0.1", PORT))
client = socket.socket()
client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 50_000)
client.connect(listener.getsockname())
server, _ = listener.accept()
line = subprocess.check_output(["ss", "-tin", f"dport = {PORT}"], text=True)
shown = tuple(int(one) for one in re.search(r"wscale:(\d+),(\d+)", line).groups())
with DiagSocket() as diag:
    diag.bind()
    [info] = [one.get_attr("INET_DIAG_INFO") for one in diag.get_sock_stats(family=socket.AF_INET, extensions=1 << (INET_DIAG_INFO - 1))
              if one["idiag_dport"] == PORT]
read = info["tcpi_snd_wscale"], info["tcpi_rcv_wscale"]
print(f"seen: scales of the peer and of this host: ss {shown}, pyroute2 {read}")
sys.exit(0 if shown[0] != shown[1] and read == (shown[0], shown[0]) else 1)
CODE
unshare -n bash -c "ip link set lo up; '$folder/venv/bin/python' '$folder/scales.py'" || { echo "changed"; exit 1; }
