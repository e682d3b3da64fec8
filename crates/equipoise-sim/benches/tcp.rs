//! Benchmark: computing time of simulated TCP connections.

use divan::Bencher;
use divan::counter::ItemsCount;
use equipoise::control::window::Reno;
use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_session::Event;
use equipoise_sim::tcp::{Law, Receiver, ReceiverConfig, Sender, SenderConfig};
use equipoise_sim::{Flow, FlowId, Side, Time, World};

fn main() {
    divan::main();
}

/// TCP flows with SACK and Reno that share one bottleneck link.
struct Dumbbell {
    flows: u32,
    rate: Rate,
    round_trip: Span,
    queue: u32,
    length: Span,
}

impl Dumbbell {
    /// Runs the simulation. Returns the number of packets that the bottleneck forwarded.
    fn run(&self) -> u64 {
        let mut world = World::new();
        let propagation_delay = Span::from_nanos(self.round_trip.as_nanos() / 2);
        let link = |queue| LinkConfig {
            rate: Schedule::constant(self.rate),
            propagation_delay,
            queue: QueueLimit::Packets(queue),
        };
        let there = world.add_link(link(self.queue)).expect("valid");
        let back = world.add_link(link(u32::MAX)).expect("valid");
        for flow in 0..self.flows {
            // Connection n starts (n mod 100) ms after the start of the simulation.
            let start = Time::ZERO + Span::from_millis(i64::from(flow) % 100);
            let config = SenderConfig { start, ..SenderConfig::new(Size::from_bytes(1500)) };
            let near = Sender::new(config, Law::Window(Box::new(Reno::new(10.0)))).expect("valid");
            let far = Receiver::new(ReceiverConfig::new()).expect("valid");
            world.add_flow(Flow::new(near, far, vec![there], vec![back])).expect("links of this world");
        }
        world.run(Time::ZERO + self.length, &mut |_: Time, _: FlowId, _: Side, _: &Event| {});
        world.link_stats(there).expect("a link of this world").left
    }

    fn bench(&self, bencher: Bencher<'_, '_>) {
        bencher.counter(ItemsCount::new(self.run())).bench_local(|| self.run());
    }
}

/// One flow at 100 Mbit/s and a round-trip time of 120 ms. The bandwidth-delay product is 1000 packets, and the queue
/// holds 1000 packets.
#[divan::bench(sample_size = 1)]
fn one_flow_10_s(bencher: Bencher<'_, '_>) {
    let rate = Rate::from_bps(100_000_000);
    let (round_trip, length) = (Span::from_millis(120), Span::from_secs(10));
    Dumbbell { flows: 1, rate, round_trip, queue: 1000, length }.bench(bencher);
}

/// 1000 flows at 10 Gbit/s and a round-trip time of 20 ms, with a queue of about half a bandwidth-delay product.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn thousand_flows_1_s(bencher: Bencher<'_, '_>) {
    let rate = Rate::from_bps(10_000_000_000);
    let (round_trip, length) = (Span::from_millis(20), Span::from_secs(1));
    Dumbbell { flows: 1000, rate, round_trip, queue: 8000, length }.bench(bencher);
}
