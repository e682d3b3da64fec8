//! Tests of how network faults affect a session, in simulated time. Most faults are tested with several seeds. The
//! tests of the command line tool test the same faults with real sockets across network namespaces, with one seed.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use rand_distr::{Distribution, StandardUniform};

use super::two_ends::{EPOCH, MILLI, Passing, TwoEnds};
use super::{Delays, Payload, Sender, SenderConfig, StreamConfig};
use crate::{Endpoint as _, Event, Input};
use equipoise::control::{Cbr, find};
use equipoise::random::generator;
use equipoise::units::{Instant, Rate, ReceiverClock, Schedule, Size, Span};
use equipoise_path::link::{FifoLink, LinkConfig, Passage, QueueLimit};

const SEEDS: u64 = 10;
const MIN: f64 = 500e3;
const MAX: f64 = 4e6;
/// One-way delay, in ns.
const WAY: u64 = 10 * MILLI;
const SECOND: u64 = 1000 * MILLI;

/// Creates a session with the controller AP and a report every 250 ms. The path has 5 Mbit/s from the sender to the
/// receiver, and a delay of 10 ms each way. `fate` decides on each datagram, given a random number from 0 to 1: `[]`
/// loses the datagram, `[0]` delivers it, `[0, 7]` delivers it and a copy 7 ms later, `[50]` delays it by a further
/// 50 ms.
fn bench(
    seed: u64,
    payload: Payload,
    mut fate: impl FnMut(&Passing, f64) -> Vec<u64>,
) -> TwoEnds<impl FnMut(&Passing) -> Vec<u64>> {
    let config = LinkConfig {
        rate: Schedule::constant(Rate::from_bps(5_000_000)),
        propagation_delay: Span::ZERO,
        queue: QueueLimit::Packets(500),
    };
    let mut link = FifoLink::<ReceiverClock>::new(config, Instant::ZERO).expect("a valid link");
    let mut random = generator(seed, 0);
    let path = move |passing: &Passing| {
        let mut ways = Vec::new();
        for held in fate(passing, StandardUniform.sample(&mut random)) {
            let queued = match passing.from_sender.then(|| link.offer(Instant::from_nanos(passing.at), passing.size)) {
                Some(None) => continue,
                Some(Some(Passage { arrives_at, .. })) => arrives_at.as_nanos() - passing.at,
                None => 0,
            };
            ways.push(queued + WAY + held * MILLI);
        }
        ways
    };
    let entry = find("ap").expect("in the catalogue");
    let given = [("target", "20 ms"), ("min_rate", "500 kbit/s"), ("max_rate", "4 Mbit/s")];
    let packet = Size::from_bytes(1000);
    let ap = || entry.build(&entry.parse(&given).expect("right"), packet).expect("right");
    let mut ends = TwoEnds::between(Delays::Queueing, payload, ap(), path);
    let stream = StreamConfig::new(0x0102_0304, 96, packet, "sender@test");
    let base = SenderConfig::new(stream, Span::from_millis(250), Instant::from_nanos(EPOCH), seed);
    let config = SenderConfig { payload, delays: Delays::Queueing, ..base };
    ends.sender = Sender::new(config, ap()).expect("a valid configuration");
    ends
}

/// The result of a whole session.
struct Story {
    /// The decided rate at the end of each half second, in bit/s.
    rates: Vec<f64>,
    sent: u64,
    received: u64,
}

impl Story {
    /// Collects the result. Asserts that the rate is within its limits, and that no more packets arrive than were sent.
    fn of<F>(ends: &TwoEnds<F>) -> Self {
        let count = |is: fn(&Event) -> bool| ends.events.iter().filter(|(_, event)| is(event)).count() as u64;
        let (mut rates, mut rate) = (Vec::new(), MIN);
        for (at, event) in &ends.events {
            while (rates.len() as u64 + 1) * SECOND / 2 <= *at {
                rates.push(rate);
            }
            if let Event::RateDecided { rate: decided, .. } = event {
                rate = decided.as_bps_f64();
            }
        }
        assert!(rates.iter().all(|rate| (MIN..=MAX).contains(rate)), "{rates:?}");
        let (sent, received) = (
            count(|event| matches!(event, Event::MediaSent { .. })),
            count(|event| matches!(event, Event::MediaReceived { .. })),
        );
        assert!(received <= sent);
        Self { rates, sent, received }
    }

    fn lost(&self) -> f64 {
        1.0 - self.received as f64 / self.sent as f64
    }

    /// Returns the number of half seconds from index `from` until the rate has recovered: until it is at least `share`
    /// times its mean over the 8 half seconds before `from`. The first 4 half seconds after `from` are not tested.
    fn recovery(&self, from: usize, share: f64) -> Option<usize> {
        let before = &self.rates[from - 8..from];
        let level = share * before.iter().sum::<f64>() / before.len() as f64;
        self.rates[from..].iter().skip(4).position(|rate| *rate >= level).map(|at| at + 4)
    }
}

fn run(seed: u64, seconds: u64, fate: impl FnMut(&Passing, f64) -> Vec<u64>) -> Story {
    let mut ends = bench(seed, Payload::Generated, fate);
    ends.run_until(seconds * 1000);
    ends.tell(true, Input::Stop);
    ends.run_until(seconds * 1000 + 1000);
    Story::of(&ends)
}

