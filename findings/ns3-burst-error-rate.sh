#!/bin/bash
# Guess:   A BurstErrorModel of ns-3 with ErrorRate 0.01 loses one packet in a hundred, in bursts.
# Found:   ErrorRate is the rate at which bursts start, and a burst has 1 to 4 packets by default (BurstSize): 2.5 % are
#          lost. To compare random with bursty loss at the same loss rate, divide ErrorRate by the mean of BurstSize.
# Version: ns-3 3.37 (Debian libns3-dev 3.37-2).
# Source:  100000 packets through the model.
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
cat >bursts.cc <<'CODE'
#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include <iostream>
using namespace ns3;
int main() {
    auto model = CreateObject<BurstErrorModel>();
    model->SetAttribute("ErrorRate", DoubleValue(0.01));
    int lost = 0;
    for (int number = 0; number < 100000; ++number) lost += model->IsCorrupt(Create<Packet>(1500));
    std::cout << lost << std::endl;
}
CODE
libraries=root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -Iroot/usr/include bursts.cc -o bursts -L"$libraries" -Wl,-rpath-link,"$libraries" -lns3-network -lns3-core
lost=$(LD_LIBRARY_PATH=$libraries ./bursts)
echo "seen, of 100000 packets with ErrorRate 0.01: $lost lost"
[ "$lost" -gt 2000 ] && [ "$lost" -lt 3000 ] || { echo "changed"; exit 1; }
