//! Benchmark: computing time of the simulator.

use divan::Bencher;
use divan::counter::ItemsCount;
use equipoise::control::Cbr;
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, Schedule, Size, Span};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_path::source::{Source, Traffic};
use equipoise_session::Event;
use equipoise_session::rtp::{Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};
use equipoise_sim::{Flow, FlowId, Side, Stream, Time, World};

fn main() {
    divan::main();
}

fn ends(ssrc: u32) -> (StreamConfig, Receiver) {
    let stream = StreamConfig::new(ssrc, 96, Size::from_bytes(1000), "s");
    let clocks = ClockMap::SYNCHRONISED;
    let far = ReceiverConfig::new(ssrc + 1, "r", ssrc, clocks, 1);
    (stream, Receiver::new(far).expect("valid"))
}

/// Simulates ten seconds of 3 Mbit/s RTP and 9 Mbit/s of Poisson traffic over a link of 15 Mbit/s: 15 000 packets.
#[divan::bench]
fn dumbbell_10_s(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(15_000u32)).bench_local(|| {
        let mut world = World::new();
        let config = LinkConfig {
            rate: Schedule::constant(Rate::from_bps(15_000_000)),
            propagation_delay: Span::from_millis(5),
            queue: QueueLimit::Packets(1000),
        };
        let there = world.add_link(config.clone()).expect("valid");
        let back = world.add_link(config).expect("valid");
        let (stream, far) = ends(10);
        let config = SenderConfig::new(stream, Span::from_secs(1), Instant::ZERO, 1);
        let near = Sender::new(config, Box::new(Cbr::new(Rate::from_bps(3_000_000)))).expect("valid");
        world.add_flow(Flow::new(near, far, vec![there], vec![back])).expect("links of this world");
        let rate = Schedule::constant(Rate::from_bps(9_000_000));
        let source = Source::new(Traffic::Poisson, rate, Size::from_bytes(1000), Instant::ZERO, (1, 1));
        world.add_stream(Stream { source, forward: vec![there] }).expect("a link of this world");
        let mut received = 0u64;
        world.run(Time::from_nanos(10_000_000_000), &mut |_: Time, _: FlowId, _: Side, event: &Event| {
            received += u64::from(matches!(event, Event::MediaReceived { .. }));
        });
        received
    });
}
