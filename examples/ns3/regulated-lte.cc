/* Downloads over ns-3's LTE with a regulator of ackclock above the RLC.
 *
 * A node without IP stands between server and PGW and passes every frame. It shows data to the regulator on their way to
 * the eNB and hands it the ACKs. The queue is that of the eNB's RLC AM: packets enter it at PDCP (trace TxPDU), are refused
 * there (TxDrop), and depart when the RLC has sent their last byte for the first time.
 *
 * To use it in another topology, keep the classes up to `Edge` and `Connect`, and install `Edge` between two devices.
 */
#include "ackclock.h"
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

using namespace ns3;

static const double WINDOW_S = 0.1; // over which the rate of a bearer is measured
static const uint64_t PDCP = 2;     // bytes of its header

/* Stops at a refusal of the library. */
static int32_t Checked(int32_t answer) {
    NS_ABORT_MSG_IF(answer < 0 && answer != ACKCLOCK_E_UNKNOWN_FLOW, ackclock_error_text(answer));
    return answer;
}

static uint64_t Nanoseconds() { return uint64_t(Simulator::Now().GetNanoSeconds()); }

/* The queue of one mobile: what has passed the edge and has not left the RLC, in order. */
struct Bearer {
    uint64_t capacity = 0;  // bytes of the RLC buffer
    std::deque<ackclock_segment> queued;
    size_t arrived = 0;     // of `queued`, packets that the RLC has seen
    uint64_t bytes = 0;     // of `queued`, with IP headers
    uint64_t sent = 0;      // bytes of the first packet that the RLC has sent
    std::deque<std::pair<double, uint64_t>> recent; // instants and bytes of departures in WINDOW_S
    double rate = 0;        // bit/s, last measured with data waiting
    std::vector<double> delays; // ms from PDCP to PDCP
    uint64_t drops = 0;
    ackclock_view view{};

    static uint64_t Size(const ackclock_segment& s) { return uint64_t(s.header) + s.payload; }

    const ackclock_view* View() {
        view.size = sizeof view;
        view.capacity_unit = ACKCLOCK_BYTES;
        view.capacity = capacity;
        view.rate = uint64_t(rate);
        view.waiting.packets = queued.size();
        view.waiting.bytes = bytes;
        view.occupied = view.waiting;
        return &view;
    }
    /* Takes a packet out of the queue. */
    ackclock_segment Remove(size_t at) {
        ackclock_segment s = queued[at];
        queued.erase(queued.begin() + at);
        bytes -= Size(s);
        return s;
    }
    /* Counts bytes that have departed into the rate. */
    void Measure(uint64_t departed) {
        double now = Simulator::Now().GetSeconds();
        recent.emplace_back(now, departed);
        while (recent.front().first < now - WINDOW_S) recent.pop_front();
        uint64_t sum = 0;
        for (auto& one : recent) sum += one.second;
        if (!queued.empty()) rate = 8 * sum / WINDOW_S;
    }
};

/* A connection: its number, and the window scale of each end. */
struct Connection {
    uint32_t flow;
    size_t user;
    uint8_t scale[2]; // of the server and of the mobile
    Ipv4Header ip;    // of the last ACK, for ACKs that the regulator makes
    TcpHeader tcp;
};

/* The node that passes frames between server and radio, and calls the regulator. */
class Edge {
  public:
    Edge(const std::string& name, std::string keys, Ptr<NetDevice> wire, Ptr<NetDevice> radio)
        : m_wire(wire), m_radio(radio) {
        char error[512] = "";
        std::replace(keys.begin(), keys.end(), ';', '\n');
        std::string table = "kind = \"" + name + "\"\n" + keys; // as in a scenario
        if (name != "none") m_regulator = ackclock_regulator_new(table.c_str(), error, sizeof error);
        NS_ABORT_MSG_IF(name != "none" && !m_regulator, error);
        wire->SetReceiveCallback(MakeCallback(&Edge::FromServer, this));
        radio->SetReceiveCallback(MakeCallback(&Edge::FromMobile, this));
    }
    ~Edge() { if (m_regulator) ackclock_regulator_free(m_regulator); }

