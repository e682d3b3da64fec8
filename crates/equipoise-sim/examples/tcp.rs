//! scratch
use equipoise::control::window::Reno;
use equipoise::link::{LinkConfig, QueueLimit};
use equipoise::session::Event;
use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_sim::tcp::{LossRecovery, Receiver, ReceiverConfig, Sender, SenderConfig};
use equipoise_sim::{Connection, FlowId, Side, Time, World};

fn main() {
    for recovery in [LossRecovery::NewReno, LossRecovery::Sack] {
        for (mbps, rtt_ms, queue, secs) in [
            (2, 24, 10, 100),
            (10, 40, 50, 100),
            (10, 100, 25, 100),
            (50, 60, 300, 100),
            (100, 120, 1000, 200),
            (100, 30, 100, 100),
        ] {
            for flows in [1, 4] {
                let begun = std::time::Instant::now();
                let mut world = World::new();
                let rate = Schedule::constant(Rate::from_bps(mbps * 1_000_000));
                let link = |delay, rate: Schedule<Rate>, q| LinkConfig {
                    rate,
                    propagation_delay: delay,
                    queue: QueueLimit::Packets(q),
                };
                let half = Span::from_micros(rtt_ms * 500);
                let there = world.add_link(link(half, rate.clone(), queue)).unwrap();
                let back = world.add_link(link(half, rate, 100000)).unwrap();
                let ids: Vec<_> = (0..flows)
                    .map(|i| {
                        let mut config = SenderConfig::new(Size::from_bytes(1500));
                        config.recovery = recovery;
                        config.start = Time::ZERO + Span::from_millis(100 * i);
                        let near = Sender::new(config, Box::new(Reno::new(10.0))).unwrap();
                        let far = Receiver::new(ReceiverConfig {
                            sack: recovery == LossRecovery::Sack,
                            ..ReceiverConfig::new()
                        })
                        .unwrap();
                        world
                            .add_tcp(Connection { near, far, forward: vec![there], backward: vec![back], known: None })
                            .unwrap()
                    })
                    .collect();
                world.run(Time::ZERO + Span::from_secs(secs), &mut |_: Time, _: FlowId, _: Side, _: &Event| {});
                let link = world.link_stats(there).unwrap();
                let (mut g, mut to, mut fr, mut rt) = (0.0, 0, 0, 0);
                for id in ids {
                    let (s, r) = world.tcp(id).unwrap();
                    g += r.delivered().as_bits() as f64 / secs as f64 / 1e6;
                    let s = s.stats();
                    to += s.timeouts;
                    fr += s.recoveries;
                    rt += s.resent_in_recovery + s.resent_after_timeout;
                }
                println!(
                    "{recovery:?} {mbps} {rtt_ms} {queue} x{flows}: goodput {g:.3} loss {:.5} to {to} fr {fr} rtx {rt} queue {:.1}  {:?}",
                    link.dropped as f64 / (link.forwarded + link.dropped) as f64,
                    link.mean_queue.unwrap(),
                    begun.elapsed()
                );
            }
        }
    }
}
