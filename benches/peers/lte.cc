// A radio that is not ackclock's: one base station and one mobile of ns-3's LTE (RLC AM) in wall-clock time. Packets of
// two TUN devices are its ends.
//
//   lte --seconds=60 --blocks=25 --buffer=300000 --delay=5 --distances=100,600 --hold=2
//
// Makes the devices `ns3net` (the server, 1.0.0.2) and `ns3ue` (the mobile, 7.0.0.2), prints `ready`, and when it ends a
// line of JSON: delay of the bearer, from PDCP to PDCP, ms, of the packets after `--from` seconds, and the least of all
// packets. `window_` is the mean over windows of 10 s that end with each second.
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sstream>
#include <string>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace ns3;

namespace {

constexpr size_t kPacketMost = 2048;
constexpr double kAfterMost = 9;  // s at the end, when downloads may be over
constexpr uint8_t kFirstDataBearer = 3;  // logical channels below carry signalling

struct Settings {
    double seconds = 60;
    double from = 0;       // s
    uint32_t blocks = 25;  // resource blocks: 6, 15, 25, 50, 75 or 100
    uint32_t buffer = 300000;  // RLC, bytes
    int delay = 5;             // one way between server and core, ms
    std::string distances = "100";  // of the mobile from the base station in turn, m
    double hold = 2;                // at each distance, s
};

struct Told {
    std::vector<double> delaysMs;
    std::vector<double> times;  // at which they came, s
    double leastMs = std::numeric_limits<double>::infinity();  // of all packets: later ones may all have waited
    uint64_t bytes = 0;
    uint64_t drops = 0;
    double lagMs = 0;  // most that simulated time was behind the clock
};

Told told;
double from;

double Quantile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, static_cast<size_t>(share * values.size()))];
}

void OnReceived(uint16_t, uint8_t channel, uint32_t bytes, uint64_t delayNs) {
    if (channel < kFirstDataBearer) return;
    told.leastMs = std::min(told.leastMs, delayNs / 1e6);
    if (Simulator::Now().GetSeconds() < from) return;
    told.delaysMs.push_back(delayNs / 1e6);
    told.times.push_back(Simulator::Now().GetSeconds());
    told.bytes += bytes;
}

// Mean of a quantile over windows of 10 s.
double WindowQuantile(double share, double until) {
    double sum = 0;
    int windows = 0;
    for (double end = from + 10; end <= until; ++end, ++windows) {
        const auto first = std::lower_bound(told.times.begin(), told.times.end(), end - 10) - told.times.begin();
        const auto last = std::lower_bound(told.times.begin(), told.times.end(), end) - told.times.begin();
        sum += Quantile({told.delaysMs.begin() + first, told.delaysMs.begin() + last}, share);
    }
    return windows ? sum / windows : 0;
}

void OnDropped(Ptr<const Packet>) { ++told.drops; }

// Bearers exist once the mobile is connected.
void Listen() {
    Config::ConnectWithoutContext(
        "/NodeList/*/DeviceList/*/$ns3::LteUeNetDevice/LteUeRrc/DataRadioBearerMap/*/LtePdcp/RxPDU", MakeCallback(&OnReceived));
    Config::ConnectWithoutContext(
        "/NodeList/*/DeviceList/*/LteEnbRrc/UeMap/*/DataRadioBearerMap/*/LteRlc/TxDrop", MakeCallback(&OnDropped));
}

class Clock {
  public:
    void Look() {
        const auto wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
        told.lagMs = std::max(told.lagMs, 1000 * (wall - Simulator::Now().GetSeconds()));
        Simulator::Schedule(MilliSeconds(10), &Clock::Look, this);
    }

