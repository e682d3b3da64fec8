// Simulates the dumbbell network of Waki 2013, Fig. 7, in ns-3: mean and variance of session 1's one-way end-to-end
// delay.
//
//   waki2013-fig7 RATE_MBPS SEED SECONDS
//
// Prints `ns-3,RATE,SEED,packets,mean_s,variance_s2`. Session 1 is CBR traffic of RATE_MBPS from S1 to D1, which shares
// the path with Poisson traffic of 9 Mbit/s from S2 to D2. The statistics are over all packets that session 1 sends in
// [0, SECONDS) and that arrive.

#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <utility>

using namespace ns3;

namespace {

// Every link transmits exactly 1000 bytes per packet, as in ns-2: the payload, 8 bytes of UDP, 20 bytes of IPv4, and 2
// bytes of PPP, which the point-to-point device adds. Links have neither preambles nor gaps between packets.
constexpr uint32_t PACKET_BYTES = 1000;
constexpr uint32_t PAYLOAD_BYTES = PACKET_BYTES - 2 - 20 - 8;
constexpr double BACKGROUND_MBPS = 9.0;
constexpr uint16_t PORT = 9;

// Numbers of the streams of the random generator. The seed is set as the generator's run number.
constexpr int64_t PHASE_STREAM = 1;
constexpr int64_t GAP_STREAM = 2;

// Returns the mean time between packets at a rate, in s.
double IntervalSeconds(double mbps) { return 8e-6 * PACKET_BYTES / mbps; }

// A tag with the time at which a packet left its application. A tag adds no bytes to the packet, so it needs no
// transmission time.
class DepartureTag : public Tag {
  public:
    DepartureTag() = default;
    explicit DepartureTag(Time time) : m_ticks(time.GetTimeStep()) {}

    static TypeId GetTypeId() {
        static TypeId id = TypeId("DepartureTag").SetParent<Tag>().AddConstructor<DepartureTag>();
        return id;
    }
    TypeId GetInstanceTypeId() const override { return GetTypeId(); }
    uint32_t GetSerializedSize() const override { return sizeof(m_ticks); }
    void Serialize(TagBuffer buffer) const override { buffer.WriteU64(m_ticks); }
    void Deserialize(TagBuffer buffer) override { m_ticks = buffer.ReadU64(); }
    void Print(std::ostream& out) const override { out << m_ticks; }

    Time Departure() const { return TimeStep(m_ticks); }

  private:
    uint64_t m_ticks = 0;
};

// A sender of datagrams of equal size. `Next` returns the interval before the next datagram, in s.
class Source {
  public:
    Source(Ptr<Node> node, Ipv4Address to, double end_s)
        : m_socket(Socket::CreateSocket(node, UdpSocketFactory::GetTypeId())), m_end_s(end_s) {
        m_socket->Bind();
        m_socket->Connect(InetSocketAddress(to, PORT));
        m_socket->ShutdownRecv();
    }
    virtual ~Source() = default;

    // Schedules the next datagram at the interval `Next` after the last datagram.
    void Wait() {
        m_at_s += Next();
        if (m_at_s < m_end_s) {
            // The time is computed from the sum of all intervals, so that rounding errors of nanoseconds do not add up.
            Simulator::Schedule(NanoSeconds(std::llround(m_at_s * 1e9)) - Simulator::Now(), &Source::Send, this);
        }
    }

  protected:
    virtual double Next() = 0;
    virtual void Mark(Packet&) {}

  private:
    void Send() {
        auto packet = Create<Packet>(PAYLOAD_BYTES);
        Mark(*packet);
        m_socket->Send(packet);
        Wait();
    }

    Ptr<Socket> m_socket;
    double m_end_s;
    double m_at_s = 0.0;
};

// A sender with constant bit rate that starts at a random phase. Its packets carry their departure times.
class Cbr : public Source {
  public:
    Cbr(Ptr<Node> node, Ipv4Address to, double end_s, double mbps)
        : Source(node, to, end_s), m_interval_s(IntervalSeconds(mbps)) {
        auto phase = CreateObject<UniformRandomVariable>();
        phase->SetStream(PHASE_STREAM);
        m_next_s = phase->GetValue(0.0, m_interval_s);
    }

  protected:
    double Next() override { return std::exchange(m_next_s, m_interval_s); }
    void Mark(Packet& packet) override { packet.AddPacketTag(DepartureTag(Simulator::Now())); }

