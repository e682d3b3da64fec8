// Simulates bulk TCP flows over a dumbbell network in ns-3: goodput, losses, timeouts, retransmissions and mean queue.
//
//   tcp VARIANT RATE_MBPS RTT_MS QUEUE_PACKETS FLOWS SEED SECONDS DELAYED_ACKS
//
// VARIANT is `newreno`, `sack` or `sack-prr`. RTT_MS is the round-trip propagation time. QUEUE_PACKETS is the number of
// packets that can wait while one packet is sent. DELAYED_ACKS is `on` or `off`. Prints one row, whose columns are
// described in `README.md`.

#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr uint32_t SEGMENT_BYTES = 1460;
// Size of a full packet on the link, in bytes, with 20 bytes of TCP header and 20 bytes of IPv4 header. ns-3 also adds
// 2 bytes of PPP; ns-2 does not.
constexpr double PACKET_BYTES = SEGMENT_BYTES + 40;
constexpr double PPP_BYTES = 2;
// Size of the buffers of both sockets of a flow: 11 000 segments, which is far above every window in the test settings.
constexpr uint32_t BUFFER_BYTES = 1 << 24;
// Size of all queues except the queue of the bottleneck.
constexpr uint32_t UNLIMITED_PACKETS = 1000000;
// Rate and delay of the access links, on both sides of the bottleneck.
constexpr double ACCESS_MBPS = 1000;
constexpr double ACCESS_MS = 1;
// Start of the second measurement (the columns `steady_...`), in s.
constexpr double WARM_UP_S = 10;
// Flow i (counted from 0) begins at a random time between i * START_STEP_S and (i + 1) * START_STEP_S. In s.
constexpr double START_STEP_S = 0.1;
constexpr int64_t START_STREAM = 1;
constexpr uint16_t PORT = 9;

// Counters since the beginning of the simulation.
struct Counters {
    uint64_t arrived = 0;
    uint64_t dropped = 0;
    // The sum of the waiting times of all packets in the bottleneck's queue, in s.
    double waiting = 0.0;
    uint64_t timeouts = 0;
    uint64_t fast_retransmits = 0;
    uint64_t retransmitted = 0;
    // For each flow, the number of bytes that were delivered to the application in order.
    std::vector<uint64_t> bytes;
};

Counters g_counters;

// ns-3's NewReno with counters. The socket calls CongestionStateSet at each timeout and at each start of a recovery.
class CountingNewReno : public TcpNewReno {
  public:
    static TypeId GetTypeId() {
        static TypeId id =
            TypeId("CountingNewReno").SetParent<TcpNewReno>().AddConstructor<CountingNewReno>();
        return id;
    }
    TypeId GetInstanceTypeId() const override { return GetTypeId(); }
    Ptr<TcpCongestionOps> Fork() override { return CopyObject<CountingNewReno>(this); }

    void CongestionStateSet(Ptr<TcpSocketState> state, const TcpSocketState::TcpCongState_t next) override {
        g_counters.timeouts += next == TcpSocketState::CA_LOSS;
        g_counters.fast_retransmits += next == TcpSocketState::CA_RECOVERY;
        TcpNewReno::CongestionStateSet(state, next);
    }
};

// Computes the integral of the bottleneck's queue length over time, which is the sum of the packets' waiting times.
class Waiting {
  public:
    void Change(uint32_t, uint32_t packets) {
        Advance();
        m_packets = packets;
    }
    void Advance() {
        const double now_s = Simulator::Now().GetSeconds();
        g_counters.waiting += m_packets * (now_s - m_since_s);
        m_since_s = now_s;
    }

  private:
    uint32_t m_packets = 0;
    double m_since_s = 0.0;
};

Waiting g_waiting;

void OnEnqueue(Ptr<const Packet>) { g_counters.arrived += 1; }

void OnDrop(Ptr<const Packet>) {
    g_counters.arrived += 1;
    g_counters.dropped += 1;
}

