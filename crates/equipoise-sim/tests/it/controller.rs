//! Tests of controllers over TCP. Acknowledgements are the controllers' feedback, and the controllers' windows and
//! rates limit the TCP sender.

use equipoise::control::adapt::{IntervalConfig, Intervals, Origin, Windowed};
use equipoise::control::ap::{Ap, ApConfig, Learning};
use equipoise::control::window::Reno;
use equipoise::control::{Allowance, BoxedController, Controller, Fate, Feedback, Needs, Rap, RateLimits, SentPacket};
use equipoise::units::{Instant, Rate, Schedule, SenderClock, Size, Span};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_session::Event;
use equipoise_sim::tcp::{Law, LossRecovery, Receiver, ReceiverConfig, Sender, SenderConfig, SenderStats, TcpError};
use equipoise_sim::{Flow, FlowId, Side, Time, World};

use crate::support::{at, mbps};

const SEGMENT: Size = Size::from_bytes(1500);
const BOTTLENECK: Rate = Rate::from_bps(10_000_000);

/// The result of one connection over a bottleneck of 10 Mbit/s with a queue of 40 packets. The propagation delay is 40
/// ms per round trip.
#[derive(Debug)]
struct Outcome {
    /// Utilisation of the bottleneck in the second half of the run, 0 to 1.
    utilisation: f64,
    stats: SenderStats,
}

fn run(law: impl Into<Law>, recovery: LossRecovery, secs: f64) -> Outcome {
    let mut world = World::new();
    let mut add = |rate, packets| {
        let link = LinkConfig {
            rate: Schedule::constant(rate),
            propagation_delay: Span::from_millis(20),
            queue: QueueLimit::Packets(packets),
        };
        world.add_link(link).expect("valid")
    };
    let (there, back) = (add(BOTTLENECK, 40), add(mbps(1000.0), 100_000));
    let near = Sender::new(SenderConfig { recovery, ..SenderConfig::new(SEGMENT) }, law).expect("its needs are met");
    let sack = recovery == LossRecovery::Sack;
    let far = ReceiverConfig { sack, delayed_acks: None, ..ReceiverConfig::new() };
    let far = Receiver::new(far).expect("a valid configuration");
    let flow = world.add_flow(Flow::new(near, far, vec![there], vec![back])).expect("links of this world");
    let mut quiet = |_: Time, _: FlowId, _: Side, _: &Event| {};
    world.run(at(secs / 2.0), &mut quiet);
    let before = world.link_stats(there).expect("a link of this world").left;
    world.run(at(secs), &mut quiet);
    let forwarded = world.link_stats(there).expect("a link of this world").left - before;
    Outcome {
        utilisation: forwarded as f64 * SEGMENT.as_bits() as f64 / (secs / 2.0 * BOTTLENECK.as_bps_f64()),
        stats: world.near::<Sender>(flow).expect("a connection").stats(),
    }
}

fn controller(controller: impl Controller + 'static) -> BoxedController {
    Box::new(controller)
}

/// Without delayed acknowledgements, each acknowledgement covers one segment. Therefore Reno takes the same steps as a
/// window law and as a controller. Only the end of a recovery differs. TCP's recovery ends when all data that was in
/// flight at the start of the recovery is acknowledged. A controller's recovery ends when a packet that was sent after
/// the start of the recovery is acknowledged.
#[test]
fn reno_as_a_controller_does_what_reno_does() {
    for recovery in [LossRecovery::NewReno, LossRecovery::Sack] {
        let law = run(Law::Window(Box::new(Reno::new(10.0))), recovery, 100.0);
        let windowed = run(controller(Windowed::new(Reno::new(10.0), SEGMENT)), recovery, 100.0);
        let apart = (windowed.utilisation / law.utilisation - 1.0).abs();
        assert!(apart < 0.02 && windowed.utilisation > 0.95, "{recovery:?}: {law:?}, {windowed:?}");
        let recoveries = [&law, &windowed].map(|outcome| outcome.stats.recoveries as f64);
        assert!((recoveries[1] / recoveries[0] - 1.0).abs() < 0.2, "{recovery:?}: {recoveries:?}");
    }
}

