#!/bin/bash
# Guess:   With ns-3's LTE as its helpers set it up, a TCP download over an ideal cell gets the rate of the cell: the
#          base station buffers at least a bandwidth-delay product.
# Found:   A bearer has RLC UM with a buffer of 10240 bytes (LteRlcUm::MaxTxBufferSize), seven segments: the download gets
#          less than a third of what it gets with a buffer of 1 MB, and a comparison of congestion controls over LTE
#          compares how they do with a buffer far below the bandwidth-delay product.
# Version: ns-3 3.37 (Debian libns3-dev 3.37-2).
# Source:  goodput of one NewReno download from a server 10 ms from the gateway, with both buffers.
set -euo pipefail
version=3.37-2
command -v g++ dpkg apt-get >/dev/null || { echo "skipped: g++, dpkg and apt-get are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "libns3-dev=$version" "libns3.37=$version" libgsl27 libgslcblas0 libsqlite3-0 libxml2 >/dev/null 2>&1 ||
    { echo "skipped: the packages of ns-3 $version cannot be had"; exit 77; }
for package in *.deb; do dpkg -x "$package" root; done
cat >lte.cc <<'CODE'
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/applications-module.h"
#include "ns3/mobility-module.h"
#include "ns3/lte-module.h"
#include <iostream>
using namespace ns3;
// Mbit/s of a download from a server 10 ms away, with the transmit buffer of RLC UM in bytes (0: the default).
static double goodput(unsigned buffer) {
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1400));
    if (buffer) Config::SetDefault("ns3::LteRlcUm::MaxTxBufferSize", UintegerValue(buffer));
    auto lte = CreateObject<LteHelper>();
    auto epc = CreateObject<PointToPointEpcHelper>();
    lte->SetEpcHelper(epc);
    NodeContainer server(1), cell(1), mobile(1);
    InternetStackHelper stack;
    stack.Install(server);
    stack.Install(mobile);
    PointToPointHelper wired;
    wired.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    wired.SetChannelAttribute("Delay", StringValue("10ms"));
    auto wiredDevices = wired.Install(epc->GetPgwNode(), server.Get(0));
    Ipv4AddressHelper("1.0.0.0", "255.0.0.0").Assign(wiredDevices);
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(server.Get(0)->GetObject<Ipv4>())->AddNetworkRouteTo("7.0.0.0", "255.0.0.0", 1);
    MobilityHelper().Install(cell);
    MobilityHelper().Install(mobile);
    auto cellDevice = lte->InstallEnbDevice(cell);
    auto mobileDevice = lte->InstallUeDevice(mobile);
    auto address = epc->AssignUeIpv4Address(mobileDevice);
    routing.GetStaticRouting(mobile.Get(0)->GetObject<Ipv4>())->SetDefaultRoute(epc->GetUeDefaultGatewayAddress(), 1);
    lte->Attach(mobileDevice, cellDevice.Get(0));
    auto sink = PacketSinkHelper("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9)).Install(mobile);
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(address.GetAddress(0), 9));
    auto download = source.Install(server);
    download.Start(Seconds(0.5));
    Simulator::Stop(Seconds(8));
    Simulator::Run();
    double rate = DynamicCast<PacketSink>(sink.Get(0))->GetTotalRx() * 8 / 7.5 / 1e6;
    Simulator::Destroy();
    return rate;
}
int main() {
    std::cout << goodput(0) << " " << std::flush;
    std::cout << goodput(1000000) << std::endl;
}
CODE
libraries=root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -Iroot/usr/include lte.cc -o lte -L"$libraries" -Wl,-rpath-link,"$libraries" -lns3-lte -lns3-mobility \
    -lns3-applications -lns3-point-to-point -lns3-internet -lns3-traffic-control -lns3-network -lns3-core
read -r usual large <<<"$(LD_LIBRARY_PATH=$libraries ./lte)"
echo "seen: $usual Mbit/s with the default buffer, $large Mbit/s with 1 MB"
awk "BEGIN { exit !($usual * 3 < $large) }" || { echo "changed"; exit 1; }