    std::map<Ipv4Address, size_t> users; // index of the bearer by address of the mobile
    std::vector<Bearer> bearers;
    /* PDCP of the eNB hands a packet to the RLC. */
    void Arrives(size_t user) {
        if (bearers[user].arrived < bearers[user].queued.size()) bearers[user].arrived++;
    }
    /* The RLC refuses the packet that has just arrived. */
    void Dropped(size_t user) {
        Bearer& b = bearers[user];
        b.drops++;
        if (b.arrived == 0) return;
        ackclock_segment s = b.Remove(--b.arrived);
        if (m_regulator) Checked(ackclock_on_dropped(m_regulator, Nanoseconds(), &s, ACKCLOCK_CAUSE_FULL, b.View()));
        Execute();
    }
    /* The RLC sends bytes of PDCP for the first time. */
    void Sent(size_t user, uint64_t bytes) {
        Bearer& b = bearers[user];
        b.sent += bytes;
        while (b.arrived > 0 && b.sent >= Bearer::Size(b.queued[0]) + PDCP) {
            ackclock_segment s = b.Remove(0);
            b.arrived--;
            b.sent -= Bearer::Size(s) + PDCP;
            b.Measure(Bearer::Size(s));
            if (!m_regulator) continue;
            Checked(ackclock_on_departed(m_regulator, Nanoseconds(), &s, b.View()));
            if (b.queued.empty()) Checked(ackclock_on_idle(m_regulator, Nanoseconds(), s.flow, b.View()));
            Execute();
        }
    }
  private:
    typedef std::tuple<uint32_t, uint16_t, uint16_t> Key; // address and port of the mobile, port of the server

    bool FromServer(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t protocol, const Address&) {
        Ipv4Header ip;
        TcpHeader tcp;
        if (!Parse(packet, ip, tcp) || !users.count(ip.GetDestination())) return Pass(m_radio, packet, protocol);
        Connection& c = Of(ip.GetDestination(), tcp.GetDestinationPort(), tcp.GetSourcePort());
        ackclock_segment s = Segment(c, ip, tcp, 0);
        Bearer& b = bearers[c.user];
        int32_t verdict = m_regulator ? Checked(ackclock_on_data(m_regulator, Nanoseconds(), &s, b.View())) : 0;
        if (verdict == ACKCLOCK_FORWARD_KEEP) Checked(ackclock_on_copy_refused(m_regulator, &s));
        Execute();
        if (verdict == ACKCLOCK_DROP) return true;
        b.queued.push_back(s);
        b.bytes += Bearer::Size(s);
        if (m_regulator) Checked(ackclock_on_queued(m_regulator, Nanoseconds(), &s, b.View()));
        Execute();
        return Pass(m_radio, packet, protocol);
    }

    bool FromMobile(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t protocol, const Address&) {
        Ipv4Header ip;
        TcpHeader tcp;
        if (!m_regulator || !Parse(packet, ip, tcp) || !users.count(ip.GetSource())) return Pass(m_wire, packet, protocol);
        Connection& c = Of(ip.GetSource(), tcp.GetSourcePort(), tcp.GetDestinationPort());
        c.ip = ip;
        c.tcp = tcp;
        ackclock_segment s = Segment(c, ip, tcp, 1);
        m_held[s.packet] = packet;
        Checked(ackclock_on_ack(m_regulator, Nanoseconds(), &s, bearers[c.user].View()));
        Execute();
        return true;
    }
    /* Executes what the regulator requests, and schedules its next deadline. */
    void Execute() {
        if (!m_regulator) return;
        ackclock_output output{};
        output.size = sizeof output;
        while (Checked(ackclock_poll_output(m_regulator, Nanoseconds(), &output))) {
            const ackclock_segment& s = output.segment;
            if (output.action == ACKCLOCK_TO_SENDER) Acknowledge(s);
            NS_ABORT_MSG_IF(output.action == ACKCLOCK_TO_RECEIVER_BACK || output.action == ACKCLOCK_TO_RECEIVER_FRONT,
                            "this host keeps no copies of data");
            m_held.erase(s.packet);
        }
        uint64_t deadline = 0;
        uint32_t flow = 0;
        m_timer.Cancel();
        if (!Checked(ackclock_poll_timeout(m_regulator, &deadline, &flow))) return;
        uint64_t wait = deadline > Nanoseconds() ? deadline - Nanoseconds() : 0;
        m_timer = Simulator::Schedule(NanoSeconds(wait), &Edge::Expired, this, flow);
    }

