#!/bin/bash
# Guess:   A RateErrorModel of ns-3 with ErrorRate 0.001 loses one packet in a thousand.
# Found:   The default unit of the rate is the byte: a packet of 1500 bytes is lost with 1 - 0.999^1500 = 78 %. One in a
#          thousand needs the attribute ErrorUnit ERROR_UNIT_PACKET.
# Version: ns-3 3.37 (Debian libns3-dev 3.37-2).
# Source:  10000 packets of 1500 bytes through the model, with both units.
set -euo pipefail
version=3.37-2
command -v g++ dpkg apt-get >/dev/null || { echo "skipped: g++, dpkg and apt-get are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "libns3-dev=$version" "libns3.37=$version" libgsl27 libgslcblas0 libsqlite3-0 >/dev/null 2>&1 ||
    { echo "skipped: the packages of ns-3 $version cannot be had"; exit 77; }
for package in *.deb; do dpkg -x "$package" root; done
cat >errors.cc <<'CODE'
#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include <iostream>
using namespace ns3;
static int lost(Ptr<RateErrorModel> model) {
    int count = 0;
    for (int number = 0; number < 10000; ++number) count += model->IsCorrupt(Create<Packet>(1500));
    return count;
}
int main() {
    auto usual = CreateObject<RateErrorModel>(), packets = CreateObject<RateErrorModel>();
    usual->SetAttribute("ErrorRate", DoubleValue(0.001));
    packets->SetAttribute("ErrorRate", DoubleValue(0.001));
    packets->SetAttribute("ErrorUnit", StringValue("ERROR_UNIT_PACKET"));
    std::cout << lost(usual) << " " << lost(packets) << std::endl;
}
CODE
libraries=root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -Iroot/usr/include errors.cc -o errors -L"$libraries" -Wl,-rpath-link,"$libraries" -lns3-network -lns3-core
read -r usual packets <<<"$(LD_LIBRARY_PATH=$libraries ./errors)"
echo "seen, of 10000 packets with ErrorRate 0.001: $usual lost by default, $packets with ERROR_UNIT_PACKET"
[ "$usual" -gt 7500 ] && [ "$usual" -lt 8000 ] && [ "$packets" -lt 30 ] || { echo "changed"; exit 1; }
