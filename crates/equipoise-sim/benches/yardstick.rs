//! Reference benchmark: `world` simulates 400 s of Waki 2013, Sec. 4.2 at 3 Mbit/s. For comparison, `recursion`
//! computes only the times at which packets leave the links. Its computing time is a lower bound for any simulator.
//!
//! Both benchmarks compute the mean and the variance of the session's one-way delay. The same scenario for ns-2 and
//! ns-3 is in `bench/peers/`.

use divan::Bencher;
use divan::counter::ItemsCount;
use equipoise::measure::Moments;
use equipoise::units::{Instant, Rate, Schedule, Size, Span};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_path::source::{Source, Traffic};
use equipoise_session::Event;
use equipoise_sim::{FlowId, LinkId, Side, SimClock, Stream, Time, World};

fn main() {
    divan::main();
}

const SECONDS: i64 = 400;
const PACKET: Size = Size::from_bytes(1000);
const SESSION: Rate = Rate::from_bps(3_000_000);
const BACKGROUND: Rate = Rate::from_bps(9_000_000);
const BOTTLENECK: Rate = Rate::from_bps(15_000_000);
const ACCESS: Rate = Rate::from_bps(1_000_000_000);
/// Average number of packets that both sources together send in 400 s.
const PACKETS: u32 = 600_000;

#[divan::bench(sample_size = 1)]
fn world(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        let mut world = World::new();
        let near = [(); 2].map(|()| link(&mut world, ACCESS, 1));
        let bottleneck = link(&mut world, BOTTLENECK, 5);
        let far = [(); 2].map(|()| link(&mut world, ACCESS, 1));
        add(&mut world, Traffic::Constant, SESSION, vec![near[0], bottleneck, far[0]], 0);
        add(&mut world, Traffic::Poisson, BACKGROUND, vec![near[1], bottleneck, far[1]], 1);
        let mut delays = Moments::EMPTY;
        world.run(Time::ZERO + Span::from_secs(SECONDS), &mut |_: Time, flow: FlowId, _: Side, event: &Event| {
            if let (0, Event::MediaReceived { delay, .. }) = (flow.index(), event) {
                delays.push(delay.as_secs_f64());
            }
        });
        (delays.mean(), delays.variance())
    });
}

fn link(world: &mut World, rate: Rate, delay_ms: i64) -> LinkId {
    let rate = Schedule::constant(rate);
    let config = LinkConfig { rate, propagation_delay: Span::from_millis(delay_ms), queue: QueueLimit::Packets(1000) };
    world.add_link(config).expect("a valid link")
}

fn add(world: &mut World, traffic: Traffic, rate: Rate, forward: Vec<LinkId>, number: u64) {
    let stream = Stream { source: source(traffic, rate, number), forward };
    world.add_stream(stream).expect("links of this world");
}

fn source(traffic: Traffic, rate: Rate, number: u64) -> Source<SimClock> {
    Source::new(traffic, Schedule::constant(rate), PACKET, Instant::ZERO, (1, number))
}

/// Merges the departure times of the two sources, and computes by arithmetic alone when each packet leaves the three
/// links on its path. The simulator is not used.
#[divan::bench(sample_size = 1)]
fn recursion(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        let mut sources = [source(Traffic::Constant, SESSION, 0), source(Traffic::Poisson, BACKGROUND, 1)];
        let service = |rate: Rate| PACKET.as_bits() as f64 / rate.as_bps_f64();
        let (access, bottleneck) = (service(ACCESS), service(BOTTLENECK));
        let mut delays = Moments::EMPTY;
        let mut next = [0, 1].map(|of: usize| departure_s(&sources[of]));
        let mut access_free = [0f64; 2];
        let mut bottleneck_free = 0f64;
        let mut far_free = [0f64; 2];
        loop {
            let of = usize::from(next[1] < next[0]);
            let left = next[of];
            if left > SECONDS as f64 {
                return (delays.mean(), delays.variance());
            }
            access_free[of] = access_free[of].max(left) + access;
            bottleneck_free = bottleneck_free.max(access_free[of] + 1e-3) + bottleneck;
            far_free[of] = far_free[of].max(bottleneck_free + 5e-3) + access;
            if of == 0 {
                delays.push(far_free[of] + 1e-3 - left);
            }
            sources[of].advance();
            next[of] = departure_s(&sources[of]);
        }
    });
}

fn departure_s(source: &Source<SimClock>) -> f64 {
    source.next_departure().map_or(f64::INFINITY, |at| (at - Time::ZERO).as_secs_f64())
}