    void Expired(uint32_t flow) {
        Checked(ackclock_on_timeout(m_regulator, Nanoseconds(), flow, bearers[m_by_flow[flow]->user].View()));
        Execute();
    }
    /* Sends an ACK to the server: the held packet with the fields of the regulator, or a new one. */
    void Acknowledge(const ackclock_segment& s) {
        Ipv4Header ip;
        TcpHeader tcp;
        Ptr<Packet> rest = Create<Packet>();
        auto held = m_held.find(s.packet);
        if (held != m_held.end()) {
            rest = held->second->Copy();
            rest->RemoveHeader(ip);
            rest->RemoveHeader(tcp);
        } else {
            ip = m_by_flow[s.flow]->ip;
            tcp = m_by_flow[s.flow]->tcp;
        }
        tcp.SetWindowSize(s.window);
        tcp.SetAckNumber(SequenceNumber32(s.acknowledgement));
        tcp.SetFlags(s.flags);
        rest->AddHeader(tcp);
        ip.SetPayloadSize(uint16_t(rest->GetSize()));
        rest->AddHeader(ip);
        Pass(m_wire, rest, Ipv4L3Protocol::PROT_NUMBER);
    }

    static bool Pass(Ptr<NetDevice> to, Ptr<const Packet> packet, uint16_t protocol) {
        return to->Send(packet->Copy(), to->GetBroadcast(), protocol);
    }
    static bool Parse(Ptr<const Packet> packet, Ipv4Header& ip, TcpHeader& tcp) {
        Ptr<Packet> copy = packet->Copy();
        if (!copy->RemoveHeader(ip) || ip.GetProtocol() != TcpL4Protocol::PROT_NUMBER) return false;
        return copy->RemoveHeader(tcp) > 0;
    }

    Connection& Of(Ipv4Address mobile, uint16_t port, uint16_t server) {
        auto [place, is_new] = m_connections.try_emplace(Key(mobile.Get(), port, server));
        Connection& c = place->second;
        if (!is_new) return c;
        c.flow = uint32_t(m_connections.size());
        c.user = users[mobile];
        c.scale[0] = c.scale[1] = ACKCLOCK_NO_SCALE;
        m_by_flow[c.flow] = &c;
        if (m_regulator) Checked(ackclock_open_flow(m_regulator, c.flow, uint32_t(c.user)));
        return c;
    }
    /* Header fields of a packet from the server (0) or from the mobile (1). */
    ackclock_segment Segment(Connection& c, const Ipv4Header& ip, const TcpHeader& tcp, int from) {
        ackclock_segment s{};
        s.size = sizeof s;
        s.flow = c.flow;
        s.packet = m_next++;
        s.sequence = tcp.GetSequenceNumber().GetValue();
        s.acknowledgement = tcp.GetAckNumber().GetValue();
        s.header = uint16_t(ip.GetSerializedSize() + tcp.GetSerializedSize());
        s.payload = uint16_t(ip.GetPayloadSize() - tcp.GetSerializedSize());
        s.window = tcp.GetWindowSize();
        s.flags = tcp.GetFlags();
        s.ecn = uint8_t(ip.GetEcn());
        if (auto scale = DynamicCast<const TcpOptionWinScale>(tcp.GetOption(TcpOption::WINSCALE)))
            c.scale[from] = scale->GetScale();
        s.window_scale = c.scale[from];
        if (auto times = DynamicCast<const TcpOptionTS>(tcp.GetOption(TcpOption::TS))) {
            s.has_timestamps = 1;
            s.timestamp_value = times->GetTimestamp();
            s.timestamp_echo = times->GetEcho();
        }
        s.sack_permitted = (s.flags & TcpHeader::SYN) && tcp.HasOption(TcpOption::SACKPERMITTED);
        auto sack = DynamicCast<const TcpOptionSack>(tcp.GetOption(TcpOption::SACK));
        if (sack && !(s.flags & TcpHeader::SYN))
            for (auto& block : sack->GetSackList()) {
                if (s.sack_blocks == 3) break;
                s.sack[s.sack_blocks][0] = block.first.GetValue();
                s.sack[s.sack_blocks++][1] = block.second.GetValue();
            }
        return s;
    }

