// Downloads of TCP over one cell of ns-3's LTE (RLC AM), all simulated: the servers behind the core, and the terminals.
//
//   lte-downloads --users=4 --sender=cubic --buffer=300000 --distances=100,600 --hold=2 --seconds=60
//
// All terminals are at the same distance from the base station. Blocks have no errors. Prints a line of JSON, of the time
// after `--from`: goodput of all users, delay of the bearers from PDCP to PDCP, drops of the RLC, and for each distance
// the largest transport block, which is that of all resource blocks.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr uint8_t kFirstDataBearer = 3;  // logical channels below carry signalling

struct Settings {
    double seconds = 60;
    double from = 1;           // s
    uint32_t blocks = 25;      // resource blocks: 6, 15, 25, 50, 75 or 100
    uint32_t buffer = 300000;  // RLC of each user, bytes
    uint32_t users = 1;
    std::string sender = "cubic";
    int delay = 5;                  // one way between server and core, ms
    std::string distances = "100";  // of the terminals from the base station in turn, m
    double hold = 2;                // at each distance, s
};

struct Told {
    std::vector<double> delaysMs;
    uint64_t drops = 0;
    std::map<double, uint16_t> largest;  // transport block by distance, bytes
    std::vector<uint64_t> before;        // bytes of each sink at the start
};

Settings settings;
Told told;
double distance;

double Quantile(std::vector<double>& values, double share) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, static_cast<size_t>(share * values.size()))];
}

bool Counts() { return Simulator::Now().GetSeconds() >= settings.from; }

void OnReceived(uint16_t, uint8_t channel, uint32_t, uint64_t delayNs) {
    if (channel >= kFirstDataBearer && Counts()) told.delaysMs.push_back(delayNs / 1e6);
}

void OnDropped(Ptr<const Packet>) { told.drops += Counts(); }

void OnScheduled(DlSchedulingCallbackInfo info) {
    auto& largest = told.largest[distance];
    largest = std::max(largest, info.sizeTb1);
}

// Bearers exist once the terminals are connected.
void Listen() {
    const std::string nodes = "/NodeList/*/DeviceList/*/";
    Config::ConnectWithoutContext(nodes + "$ns3::LteUeNetDevice/LteUeRrc/DataRadioBearerMap/*/LtePdcp/RxPDU",
                                  MakeCallback(&OnReceived));
    Config::ConnectWithoutContext(nodes + "LteEnbRrc/UeMap/*/DataRadioBearerMap/*/LteRlc/TxDrop", MakeCallback(&OnDropped));
}

void Configure() {
    // Defaults: 10 240 bytes, and bearers of RLC UM unless they guarantee a rate.
    Config::SetDefault("ns3::LteRlcAm::MaxTxBufferSize", UintegerValue(settings.buffer));
    Config::SetDefault("ns3::LteEnbRrc::EpsBearerToRlcMapping", EnumValue(LteEnbRrc::RLC_AM_ALWAYS));
    Config::SetDefault("ns3::LteEnbRrc::SrsPeriodicity", UintegerValue(40));  // for up to 20 users
    Config::SetDefault("ns3::LteSpectrumPhy::DataErrorModelEnabled", BooleanValue(false));
    Config::SetDefault("ns3::LteSpectrumPhy::CtrlErrorModelEnabled", BooleanValue(false));
    const std::map<std::string, std::string> types{{"cubic", "TcpCubic"}, {"sack", "TcpLinuxReno"}, {"bbr", "TcpBbr"}};
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + types.at(settings.sender))));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
}

void Move(NodeContainer terminals) {
    std::stringstream list(settings.distances);
    std::vector<double> distances;
    for (std::string each; std::getline(list, each, ',');) distances.push_back(std::stod(each));
    for (size_t step = 0; step * settings.hold < settings.seconds; ++step) {
        const double next = distances[step % distances.size()];
        Simulator::Schedule(Seconds(step * settings.hold), [=] {
            for (uint32_t user = 0; user < settings.users; ++user)
                terminals.Get(user)->GetObject<MobilityModel>()->SetPosition(Vector(next, 0, 0));
        });
        // Blocks of the time after the move are those of the new distance.
        Simulator::Schedule(Seconds(step * settings.hold) + MilliSeconds(20), [=] { distance = next; });
        Simulator::Schedule(Seconds((step + 1) * settings.hold) - MilliSeconds(1), [=] { distance = 0; });
    }
}