  private:
    double m_interval_s;
    double m_next_s;
};

// A sender with exponentially distributed intervals between datagrams.
class Poisson : public Source {
  public:
    Poisson(Ptr<Node> node, Ipv4Address to, double end_s, double mbps)
        : Source(node, to, end_s), m_gap(CreateObject<ExponentialRandomVariable>()) {
        m_gap->SetStream(GAP_STREAM);
        m_gap->SetAttribute("Mean", DoubleValue(IntervalSeconds(mbps)));
    }

  protected:
    double Next() override { return m_gap->GetValue(); }

  private:
    Ptr<ExponentialRandomVariable> m_gap;
};

// Mean and variance of the delay, updated with each packet (Welford 1962).
class Delays {
  public:
    void Add(double delay_s) {
        m_count += 1;
        const double from_old = delay_s - m_mean;
        m_mean += from_old / m_count;
        m_squares += from_old * (delay_s - m_mean);
    }
    uint64_t Count() const { return m_count; }
    double Mean() const { return m_count > 0 ? m_mean : NAN; }
    double Variance() const { return m_count > 1 ? m_squares / (m_count - 1) : NAN; }

  private:
    uint64_t m_count = 0;
    double m_mean = 0.0;
    double m_squares = 0.0;
};

// Opens a socket at `node` that calls `take` when packets arrive.
Ptr<Socket> Listen(Ptr<Node> node, Callback<void, Ptr<Socket>> take) {
    auto socket = Socket::CreateSocket(node, UdpSocketFactory::GetTypeId());
    socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
    socket->SetRecvCallback(take);
    return socket;
}

Delays g_delays;

void TakeMeasured(Ptr<Socket> socket) {
    while (auto packet = socket->Recv()) {
        DepartureTag tag;
        if (packet->PeekPacketTag(tag)) {
            g_delays.Add((Simulator::Now() - tag.Departure()).GetSeconds());
        }
    }
}

void TakeBackground(Ptr<Socket> socket) {
    while (socket->Recv()) {
    }
}

// Joins two nodes by a link, and returns the address of the second node.
Ipv4Address Join(Ptr<Node> a, Ptr<Node> b, const char* rate, const char* delay) {
    static Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
    // Without flow control, ns-3 adds no queueing discipline, so that packets wait only in the queue of the device.
    link.DisableFlowControl();
    auto ends = addresses.Assign(link.Install(a, b));
    addresses.NewNetwork();
    return ends.GetAddress(1);
}

// Reads a positive number. Ends the program if the text is not a positive number.
double Positive(const char* text, const char* name) {
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0.0) || std::isinf(value)) {
        std::fprintf(stderr, "%s is `%s`; it has to be a positive number\n", name, text);
        std::exit(2);
    }
    return value;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s RATE_MBPS SEED SECONDS\n", argv[0]);
        return 2;
    }
    const double rate_mbps = Positive(argv[1], "RATE_MBPS");
    const double seed = Positive(argv[2], "SEED");
    if (seed != std::floor(seed)) {
        std::fprintf(stderr, "SEED is `%s`; it has to be a whole number\n", argv[2]);
        return 2;
    }
    const double seconds = Positive(argv[3], "SECONDS");

    RngSeedManager::SetRun(static_cast<uint64_t>(seed));

    NodeContainer nodes(6);
    const auto s1 = nodes.Get(0), s2 = nodes.Get(1), e0 = nodes.Get(2);
    const auto e1 = nodes.Get(3), d1 = nodes.Get(4), d2 = nodes.Get(5);
    // For speed, the nodes have no IPv6 and only one routing protocol.
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(Ipv4GlobalRoutingHelper());
    stack.Install(nodes);
    Join(s1, e0, "1Gbps", "1ms");
    Join(s2, e0, "1Gbps", "1ms");
    Join(e0, e1, "15Mbps", "5ms");
    const auto to_d1 = Join(e1, d1, "1Gbps", "1ms");
    const auto to_d2 = Join(e1, d2, "1Gbps", "1ms");
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const auto sink1 = Listen(d1, MakeCallback(&TakeMeasured));
    const auto sink2 = Listen(d2, MakeCallback(&TakeBackground));
    Cbr session1(s1, to_d1, seconds, rate_mbps);
    Poisson session2(s2, to_d2, seconds, BACKGROUND_MBPS);
    session1.Wait();
    session2.Wait();

    // The simulation ends by itself, because no event is left after both sources have stopped and the queues are empty.
    Simulator::Run();
    std::printf("ns-3,%s,%s,%lu,%.9g,%.9g\n", argv[1], argv[2], static_cast<unsigned long>(g_delays.Count()),
                g_delays.Mean(), g_delays.Variance());
    Simulator::Destroy();
}