    Ptr<NetDevice> m_wire, m_radio;
    ackclock_regulator* m_regulator = nullptr;
    std::map<Key, Connection> m_connections;
    std::map<uint32_t, Connection*> m_by_flow;
    std::map<uint64_t, Ptr<const Packet>> m_held; // ACKs in the hands of the regulator
    uint64_t m_next = 1;
    EventId m_timer;
};

/* Shows the edge what happens in a mobile's bearer; stands between RLC and MAC to see what the RLC sends for the first time. */
class Tap : public LteMacSapProvider {
  public:
    Tap(Edge* edge, size_t user, LteMacSapProvider* mac) : m_edge(edge), m_user(user), m_mac(mac) {}

    void TransmitPdu(TransmitPduParameters parameters) override {
        LteRlcAmHeader header;
        Ptr<Packet> pdu = parameters.pdu->Copy();
        pdu->RemoveHeader(header);
        bool is_first = header.IsDataPdu() && header.GetSequenceNumber() == m_next;
        m_mac->TransmitPdu(parameters);
        if (!is_first) return;
        m_next++;
        m_edge->Sent(m_user, pdu->GetSize());
    }
    void ReportBufferStatus(ReportBufferStatusParameters parameters) override { m_mac->ReportBufferStatus(parameters); }
    void Arrives(uint16_t, uint8_t, uint32_t) { m_edge->Arrives(m_user); }
    void Dropped(Ptr<const Packet>) { m_edge->Dropped(m_user); }
    void Delivered(uint16_t, uint8_t, uint32_t, uint64_t ns) { m_edge->bearers[m_user].delays.push_back(ns / 1e6); }

  private:
    Edge* m_edge;
    size_t m_user;
    LteMacSapProvider* m_mac;
    SequenceNumber10 m_next{0};
};

/* Connects a mobile's data bearers, before their first packet; the eNB lists its mobiles by their RNTI. */
static void Connect(Edge* edge, size_t user, Ptr<NetDevice> enb, Ptr<NetDevice> mobile) {
    std::string rnti = std::to_string(DynamicCast<LteUeNetDevice>(mobile)->GetRrc()->GetRnti());
    std::string above = "/NodeList/" + std::to_string(enb->GetNode()->GetId()) + "/DeviceList/*/LteEnbRrc/UeMap/" + rnti +
                        "/DataRadioBearerMap/*";
    std::string below = "/NodeList/" + std::to_string(mobile->GetNode()->GetId()) +
                        "/DeviceList/*/$ns3::LteUeNetDevice/LteUeRrc/DataRadioBearerMap/*";
    Tap* tap = new Tap(edge, user, DynamicCast<LteEnbNetDevice>(enb)->GetComponentCarrierManager()->GetLteMacSapProvider());
    Config::ConnectWithoutContext(above + "/LtePdcp/TxPDU", MakeCallback(&Tap::Arrives, tap));
    Config::ConnectWithoutContext(above + "/LteRlc/TxDrop", MakeCallback(&Tap::Dropped, tap));
    Config::ConnectWithoutContext(below + "/LtePdcp/RxPDU", MakeCallback(&Tap::Delivered, tap));
    Config::MatchContainer bearers = Config::LookupMatches(above);
    for (auto one = bearers.Begin(); one != bearers.End(); ++one)
        DynamicCast<LteDataRadioBearerInfo>(*one)->m_rlc->SetLteMacSapProvider(tap);
}

static double Quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[std::min(values.size() - 1, size_t(q * values.size()))];
}

