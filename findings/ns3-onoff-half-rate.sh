#!/bin/bash
# Guess:   OnOffHelper of ns-3 with the DataRate 1Mbps and no other attribute is a constant source of 1 Mbit/s;
#          SetConstantRate only sets the rate and the size of packets.
# Found:   OnTime and OffTime are one second each by default, so it sends half of that, as 1 Mbit/s every other second,
#          and a queue that is to be filled drains each time. SetConstantRate also sets OnTime 1000 s and OffTime 0.
# Version: ns-3 3.37 (Debian libns3-dev 3.37-2).
# Source:  bytes at a sink of 20 s of each.
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
cat >source.cc <<'CODE'
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include <iostream>
using namespace ns3;
// kbit/s of 20 s of a source of 1 Mbit/s.
static int rate(bool constant) {
    NodeContainer nodes(2);
    InternetStackHelper().Install(nodes);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    auto addresses = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(link.Install(nodes));
    OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(addresses.GetAddress(1), 9));
    if (constant) source.SetConstantRate(DataRate("1Mbps"));
    else source.SetAttribute("DataRate", StringValue("1Mbps"));
    source.Install(nodes.Get(0)).Stop(Seconds(20));
    auto sink = PacketSinkHelper("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9)).Install(nodes.Get(1));
    Simulator::Stop(Seconds(21));
    Simulator::Run();
    int result = DynamicCast<PacketSink>(sink.Get(0))->GetTotalRx() * 8 / 20 / 1000;
    Simulator::Destroy();
    return result;
}
int main() {
    int usual = rate(false), constant = rate(true);
    std::cout << usual << " " << constant << std::endl;
}
CODE
libraries=root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -Iroot/usr/include source.cc -o source -L"$libraries" -Wl,-rpath-link,"$libraries" \
    -lns3-applications -lns3-point-to-point -lns3-internet -lns3-traffic-control -lns3-network -lns3-core
read -r usual constant <<<"$(LD_LIBRARY_PATH=$libraries ./source)"
echo "seen, with 1Mbps: $usual kbit/s from OnOffHelper, $constant kbit/s after SetConstantRate"
[ "$usual" -lt 600 ] && [ "$constant" -gt 950 ] || { echo "changed"; exit 1; }
