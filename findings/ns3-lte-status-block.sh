#!/bin/bash
# Guess:   A STATUS PDU of the RLC of ns-3's LTE has a few bytes, and shares a transport block with data.
# Found:   It takes a whole block, and the ACKs of a download call for one each 10 ms, StatusProhibitTimer: a download over
#          an ideal cell misses a tenth of the cell's rate, and has it with a timer of 100 ms.
# Version: ns-3 3.37 (Debian libns3-dev 3.37-2).
# Source:  goodput of benches/peers/lte_downloads.cc, where blocks have no errors, beside the blocks that are scheduled.
set -euo pipefail
version=3.37-2
command -v g++ dpkg apt-get python3 >/dev/null || { echo "skipped: g++, dpkg, apt-get and python3 are needed"; exit 77; }
peer=$(cd "$(dirname "$0")/.." && pwd)/benches/peers/lte_downloads.cc
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "libns3-dev=$version" "libns3.37=$version" libgsl27 libgslcblas0 libsqlite3-0 >/dev/null 2>&1 ||
    { echo "skipped: the packages of ns-3 $version cannot be had"; exit 77; }
for package in *.deb; do dpkg -x "$package" root; done
libraries=root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -O1 -Iroot/usr/include "$peer" -o downloads -L"$libraries" -Wl,-rpath-link,"$libraries" \
    -lns3-lte -lns3-mobility -lns3-applications -lns3-internet -lns3-traffic-control -lns3-point-to-point -lns3-network -lns3-core
share() { # of the blocks' rate that a download of 1448 in 1500 bytes has, percent
    LD_LIBRARY_PATH=$libraries ./downloads --seconds=8 --from=4 "--ns3::LteRlcAm::StatusProhibitTimer=$1" | python3 -c '
import json, sys
told = json.load(sys.stdin)
block = max(told["blocks"].values())
print(round(100 * told["goodput_bps"] / (8000 * block * 1448 / 1500)))'
}
usual=$(share 10ms) rare=$(share 100ms)
echo "ns-3 $version"
echo "goodput, percent of the cell's rate: $usual with a STATUS each 10 ms, $rare with one each 100 ms"
[ "$usual" -ge 85 ] && [ "$usual" -le 92 ] && [ "$rare" -ge 97 ] || { echo "changed"; exit 1; }
