// Bulk TCP flows in ns-3, each over a bottleneck of its own.
//
//   flows --flows=1 --seconds=3600 --delay-mean=0 --fixed-delay=0.2 --reverse-delay=0.2 --run=1
//
// Every chain is server --100 Mbit/s, 1 ms-- edge == 200 kbit/s down, 64 kbit/s up == mobile, with a buffer of 10 packets beside the one
// in transmission; packets of 1000 bytes with their headers. With --delay-mean (flows=1) every packet on the hop down
// draws an exponential delay. Prints one line of JSON.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr double kRate = 200e3;
constexpr uint32_t kPacketBytes = 1000;
// 2 bytes of PPP, 20 of IPv4, 20 of TCP.
constexpr uint32_t kPayloadBytes = kPacketBytes - 42;

struct Settings {
    uint32_t flows = 1;
    uint32_t run = 1;
    double seconds = 3600;
    double delayMean = 0;
    double fixedDelay = 0.2;
    double reverseDelay = 0.2;
};

// Draws the delay of every packet just before the channel reads it. A point-to-point channel of ns-3 has one delay for both
// directions, so each direction sets it anew. Packets keep their order.
class VariableDelay {
  public:
    VariableDelay(const Settings& settings, Ptr<PointToPointNetDevice> down, Ptr<PointToPointNetDevice> up)
        : settings_(settings), channel_(DynamicCast<PointToPointChannel>(down->GetChannel())),
          delays_(CreateObject<ExponentialRandomVariable>()) {
        delays_->SetAttribute("Mean", DoubleValue(settings.delayMean));
        down->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&VariableDelay::Down, this));
        up->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&VariableDelay::Up, this));
    }

  private:
    void Down(Ptr<const Packet> packet) {
        const double departs = Simulator::Now().GetSeconds() + packet->GetSize() * 8 / kRate;
        lastArrival_ = std::max(departs + settings_.fixedDelay + delays_->GetValue(), lastArrival_ + 1e-7);
        Set(lastArrival_ - departs);
    }
    void Up(Ptr<const Packet>) { Set(settings_.reverseDelay); }
    void Set(double seconds) { channel_->SetAttribute("Delay", TimeValue(Seconds(seconds))); }

    Settings settings_;
    Ptr<PointToPointChannel> channel_;
    Ptr<ExponentialRandomVariable> delays_;
    double lastArrival_ = 0;
};

struct Hop {
    NetDeviceContainer devices;
    Ipv4InterfaceContainer addresses;
};

Hop Connect(PointToPointHelper& link, Ptr<Node> a, Ptr<Node> b, uint32_t number) {
    Hop hop;
    hop.devices = link.Install(a, b);
    const std::string net = "10." + std::to_string(number / 250) + "." + std::to_string(number % 250) + ".0";
    Ipv4AddressHelper address;
    address.SetBase(net.c_str(), "255.255.255.0");
    hop.addresses = address.Assign(hop.devices);
    // The device queue alone is the buffer.
    TrafficControlHelper().Uninstall(hop.devices);
    return hop;
}

void Defaults() {
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpLinuxReno"));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kPayloadBytes));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(500 * kPayloadBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(500 * kPayloadBytes));
}

Ptr<PacketSink> Chain(const Settings& settings, uint32_t number, std::vector<VariableDelay>& variable) {
    NodeContainer nodes;
    nodes.Create(3);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);

    PointToPointHelper wired, radio;
    wired.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    wired.SetChannelAttribute("Delay", StringValue("1ms"));
    wired.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("100000p"));
    // One delay for both directions of a channel: their mean where it is constant.
    radio.SetChannelAttribute("Delay", TimeValue(Seconds((settings.fixedDelay + settings.reverseDelay) / 2)));
    radio.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("10p"));
    const Hop first = Connect(wired, nodes.Get(0), nodes.Get(1), 2 * number);
    const Hop second = Connect(radio, nodes.Get(1), nodes.Get(2), 2 * number + 1);

    const auto down = DynamicCast<PointToPointNetDevice>(second.devices.Get(0));
    const auto up = DynamicCast<PointToPointNetDevice>(second.devices.Get(1));
    down->SetDataRate(DataRate(static_cast<uint64_t>(kRate)));
    up->SetDataRate(DataRate("64kbps"));
    up->GetQueue()->SetMaxSize(QueueSize("100000p"));
    if (settings.delayMean > 0) {
        variable.emplace_back(settings, down, up);
    }

    Ipv4StaticRoutingHelper routing;
    const auto defaultRoute = [&](Ptr<Node> node, Ipv4Address through) {
        routing.GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(through, 1);
    };
    defaultRoute(nodes.Get(0), first.addresses.GetAddress(1));
    defaultRoute(nodes.Get(2), second.addresses.GetAddress(0));

    PacketSinkHelper receiver("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(second.addresses.GetAddress(1), 9));
    sender.SetAttribute("SendSize", UintegerValue(kPayloadBytes));
    sender.Install(nodes.Get(0)).Start(Seconds(0));
    return DynamicCast<PacketSink>(receiver.Install(nodes.Get(2)).Get(0));
}

} // namespace

int main(int argc, char** argv) {
    Settings settings;
    CommandLine command;
    command.AddValue("flows", "chains with a flow each", settings.flows);
    command.AddValue("run", "number of the run of the random streams", settings.run);
    command.AddValue("seconds", "simulated time", settings.seconds);
    command.AddValue("delay-mean", "mean of the exponential delay down, s", settings.delayMean);
    command.AddValue("fixed-delay", "fixed delay down, s", settings.fixedDelay);
    command.AddValue("reverse-delay", "delay up, s", settings.reverseDelay);
    command.Parse(argc, argv);
    RngSeedManager::SetRun(settings.run);
    Defaults();

    std::vector<VariableDelay> variable;
    variable.reserve(settings.flows); // the callbacks hold its elements by address
    std::vector<Ptr<PacketSink>> receivers;
    for (uint32_t number = 0; number < settings.flows; ++number) {
        receivers.push_back(Chain(settings, number, variable));
    }
    Simulator::Stop(Seconds(settings.seconds));
    Simulator::Run();

    uint64_t bytes = 0;
    for (const auto& receiver : receivers) {
        bytes += receiver->GetTotalRx();
    }
    std::printf("{\"packets\": %" PRIu64 "}\n", bytes / kPayloadBytes);
    return 0;
}