int main(int argc, char** argv) {
    std::string regulator = "none", keys, sender = "ns3::TcpCubic";
    uint32_t ues = 1, buffer = 300000;
    double seconds = 60, metres = 100, delay = 20;
    CommandLine line;
    line.AddValue("regulator", "Name of a regulator, as in a scenario", regulator);
    line.AddValue("keys", "Further keys of the regulator without spaces, such as alpha=3;safety='2s'", keys);
    line.AddValue("sender", "TypeId of the congestion control", sender);
    line.AddValue("ues", "Number of mobiles, one download each", ues);
    line.AddValue("buffer", "RLC buffer of a mobile, bytes", buffer);
    line.AddValue("seconds", "Simulated time", seconds);
    line.AddValue("metres", "Distance of the mobiles from the eNB", metres);
    line.AddValue("delay", "One-way delay of the wired path, ms", delay);
    line.Parse(argc, argv);
    NS_ABORT_MSG_IF(ackclock_version() != ACKCLOCK_VERSION, "ackclock.h and the library have different versions");
    Config::SetDefault("ns3::LteEnbRrc::EpsBearerToRlcMapping", EnumValue(LteEnbRrc::RLC_AM_ALWAYS));
    Config::SetDefault("ns3::LteRlcAm::MaxTxBufferSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId())); // PRR can crash
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(sender)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1400));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));

    Ptr<LteHelper> lte = CreateObject<LteHelper>();
    Ptr<PointToPointEpcHelper> epc = CreateObject<PointToPointEpcHelper>();
    lte->SetEpcHelper(epc);
    NodeContainer server(1), between(1), enb(1), mobiles(ues);
    InternetStackHelper internet;
    internet.Install(server);
    internet.Install(mobiles);

    PointToPointHelper p2p;
    p2p.SetDeviceAttribute("DataRate", StringValue("1Gb/s"));
    p2p.SetChannelAttribute("Delay", TimeValue(Seconds(delay / 1e3)));
    NetDeviceContainer wire = p2p.Install(server.Get(0), between.Get(0));
    p2p.SetChannelAttribute("Delay", TimeValue(MilliSeconds(0)));
    NetDeviceContainer core = p2p.Install(between.Get(0), epc->GetPgwNode());
    Ipv4AddressHelper addresses("1.0.0.0", "255.0.0.0");
    Ipv4InterfaceContainer ends = addresses.Assign(NetDeviceContainer(wire.Get(0), core.Get(1)));
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(server.Get(0)->GetObject<Ipv4>())
        ->AddNetworkRouteTo(Ipv4Address("7.0.0.0"), Ipv4Mask("255.0.0.0"), ends.GetAddress(1), 1);

    MobilityHelper places;
    places.Install(enb);
    places.Install(mobiles);
    for (uint32_t i = 0; i < ues; i++)
        mobiles.Get(i)->GetObject<MobilityModel>()->SetPosition(Vector(metres, i, 0));
    NetDeviceContainer cell = lte->InstallEnbDevice(enb), radios = lte->InstallUeDevice(mobiles);
    Ipv4InterfaceContainer mobile_ends = epc->AssignUeIpv4Address(radios);

    Edge edge(regulator, keys, wire.Get(1), core.Get(0));
    edge.bearers.resize(ues);
    ApplicationContainer sinks;
    for (uint32_t i = 0; i < ues; i++) {
        edge.bearers[i].capacity = buffer;
        edge.users[mobile_ends.GetAddress(i)] = i;
        routing.GetStaticRouting(mobiles.Get(i)->GetObject<Ipv4>())->SetDefaultRoute(epc->GetUeDefaultGatewayAddress(), 1);
        lte->Attach(radios.Get(i), cell.Get(0));
        Simulator::Schedule(Seconds(0.5), &Connect, &edge, size_t(i), cell.Get(0), radios.Get(i));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        sinks.Add(sink.Install(mobiles.Get(i)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(mobile_ends.GetAddress(i), 5000));
        bulk.SetAttribute("MaxBytes", UintegerValue(0));
        bulk.Install(server.Get(0)).Start(Seconds(1));
    }
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    for (uint32_t i = 0; i < ues; i++) {
        double kbps = DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx() * 8 / 1e3 / (seconds - 1);
        const Bearer& b = edge.bearers[i];
        printf("mobile %u: goodput %.0f kbit/s, delay ms p5 %.1f p50 %.1f p95 %.1f, drops %lu\n", i, kbps,
               Quantile(b.delays, 0.05), Quantile(b.delays, 0.5), Quantile(b.delays, 0.95), (unsigned long)b.drops);
    }
    Simulator::Destroy();
    return 0;
}