// One bulk flow: a sender that always has data to send, and a receiver that reads data immediately.
class Flow {
  public:
    Flow(Ptr<Node> from, Ptr<Node> to, Ipv4Address address, std::size_t number, double start_s)
        : m_listener(Socket::CreateSocket(to, TcpSocketFactory::GetTypeId())),
          m_sender(Socket::CreateSocket(from, TcpSocketFactory::GetTypeId())), m_number(number), m_address(address) {
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Flow::Accept, this));
        m_sender->Bind();
        m_sender->ShutdownRecv();
        m_sender->SetConnectCallback(MakeCallback(&Flow::Connected, this), MakeNullCallback<void, Ptr<Socket>>());
        m_sender->SetSendCallback(MakeCallback(&Flow::Fill, this));
        m_sender->TraceConnectWithoutContext("Tx", MakeCallback(&Flow::OnTransmit, this));
        Simulator::Schedule(Seconds(start_s), &Flow::Start, this);
    }

  private:
    void Start() { m_sender->Connect(InetSocketAddress(m_address, PORT)); }
    void Connected(Ptr<Socket> socket) { Fill(socket, socket->GetTxAvailable()); }
    void Fill(Ptr<Socket> socket, uint32_t) {
        while (socket->GetTxAvailable() >= SEGMENT_BYTES && socket->Send(Create<Packet>(SEGMENT_BYTES)) > 0) {
        }
    }
    void Accept(Ptr<Socket> socket, const Address&) { socket->SetRecvCallback(MakeCallback(&Flow::Read, this)); }
    void Read(Ptr<Socket> socket) {
        while (auto packet = socket->Recv()) {
            g_counters.bytes[m_number] += packet->GetSize();
        }
    }
    void OnTransmit(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>) {
        if (packet->GetSize() == 0) {
            return;
        }
        g_counters.retransmitted += header.GetSequenceNumber() < m_next;
        m_next = std::max(m_next, header.GetSequenceNumber() + packet->GetSize());
    }

    Ptr<Socket> m_listener;
    Ptr<Socket> m_sender;
    std::size_t m_number;
    Ipv4Address m_address;
    SequenceNumber32 m_next{0};
};

// A link between two nodes: the device that sends in the forward direction, and the address of the second node.
struct Link {
    Ptr<NetDevice> forward;
    Ipv4Address far_end;
};

Link Join(Ptr<Node> a, Ptr<Node> b, double mbps, double ms) {
    static Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    PointToPointHelper link;
    // The rate is higher by the share of the PPP bytes, so that sending a full packet takes as long as sending 1500
    // bytes at `mbps`.
    const double bps = mbps * 1e6 * (PACKET_BYTES + PPP_BYTES) / PACKET_BYTES;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(std::llround(bps))));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(std::llround(ms * 1e6))));
    link.SetQueue("ns3::DropTailQueue", "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, UNLIMITED_PACKETS)));
    // Without flow control, ns-3 adds no queueing discipline, so that packets wait only in the queue of the device.
    link.DisableFlowControl();
    const auto devices = link.Install(a, b);
    const auto ends = addresses.Assign(devices);
    addresses.NewNetwork();
    return {devices.Get(0), ends.GetAddress(1)};
}

// Sets the length of a device's queue, and counts its packets. `packets` packets can wait while one packet is sent.
void Observe(Ptr<NetDevice> device, uint32_t packets) {
    const auto queue = DynamicCast<PointToPointNetDevice>(device)->GetQueue();
    queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, packets));
    queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&OnEnqueue));
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&OnDrop));
    queue->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Waiting::Change, &g_waiting));
}

// Sets the properties of TCP to the values that are also used in ns-2.
void Configure(const std::string& variant, bool delayed_acks) {
    const bool prr = variant == "sack-prr";
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(CountingNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(prr ? TcpPrrRecovery::GetTypeId() : TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(variant != "newreno"));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", EnumValue(TcpSocketState::Off));
    // Timeouts follow RFC 6298: the first timeout is 1 s, no timeout is shorter than 1 s, and the clock has a
    // resolution of 1 ms.
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
    Config::SetDefault("ns3::RttEstimator::InitialEstimation", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT_BYTES));
    // Initial window of 10 segments (RFC 6928).
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(BUFFER_BYTES));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(BUFFER_BYTES));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(delayed_acks ? 2 : 1));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(200)));
}

// Returns the current counters.
Counters Read() {
    g_waiting.Advance();
    return g_counters;
}

