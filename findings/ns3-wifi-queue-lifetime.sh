#!/bin/bash
# Guess:   A Wi-Fi device of ns-3 queues up to 500 packets (MaxSize of WifiMacQueue), so under overload the delay is that
#          of 500 packets.
# Found:   The queue also drops each packet that has waited for 500 ms (MaxDelay): at 6 Mbit/s no packet has a delay above
#          0.5 s, where 500 packets would take 1.07 s. Bufferbloat, timeouts and slow rates beyond that cannot be seen
#          without raising MaxDelay.
# Version: ns-3 3.37 (Debian libns3-dev 3.37-2).
# Source:  UDP of 11 Mbit/s over 802.11a at 6 Mbit/s, without a queue disc above the device.
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
cat >wifi.cc <<'CODE'
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"
#include <algorithm>
#include <iostream>
using namespace ns3;
static int64_t largest;
static void received(Ptr<const Packet> packet) {
    SeqTsHeader header;
    packet->Copy()->RemoveHeader(header);
    largest = std::max(largest, (Simulator::Now() - header.GetTs()).GetMilliSeconds());
}
// Largest delay in ms.
static int64_t delay() {
    largest = 0;
    NodeContainer nodes(2);
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211a);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("OfdmRate6Mbps"));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    YansWifiPhyHelper phy;
    phy.SetChannel(YansWifiChannelHelper::Default().Create());
    auto devices = wifi.Install(phy, mac, nodes);
    MobilityHelper().Install(nodes);
    InternetStackHelper().Install(nodes);
    auto addresses = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    auto server = UdpServerHelper(9).Install(nodes.Get(1));
    server.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&received));
    UdpClientHelper client(addresses.GetAddress(1), 9);
    client.SetAttribute("Interval", StringValue("1ms"));
    client.SetAttribute("PacketSize", UintegerValue(1400));
    client.SetAttribute("MaxPackets", UintegerValue(1000000));
    client.Install(nodes.Get(0)).Stop(Seconds(10));
    Simulator::Stop(Seconds(11));
    Simulator::Run();
    Simulator::Destroy();
    return largest;
}
int main() {
    std::cout << delay() << " ";
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", StringValue("100s"));
    std::cout << delay() << std::endl;
}
CODE
libraries=root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -Iroot/usr/include wifi.cc -o wifi -L"$libraries" -Wl,-rpath-link,"$libraries" -lns3-wifi -lns3-mobility \
    -lns3-applications -lns3-internet -lns3-traffic-control -lns3-network -lns3-core
read -r usual raised <<<"$(LD_LIBRARY_PATH=$libraries ./wifi)"
echo "seen: largest delay $usual ms by default, $raised ms with MaxDelay 100 s"
[ "$usual" -lt 520 ] && [ "$raised" -gt 900 ] || { echo "changed"; exit 1; }