/// A sender cannot know whether packets are lost by chance or by a policer. So it tolerates a small share of lost
/// packets, and reduces its rate if the share is large.
#[test]
fn up_to_a_third_of_all_packets_may_be_lost_each_way() {
    for seed in 0..SEEDS {
        for share in [0.02, 0.05, 0.3] {
            let told = run(seed, 12, |_, drawn| if drawn < share { vec![] } else { vec![0] });
            assert!((told.lost() - share).abs() < 0.1, "seed {seed}, {share}: {} lost", told.lost());
            let highest = told.rates.iter().copied().fold(0.0, f64::max);
            assert_eq!(highest > 1e6, share < 0.3, "seed {seed}, {share}: {:?}", told.rates);
        }
    }
}

#[test]
fn lost_requests_and_lost_reports_slow_the_session_down_and_nothing_more() {
    for seed in 0..SEEDS {
        for requests in [true, false] {
            let told = run(seed, 24, |passing, _| {
                let is_hit = passing.is_rtcp && passing.from_sender == requests;
                if is_hit && (8 * SECOND..12 * SECOND).contains(&passing.at) { vec![] } else { vec![0] }
            });
            let lowest = told.rates[16..26].iter().copied().fold(f64::MAX, f64::min);
            assert!(lowest < 0.6 * told.rates[15], "seed {seed}: from {} to {lowest}", told.rates[15]);
            let back = told.recovery(16, 0.6);
            assert!(back.is_some_and(|back| back <= 24), "seed {seed}, requests {requests}: {:?}", told.rates);
        }
    }
}

/// Tests that a stream arrives complete through a network that loses no packets.
fn intact(fate: fn(&Passing, f64) -> Vec<u64>) {
    let stream: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    for seed in 0..SEEDS {
        let mut ends = bench(seed, Payload::Stream, fate);
        let (mut fed, mut millis) = (0, 0);
        while fed < stream.len() || ends.sender.waiting() > 0 {
            fed += ends.feed(&stream[fed..]);
            millis += 100;
            ends.run_until(millis);
        }
        ends.tell(true, Input::Stop);
        ends.run_until(millis + 1000);
        let told = Story::of(&ends);
        assert_eq!((told.sent, ends.missing), (told.received, 0), "seed {seed}");
        assert!(ends.given == stream, "seed {seed}: the bytes are those that were sent");
    }
}

#[test]
fn packets_that_overtake_each_other_by_50_ms_are_put_into_order() {
    intact(|_, drawn| vec![if drawn < 1.0 / 6.0 { 50 } else { 0 }]);
}

#[test]
fn packets_that_come_twice_count_once() {
    intact(|_, drawn| if drawn < 1.0 / 3.0 { vec![0, 7] } else { vec![0] });
}

#[test]
fn an_outage_of_ten_seconds_ends_no_session() {
    for seed in 0..SEEDS {
        // The outage starts at a different time within the report interval for each seed.
        let start = 8 * SECOND + seed * 31 * MILLI;
        let told = run(
            seed,
            34,
            |passing, _| {
                if (start..start + 10 * SECOND).contains(&passing.at) { vec![] } else { vec![0] }
            },
        );
        assert!(told.rates[24..35].iter().all(|rate| *rate <= MIN * 1.01), "seed {seed}: {:?}", told.rates);
        let high = told.rates[37..].iter().position(|rate| *rate > 2.0 * MIN);
        assert!(high.is_some_and(|high| high <= 20), "seed {seed}: {:?}", told.rates);
    }
}

/// If this test fails, the application is not informed of the gap in the stream after an outage of more than 3000
/// packets, or the number of lost packets is wrong by a multiple of 65 536.
#[test]
fn an_outage_of_any_number_of_packets_is_told_to_the_reader_and_counted() {
    for millis in [500, 4300, 6800] {
        let lost = |at: u64| (SECOND..SECOND + millis * MILLI).contains(&at);
        let path = move |passing: &Passing| if lost(passing.at) { vec![] } else { vec![WAY] };
        let cbr = || Box::new(Cbr::new(Rate::from_bps(80_000_000)));
        let mut ends = TwoEnds::between(Delays::Queueing, Payload::Generated, cbr(), path);
        ends.run_until(2000 + millis);
        let sent = ends.events.iter().filter(|(_, event)| matches!(event, Event::MediaSent { .. }));
        let missing = sent.clone().filter(|(at, _)| lost(*at)).count() as u64;
        assert!(missing.abs_diff(10 * millis) < 20, "{missing}");
        let told = ends.events.iter().rev().find_map(|(_, event)| match event {
            Event::ReportApplied { lost, .. } => Some(*lost),
            _ => None,
        });
        assert_eq!(told, Some(missing), "{millis} ms");
        let numbers = |is: fn(&Event) -> Option<u64>| ends.events.iter().filter_map(move |(_, event)| is(event));
        let sent = numbers(|event| if let Event::MediaSent { sequence, .. } = event { Some(*sequence) } else { None });
        let came =
            numbers(|event| if let Event::MediaReceived { sequence, .. } = event { Some(*sequence) } else { None });
        let (first, last) = (sent.clone().min().expect("media"), sent.max().expect("media"));
        let (first_came, last_came) = (came.clone().min().expect("media"), came.max().expect("media"));
        assert!((last - first).abs_diff(last_came - first_came) < 200, "{millis} ms: the numbers go on");
    }
}
