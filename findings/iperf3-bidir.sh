#!/bin/sh
# Guess:   The JSON of `iperf3 -c HOST --bidir -J` says in `start.test_start` that the test has both directions, and
#          `sum` holds the same direction at the client and in `server_output_json`.
# Found:   `test_start` has no key `bidir` and `reverse` is 0, as for an upload. Only intervals tell: they have a second
#          sum, `sum_bidir_reverse`. `sum` is the upload at both ends, so its `sender` is true at the client and false at
#          the server; a reader that takes `sum` of a server for what it sent has the directions swapped.
# Version: iperf3 3.12 (Debian 12: iperf3, libiperf0, libsctp1).
# Source:  the test below, on loopback.
set -eu
command -v dpkg apt-get python3 >/dev/null || { echo "skipped: dpkg, apt-get and python3 are needed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"; kill "$server" 2>/dev/null || true' EXIT
server=
cd "$work"
apt-get download -qq iperf3 libiperf0 libsctp1 >/dev/null 2>&1
for package in ./*.deb; do dpkg -x "$package" root; done
library=$(dirname "$(find root -name 'libiperf.so.0' | head -n 1)")
export LD_LIBRARY_PATH="$work/$library"
iperf3=root/usr/bin/iperf3
$iperf3 --version | head -n 1
$iperf3 -s -1 -p 5998 -J >/dev/null &
server=$!
sleep 1
$iperf3 -c 127.0.0.1 -p 5998 -t 3 -b 4M -J --bidir --get-server-output >client.json
python3 - <<'PYTHON'
import json
import sys

client = json.load(open("client.json"))
test = client["start"]["test_start"]
ends = {"client": client, "server": client["server_output_json"]} if "server_output_json" in client else {"client": client}
sums = {end: {name: of["sender"] for name, of in report["intervals"][1].items() if name.startswith("sum")} for end, report in ends.items()}
print("test_start:", test)
print("`sender` of each sum:", sums)
seen = "bidir" not in test and test["reverse"] == 0 and sums["client"] == {"sum": True, "sum_bidir_reverse": False}
seen = seen and sums.get("server", {"sum": False})["sum"] is False
sys.exit(0 if seen else 1)
PYTHON