  private:
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

int OpenTun(const char* name) {
    const int file = open("/dev/net/tun", O_RDWR);
    ifreq request{};
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (file < 0 || ioctl(file, TUNSETIFF, &request) != 0) {
        std::perror(name);
        std::exit(1);
    }
    return file;
}

void Enter(Ptr<NetDevice> device, std::vector<uint8_t> packet) {
    device->Send(Create<Packet>(packet.data(), packet.size()), device->GetBroadcast(), 0x0800);
}

// From a TUN device into the simulation, on a thread of its own.
void Read(int file, Ptr<NetDevice> device) {
    std::vector<uint8_t> packet(kPacketMost);
    for (ssize_t length; (length = read(file, packet.data(), packet.size())) > 0;) {
        if (packet[0] >> 4 != 4) continue;
        Simulator::ScheduleWithContext(device->GetNode()->GetId(), Seconds(0), &Enter, device,
                                       std::vector<uint8_t>(packet.begin(), packet.begin() + length));
    }
}

// From the simulation into a TUN device. A packet that finds the device down is lost, as on any interface.
bool Leave(int file, Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&) {
    uint8_t bytes[kPacketMost];
    const auto length = packet->CopyData(bytes, sizeof bytes);
    return write(file, bytes, length) == static_cast<ssize_t>(length);
}

void Join(const char* name, Ptr<NetDevice> device) {
    const int file = OpenTun(name);
    device->SetReceiveCallback(MakeBoundCallback(&Leave, file));
    std::thread(Read, file, device).detach();
}

void Configure(const Settings& settings) {
    GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::RealtimeSimulatorImpl"));
    GlobalValue::Bind("ChecksumEnabled", BooleanValue(true));
    // Defaults: 10 240 bytes, and bearers of RLC UM unless they guarantee a rate.
    Config::SetDefault("ns3::LteRlcAm::MaxTxBufferSize", UintegerValue(settings.buffer));
    Config::SetDefault("ns3::LteEnbRrc::EpsBearerToRlcMapping", EnumValue(LteEnbRrc::RLC_AM_ALWAYS));
}

void Move(Ptr<Node> mobile, const Settings& settings) {
    std::vector<double> distances;
    std::stringstream list(settings.distances);
    for (std::string each; std::getline(list, each, ',');) distances.push_back(std::stod(each));
    const auto position = mobile->GetObject<MobilityModel>();
    position->SetPosition(Vector(distances[0], 0, 0));
    for (size_t step = 1; step * settings.hold < settings.seconds; ++step) {
        const double distance = distances[step % distances.size()];
        Simulator::Schedule(Seconds(step * settings.hold), [=] { position->SetPosition(Vector(distance, 0, 0)); });
    }
}

void Run(const Settings& settings) {
    auto lte = CreateObject<LteHelper>();
    auto core = CreateObject<PointToPointEpcHelper>();
    lte->SetEpcHelper(core);
    lte->SetEnbDeviceAttribute("DlBandwidth", UintegerValue(settings.blocks));
    lte->SetEnbDeviceAttribute("UlBandwidth", UintegerValue(settings.blocks));

    Ptr<Node> server = CreateObject<Node>(), base = CreateObject<Node>(), mobile = CreateObject<Node>();
    InternetStackHelper internet;
    internet.Install(NodeContainer(server, mobile));
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue("100Mb/s"));
    wire.SetDeviceAttribute("Mtu", UintegerValue(1500));
    wire.SetChannelAttribute("Delay", TimeValue(MilliSeconds(settings.delay)));
    const auto wired = wire.Install(core->GetPgwNode(), server);
    Ipv4AddressHelper addresses("1.0.0.0", "255.0.0.0");
    addresses.Assign(wired);

    MobilityHelper mobility;
    mobility.Install(NodeContainer(base, mobile));
    const auto station = lte->InstallEnbDevice(base);
    const auto terminal = lte->InstallUeDevice(mobile);
    core->AssignUeIpv4Address(terminal);
    lte->Attach(terminal.Get(0), station.Get(0));
    Move(mobile, settings);
    Simulator::Schedule(Seconds(0.5), &Listen);

    Join("ns3net", wired.Get(1));
    Join("ns3ue", terminal.Get(0));
    std::puts("ready");
    std::fflush(stdout);
    Clock clock;
    Simulator::ScheduleNow(&Clock::Look, &clock);
    Simulator::Stop(Seconds(settings.seconds));
    Simulator::Run();
}

}  // namespace

int main(int count, char** words) {
    Settings settings;
    CommandLine line;
    line.AddValue("seconds", "s", settings.seconds);
    line.AddValue("from", "the first second that counts", settings.from);
    line.AddValue("blocks", "resource blocks", settings.blocks);
    line.AddValue("buffer", "RLC, bytes", settings.buffer);
    line.AddValue("delay", "one way between server and core, ms", settings.delay);
    line.AddValue("distances", "of the mobile in turn, m", settings.distances);
    line.AddValue("hold", "at each distance, s", settings.hold);
    line.Parse(count, words);
    from = settings.from;
    Configure(settings);
    Run(settings);
    std::printf("{\"delay_p50_ms\": %.3f, \"delay_p95_ms\": %.3f, \"delay_min_ms\": %.3f, "
                "\"window_p50_ms\": %.3f, \"window_p95_ms\": %.3f, \"bytes\": %lu, \"drops\": %lu, \"lag_ms\": %.1f}\n",
                Quantile(told.delaysMs, 0.5), Quantile(told.delaysMs, 0.95), told.leastMs,
                WindowQuantile(0.5, settings.seconds - kAfterMost), WindowQuantile(0.95, settings.seconds - kAfterMost), told.bytes, told.drops, told.lagMs);
    std::fflush(stdout);
    // The threads that read wait in the kernel.
    _exit(0);
}