/// AIMD in bytes: the window grows by one packet per round-trip time. A loss reduces the window to two thirds. Further
/// losses of packets that were sent before the reduction have no effect.
#[derive(Debug)]
struct ByteAimd {
    window: f64,
    next: u64,
    recovers_until: u64,
}

impl ByteAimd {
    const fn new() -> Self {
        Self { window: 15_000.0, next: 0, recovers_until: 0 }
    }

    fn cut(&mut self, window: f64) {
        (self.window, self.recovers_until) = (window.max(1500.0), self.next);
    }
}

impl Controller for ByteAimd {
    fn on_feedback(&mut self, _: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Packets(feedback) => {
                for packet in feedback.packets {
                    match packet.fate {
                        _ if packet.number < self.recovers_until => {}
                        Fate::Lost => self.cut(self.window * 2.0 / 3.0),
                        Fate::Arrived { .. } if !feedback.app_limited => {
                            self.window += 1500.0 * packet.size.as_bytes() as f64 / self.window;
                        }
                        _ => {}
                    }
                }
            }
            Feedback::TimedOut { .. } => self.cut(1500.0),
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(Size::from_bytes(self.window as u64))
    }

    fn needs(&self) -> Needs {
        Needs::PACKETS
    }

    fn on_sent(&mut self, _: Instant<SenderClock>, packet: &SentPacket) {
        self.next = packet.number + 1;
    }
}

/// 33 segments fit on the path and 40 into the queue, so a loss occurs at a window of 73 segments. The controller then
/// reduces the window to two thirds, which still fill the path.
#[test]
fn a_controller_that_counts_bytes_fills_the_path() {
    for recovery in [LossRecovery::NewReno, LossRecovery::Sack] {
        let outcome = run(controller(ByteAimd::new()), recovery, 60.0);
        assert!(outcome.utilisation > 0.95, "{recovery:?}: {outcome:?}");
        assert!(outcome.stats.recoveries > 2 && outcome.stats.timeouts <= 2, "{recovery:?}: {outcome:?}");
    }
}

fn ap(origin: Origin) -> BoxedController {
    let config = ApConfig {
        target: Span::from_millis(10),
        limits: RateLimits::within(mbps(0.5), mbps(15.0)),
        response: 300.0,
        learning: Learning::Fixed,
        unrest: 0.08,
        packet: SEGMENT,
    };
    controller(Intervals::new(
        Ap::new(config),
        IntervalConfig { origin, ..IntervalConfig::new(Span::from_millis(500)) },
    ))
}

/// AP uses delays, but TCP's acknowledgements provide only round-trip times. With `Origin::RoundTrip`, these count as
/// the delays. With `Origin::Queueing`, there are no delay statistics, and AP uses the last round-trip time of each
/// interval.
#[test]
fn a_rate_law_of_delays_works_on_round_trips() {
    for origin in [Origin::RoundTrip, Origin::Queueing] {
        let outcome = run(ap(origin), LossRecovery::Sack, 120.0);
        assert!(outcome.utilisation > 0.7, "{origin:?}: {outcome:?}");
        let resent = outcome.stats.resent_in_recovery + outcome.stats.resent_after_timeout;
        assert!(resent * 100 < outcome.stats.sent, "{origin:?}: {outcome:?}");
    }
}

/// RAP was designed for acknowledgements; the adapter combines acknowledgements into intervals. RAP sets no window, and
/// halves its rate only one round-trip time after a loss. Until then, retransmissions are also lost, so most of TCP's
/// recoveries end in a timeout of 1 s.
#[test]
fn a_rate_law_of_losses_needs_no_delays_and_is_refused_without_the_adapter() {
    let rap = || Rap::new(RateLimits::within(mbps(0.5), mbps(15.0)), SEGMENT);
    let outcome =
        run(controller(Intervals::new(rap(), IntervalConfig::new(Span::from_millis(60)))), LossRecovery::Sack, 120.0);
    assert!(outcome.utilisation > 0.5 && outcome.stats.recoveries > 20, "{outcome:?}");
    let refused = Sender::new(SenderConfig::new(SEGMENT), controller(rap())).err();
    assert!(
        matches!(refused, Some(TcpError::Needs(unmet)) if unmet.missing == Needs::INTERVALS),
        "intervals do not come from TCP: {refused:?}"
    );
}
