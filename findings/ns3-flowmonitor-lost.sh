#!/bin/bash
# Guess:   `lostPackets` of ns-3's FlowMonitor is the number of packets that a flow lost, at whatever time it is read.
# Found:   A packet that a channel corrupts is counted 10 s after it was sent (MaxPerHopDelay), also by
#          CheckForLostPackets(): a run of 8.5 s over a link that loses 10 % reports no loss. The same traffic in a
#          run that goes on for 30 s reports it.
# Version: ns-3 3.37 (Debian libns3-dev 3.37-2).
# Source:  8 s of UDP over a link with a RateErrorModel, read after 8.5 s and after 30 s.
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
cat >lost.cc <<'CODE'
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/flow-monitor-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include <iostream>
using namespace ns3;
static void run(double seconds) {
    NodeContainer nodes(2);
    InternetStackHelper().Install(nodes);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    auto devices = link.Install(nodes);
    auto addresses = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
    auto errors = CreateObject<RateErrorModel>();
    errors->SetAttribute("ErrorRate", DoubleValue(0.1));
    errors->SetAttribute("ErrorUnit", StringValue("ERROR_UNIT_PACKET"));
    devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    UdpServerHelper(9).Install(nodes.Get(1));
    UdpClientHelper client(addresses.GetAddress(1), 9);
    client.SetAttribute("Interval", StringValue("10ms"));
    client.SetAttribute("MaxPackets", UintegerValue(1000000));
    client.Install(nodes.Get(0)).Stop(Seconds(8));
    FlowMonitorHelper helper;
    auto monitor = helper.InstallAll();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    monitor->CheckForLostPackets();
    auto flow = monitor->GetFlowStats().begin()->second;
    std::cout << flow.txPackets << " " << flow.rxPackets << " " << flow.lostPackets << std::endl;
    Simulator::Destroy();
}
int main() {
    run(8.5);
    run(30);
}
CODE
libraries=root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -Iroot/usr/include lost.cc -o lost -L"$libraries" -Wl,-rpath-link,"$libraries" \
    -lns3-flow-monitor -lns3-applications -lns3-point-to-point -lns3-internet -lns3-traffic-control -lns3-network -lns3-core
read -r -d '' sent received lost later_sent later_received later_lost <<<"$(LD_LIBRARY_PATH=$libraries ./lost)" || true
echo "seen, run of 8.5 s: $sent sent, $received received, $lost lost"
echo "seen, run of 30 s:  $later_sent sent, $later_received received, $later_lost lost"
[ "$lost" = 0 ] && [ "$received" -lt $((sent * 95 / 100)) ] && [ "$later_lost" = $((later_sent - later_received)) ] ||
    { echo "changed"; exit 1; }
