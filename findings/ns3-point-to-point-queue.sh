#!/bin/bash
# Guess:   A point-to-point device of ns-3 has one drop-tail queue of 100 packets, and TCP receives into what it needs.
# Found:   As soon as addresses are assigned, every point-to-point device also gets FqCoDel (10240 packets) above its
#          own queue, and the receive buffer of a TCP socket is 131072 bytes: a "drop-tail" comparison measures FqCoDel,
#          and no flow has more than 131072 bytes in flight.
# Version: ns-3 3.37 (Debian libns3-dev 3.37-2).
# Source:  attributes and default traffic control of the library, as printed below.
set -euo pipefail
version=3.37-2
command -v g++ dpkg apt-get >/dev/null || { echo "skipped: g++, dpkg and apt-get are needed"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "libns3-dev=$version" "libns3.37=$version" libgsl27 libgslcblas0 libsqlite3-0 >/dev/null 2>&1 ||
    { echo "skipped: the packages of ns-3 $version cannot be had"; exit 77; }
for package in *.deb; do dpkg -x "$package" root; done
cat >queue.cc <<'CODE'
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <iostream>
using namespace ns3;
int main() {
    NodeContainer nodes(2);
    InternetStackHelper().Install(nodes);
    auto devices = PointToPointHelper().Install(nodes);
    Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
    auto above = nodes.Get(0)->GetObject<TrafficControlLayer>()->GetRootQueueDiscOnDevice(devices.Get(0));
    auto own = DynamicCast<PointToPointNetDevice>(devices.Get(0))->GetQueue();
    std::cout << "above the device: " << (above ? above->GetInstanceTypeId().GetName() : "nothing");
    if (above) std::cout << ", " << above->GetMaxSize();
    std::cout << "\nof the device: " << own->GetInstanceTypeId().GetName() << ", " << own->GetMaxSize();
    TypeId::AttributeInformation buffer;
    TypeId::LookupByName("ns3::TcpSocket").LookupAttributeByName("RcvBufSize", &buffer);
    std::cout << "\nRcvBufSize: " << buffer.initialValue->SerializeToString(buffer.checker) << std::endl;
}
CODE
libraries=root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -Iroot/usr/include queue.cc -o queue -L"$libraries" -Wl,-rpath-link,"$libraries" \
    -lns3-point-to-point -lns3-internet -lns3-traffic-control -lns3-network -lns3-core
seen=$(LD_LIBRARY_PATH=$libraries ./queue)
echo "ns-3 $version"
echo "$seen"
[ "$seen" = "above the device: ns3::FqCoDelQueueDisc, 10240p
of the device: ns3::DropTailQueue<Packet>, 100p
RcvBufSize: 131072" ] || { echo "changed"; exit 1; }