void Run() {
    auto lte = CreateObject<LteHelper>();
    auto core = CreateObject<PointToPointEpcHelper>();
    lte->SetEpcHelper(core);
    lte->SetSchedulerType("ns3::PfFfMacScheduler");
    lte->SetEnbDeviceAttribute("DlBandwidth", UintegerValue(settings.blocks));
    lte->SetEnbDeviceAttribute("UlBandwidth", UintegerValue(settings.blocks));

    Ptr<Node> server = CreateObject<Node>(), base = CreateObject<Node>();
    NodeContainer terminals;
    terminals.Create(settings.users);
    InternetStackHelper internet;
    internet.Install(NodeContainer(NodeContainer(server), terminals));
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue("1Gb/s"));
    wire.SetDeviceAttribute("Mtu", UintegerValue(1500));
    wire.SetChannelAttribute("Delay", TimeValue(MilliSeconds(settings.delay)));
    const auto wired = wire.Install(core->GetPgwNode(), server);
    Ipv4AddressHelper addresses("1.0.0.0", "255.0.0.0");
    addresses.Assign(wired);
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(server->GetObject<Ipv4>())->AddNetworkRouteTo("7.0.0.0", "255.0.0.0", 1);

    MobilityHelper mobility;
    mobility.Install(NodeContainer(NodeContainer(base), terminals));
    const auto station = lte->InstallEnbDevice(base);
    const auto devices = lte->InstallUeDevice(terminals);
    const auto leases = core->AssignUeIpv4Address(devices);
    ApplicationContainer sinks;
    for (uint32_t user = 0; user < settings.users; ++user) {
        routing.GetStaticRouting(terminals.Get(user)->GetObject<Ipv4>())->SetDefaultRoute(core->GetUeDefaultGatewayAddress(), 1);
        lte->Attach(devices.Get(user), station.Get(0));
        const InetSocketAddress to(leases.GetAddress(user), 5000);
        sinks.Add(PacketSinkHelper("ns3::TcpSocketFactory", to).Install(terminals.Get(user)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", to);
        bulk.SetAttribute("MaxBytes", UintegerValue(0));
        bulk.Install(server).Start(Seconds(1));
    }
    Move(terminals);
    const auto received = [&](uint32_t user) { return DynamicCast<PacketSink>(sinks.Get(user))->GetTotalRx(); };
    Simulator::Schedule(Seconds(0.5), &Listen);
    Simulator::Schedule(Seconds(settings.from), [&] {
        for (uint32_t user = 0; user < settings.users; ++user) told.before.push_back(received(user));
    });
    DynamicCast<LteEnbNetDevice>(station.Get(0))->GetMac()->TraceConnectWithoutContext("DlScheduling", MakeCallback(&OnScheduled));
    Simulator::Stop(Seconds(settings.seconds));
    Simulator::Run();

    uint64_t bytes = 0;
    for (uint32_t user = 0; user < settings.users; ++user) bytes += received(user) - told.before[user];
    std::printf("{\"goodput_bps\": %.0f, \"delay_p50_ms\": %.3f, \"delay_p95_ms\": %.3f, \"drops\": %lu, \"blocks\": {",
                8 * bytes / (settings.seconds - settings.from), Quantile(told.delaysMs, 0.5), Quantile(told.delaysMs, 0.95),
                told.drops);
    told.largest.erase(0);
    const char* comma = "";
    for (const auto& [at, block] : told.largest) std::printf("%s\"%g\": %u", std::exchange(comma, ", "), at, block);
    std::puts("}}");
    Simulator::Destroy();
}

}  // namespace

int main(int count, char** words) {
    CommandLine line;
    line.AddValue("seconds", "s", settings.seconds);
    line.AddValue("from", "the first second that counts", settings.from);
    line.AddValue("blocks", "resource blocks", settings.blocks);
    line.AddValue("buffer", "RLC of each user, bytes", settings.buffer);
    line.AddValue("users", "terminals with a download each", settings.users);
    line.AddValue("sender", "cubic, sack or bbr", settings.sender);
    line.AddValue("delay", "one way between server and core, ms", settings.delay);
    line.AddValue("distances", "of the terminals in turn, m", settings.distances);
    line.AddValue("hold", "at each distance, s", settings.hold);
    line.Parse(count, words);
    Configure();
    Run();
    return 0;
}