// Returns the columns that are measured between two times, from the counters at these times.
std::string Columns(const Counters& before, const Counters& after, double span_s) {
    double sum = 0.0, squares = 0.0;
    for (std::size_t i = 0; i < after.bytes.size(); ++i) {
        const double mbps = 8e-6 * static_cast<double>(after.bytes[i] - before.bytes[i]) / span_s;
        sum += mbps;
        squares += mbps * mbps;
    }
    const auto arrived = static_cast<double>(after.arrived - before.arrived);
    const double loss = arrived > 0.0 ? static_cast<double>(after.dropped - before.dropped) / arrived : 0.0;
    const double jain = squares > 0.0 ? sum * sum / (static_cast<double>(after.bytes.size()) * squares) : 0.0;
    char text[200];
    std::snprintf(text, sizeof(text), "%.6f,%.6e,%lu,%lu,%lu,%.4f,%.6f", sum, loss,
                  static_cast<unsigned long>(after.timeouts - before.timeouts),
                  static_cast<unsigned long>(after.fast_retransmits - before.fast_retransmits),
                  static_cast<unsigned long>(after.retransmitted - before.retransmitted),
                  (after.waiting - before.waiting) / span_s, jain);
    return text;
}

// Prints what is wrong with an argument, and ends the program.
[[noreturn]] void Refuse(const char* name, const char* text, const char* want) {
    std::fprintf(stderr, "%s is `%s`; it has to be %s\n", name, text, want);
    std::exit(2);
}

double Positive(const char* text, const char* name) {
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0.0) || std::isinf(value)) {
        Refuse(name, text, "a positive number");
    }
    return value;
}

uint32_t Whole(const char* text, const char* name) {
    const double value = Positive(text, name);
    if (value != std::floor(value) || value > UNLIMITED_PACKETS) {
        Refuse(name, text, "a whole number of at most a million");
    }
    return static_cast<uint32_t>(value);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 9) {
        std::fprintf(stderr,
                     "usage: %s VARIANT RATE_MBPS RTT_MS QUEUE_PACKETS FLOWS SEED SECONDS DELAYED_ACKS\n", argv[0]);
        return 2;
    }
    const std::string variant = argv[1], delayed_acks = argv[8];
    if (variant != "newreno" && variant != "sack" && variant != "sack-prr") {
        Refuse("VARIANT", argv[1], "newreno, sack or sack-prr");
    }
    if (delayed_acks != "on" && delayed_acks != "off") {
        Refuse("DELAYED_ACKS", argv[8], "on or off");
    }
    const double rate_mbps = Positive(argv[2], "RATE_MBPS");
    const double bottleneck_ms = Positive(argv[3], "RTT_MS") / 2 - 2 * ACCESS_MS;
    if (bottleneck_ms < 0.0) {
        Refuse("RTT_MS", argv[3], "at least 4");
    }
    const uint32_t queue_packets = Whole(argv[4], "QUEUE_PACKETS");
    const uint32_t flow_count = Whole(argv[5], "FLOWS");
    RngSeedManager::SetRun(Whole(argv[6], "SEED"));
    const double seconds = Positive(argv[7], "SECONDS");
    if (seconds <= WARM_UP_S) {
        Refuse("SECONDS", argv[7], "more than 10");
    }
    Configure(variant, delayed_acks == "on");

    NodeContainer nodes(2 + 2 * flow_count);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(Ipv4GlobalRoutingHelper());
    stack.Install(nodes);
    const auto e0 = nodes.Get(0), e1 = nodes.Get(1);
    Observe(Join(e0, e1, rate_mbps, bottleneck_ms).forward, queue_packets);

    auto start = CreateObject<UniformRandomVariable>();
    start->SetStream(START_STREAM);
    g_counters.bytes.resize(flow_count);
    std::vector<Flow> flows;
    flows.reserve(flow_count);
    for (uint32_t i = 0; i < flow_count; ++i) {
        const auto from = nodes.Get(2 + 2 * i), to = nodes.Get(3 + 2 * i);
        Join(from, e0, ACCESS_MBPS, ACCESS_MS);
        const auto address = Join(e1, to, ACCESS_MBPS, ACCESS_MS).far_end;
        flows.emplace_back(from, to, address, i, (i + start->GetValue(0.0, 1.0)) * START_STEP_S);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Counters zero, warm;
    zero.bytes.resize(flow_count);
    Simulator::Schedule(Seconds(WARM_UP_S), [&warm] { warm = Read(); });
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    const auto end = Read();
    std::printf("ns-3,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], argv[7],
                Columns(zero, end, seconds).c_str(), argv[8], Columns(warm, end, seconds - WARM_UP_S).c_str());
    Simulator::Destroy();
}
