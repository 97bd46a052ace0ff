#!/bin/bash
# Guess:   In pyroute2, `rate=1000000` and `rate="1000000"` are the same rate, bit/s as with tc; `rate="1mbit"` is another way
#          to write it.
# Found:   A string is in bit/s, a number in byte/s: the number is a shaper eight times as fast. A number for `latency` is in
#          microseconds: `latency=50` is not "50ms".
# Version: pyroute2 0.9.7, iproute2 6.1.
# Source:  filters and classes as tc shows them; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip tc python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" -q install pyroute2==0.9.7 2>/dev/null ||
    { echo "skipped: pyroute2 cannot be had"; exit 77; }
cat >"$folder/rates.py" <<'CODE'
import re, subprocess, sys
from pyroute2 import IPRoute
ROOT, HANDLE = 0xFFFFFFFF, 0x10000
def shown(kind):
    return subprocess.check_output(["tc", kind, "show", "dev", "wire0"], text=True)
seen = []
with IPRoute() as routes:
    [index] = routes.link_lookup(ifname="wire0")
    for rate, latency in (("1mbit", "50ms"), ("1000000", "50ms"), (1000000, "50ms"), ("1mbit", 50)):
        routes.tc("add", "tbf", index, HANDLE, parent=ROOT, rate=rate, burst=15400, latency=latency)
        seen.append(re.search(r"rate (\S+) burst 15400b lat (\S+)", shown("qdisc")).groups())
        print(f"seen: tbf rate={rate!r}, latency={latency!r}: {shown('qdisc').splitlines()[0]}")
        subprocess.check_call(["tc", "qdisc", "del", "dev", "wire0", "root"])
    routes.tc("add", "htb", index, HANDLE)
    for number, rate in enumerate(("1000000", 1000000), 1):
        routes.tc("add-class", "htb", index, HANDLE + number, parent=HANDLE, rate=rate)
        seen.append(re.search(rf"htb 1:{number} .* rate (\S+)", shown("class")).group(1))
        print(f"seen: htb rate={rate!r}: {seen[-1]}")
sys.exit(0 if seen[:3] == [("1Mbit", "50ms"), ("1Mbit", "50ms"), ("8Mbit", "50ms")] and seen[3][1].endswith("us")
         and seen[4:] == ["1Mbit", "8Mbit"] else 1)
CODE
unshare -n bash -c "ip link add wire0 type veth peer name wire1; ip link set wire0 up; '$folder/venv/bin/python' '$folder/rates.py'" ||
    { echo "changed"; exit 1; }
