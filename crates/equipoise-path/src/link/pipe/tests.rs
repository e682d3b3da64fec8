use alloc::string::ToString as _;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::link::{
    Codel, DeliveryTrace, DualPi2, Ecn, FqCodel, GilbertElliott, Jitter, LinkError, Loss, Pie, QueueLimit, Queued,
    Reordering, TokenBucket,
};
use equipoise::units::{Rate, Schedule, SenderClock, Share};

type At = Instant<SenderClock>;

/// Size of every packet; its transmission takes 1 ms at 8 Mbit/s.
const PACKET: Size = Size::from_bytes(1000);

fn us(us: u64) -> At {
    At::from_nanos(us * 1000)
}

fn share(fraction: f64) -> Share {
    Share::from_fraction(fraction).expect("a share")
}

fn rate(mbps: u64) -> Capacity {
    Capacity::Rate(Schedule::constant(Rate::from_bps(mbps * 1_000_000)))
}

/// Sends `packets` packets into the path, packet n at n · `gap_us`. Returns the number and the departure time in µs of
/// each packet that leaves, and the path.
fn run(config: PipeConfig, packets: u32, gap_us: u64, seed: u64) -> (Vec<(u32, u64)>, Pipe<SenderClock, u32>) {
    let mut pipe = Pipe::new(config, At::ZERO, seed).expect("a path");
    let mut out = Vec::new();
    for number in 0..packets {
        let now = us(u64::from(number) * gap_us);
        while let Some((at, packet)) = pipe.leave(now) {
            out.push((packet, at.as_nanos() / 1000));
        }
        pipe.enter(now, PACKET, number);
    }
    while let Some((at, packet)) = pipe.leave(At::MAX) {
        out.push((packet, at.as_nanos() / 1000));
    }
    (out, pipe)
}

#[test]
fn a_route_changes_and_nobody_overtakes() {
    let ms = Span::from_millis;
    let delay = Schedule::new(ms(10), vec![(ms(4), ms(30)), (ms(20), ms(5))]);
    let config = PipeConfig { delay, ..PipeConfig::default() };
    let (out, pipe) = run(config, 7, 4000, 1);
    // Packets are sent at 0, 4, 8 ... ms. With the shorter delay, the packets sent at 20 and 24 ms would arrive at 25
    // and 29 ms. These times are before the arrivals of the packets sent at 4 to 16 ms with the longer delay. To keep
    // the order, both packets arrive together with the packet sent at 16 ms.
    let at = [10_000, 34_000, 38_000, 42_000, 46_000, 46_000, 46_000];
    assert_eq!(out, (0..).zip(at).collect::<Vec<_>>());
    assert_eq!(pipe.stats(us(50_000)).reordered, 0);
}

#[test]
fn a_packet_comes_no_sooner_behind_another_than_the_bottleneck_takes_for_that_one() {
    let jitter = Jitter::HalfNormal(Span::from_millis(5));
    let config = PipeConfig { capacity: rate(8), delay: Span::from_millis(20).into(), jitter, ..PipeConfig::default() };
    let (out, _) = run(config, 20_000, 2000, 1);
    let later = out.iter().map(|(number, at)| at - u64::from(*number) * 2000).collect::<Vec<_>>();
    // The delay of a packet: 1 ms of transmission, 20 ms of propagation, and at most 15 ms of jitter.
    let (least, most) = (later.iter().min().expect("packets"), later.iter().max().expect("packets"));
    assert!((21_000..21_200).contains(least) && *most == 36_000, "{least} to {most}");
    let gaps = out.windows(2).map(|pair| pair[1].1 - pair[0].1);
    assert_eq!(gaps.clone().min(), Some(1000), "that of a packet of 1000 bytes at 8 Mbit/s");
    assert!(gaps.filter(|gap| *gap <= 1000).count() > 2000, "many wait for their turn");
}

#[test]
fn a_policer_drops_what_exceeds_its_rate_and_delays_nobody() {
    let bucket = TokenBucket { rate: Rate::from_bps(4_000_000), burst: Size::from_bytes(10_000) };
    let config = PipeConfig { policer: Some(bucket), ..PipeConfig::default() };
    // The source sends 8 Mbit/s for a second. All packets pass the policer until the bucket is empty. After that, every
    // second packet passes.
    let (out, pipe) = run(config, 1000, 1000, 1);
    assert!(out.iter().all(|(number, at)| u64::from(*number) * 1000 == *at));
    let stats = pipe.stats(us(1_000_000));
    assert_eq!((stats.left + stats.policed, stats.dropped()), (1000, stats.policed));
    assert!((509..=510).contains(&stats.left), "10 kB of burst and 500 kB of rate, {} packets", stats.left);
    let shaper = PipeConfig { capacity: Capacity::Shaped(bucket), ..PipeConfig::default() };
    let (out, _) = run(shaper, 1000, 1000, 1);
    // The shaper drops nothing. The first 19 packets use up the burst; after that, each packet takes 2 ms.
    assert_eq!((out.len(), out[18].1, out[999].1), (1000, 18_000, 2 * 999_000 - 18_000));
}

#[test]
fn nothing_happens_on_a_path_without_properties() {
    let (out, pipe) = run(PipeConfig::default(), 3, 10, 1);
    assert_eq!(out, [(0, 0), (1, 10), (2, 20)]);
    let stats = pipe.stats(us(20));
    assert_eq!((stats.entered, stats.left, stats.left_bytes), (3, 3, Size::from_bytes(3000)));
}

#[test]
fn rate_and_delay_add_up() {
    let config = PipeConfig { capacity: rate(8), delay: Span::from_millis(5).into(), ..PipeConfig::default() };
    assert_eq!(run(config, 3, 0, 1).0, [(0, 6000), (1, 7000), (2, 8000)]);
}

#[test]
fn jitter_alone_keeps_the_order_and_stays_within_its_span() {
    let jitter = Jitter::Uniform(Span::from_millis(2));
    let config = PipeConfig { delay: Span::from_millis(10).into(), jitter, ..PipeConfig::default() };
    let (out, pipe) = run(config, 20_000, 100, 1);
    assert!(out.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
    assert!(out.iter().all(|(number, at)| (8_000..=12_000).contains(&(at - u64::from(*number) * 100))));
    assert_eq!(pipe.stats(us(0)).reordered, 0);
    let spread: Vec<u64> = out.iter().map(|(number, at)| at - u64::from(*number) * 100).collect();
    assert!(spread.iter().max() > spread.iter().min(), "there is jitter");
}

#[test]
fn a_share_is_held_back_and_overtaken() {
    let reordering = Some(Reordering { share: share(0.1), by: Span::from_millis(5) });
    let config = PipeConfig { delay: Span::from_millis(10).into(), reordering, ..PipeConfig::default() };
    let (out, pipe) = run(config, 20_000, 1000, 1);
    let delays = out.iter().map(|(number, at)| at - u64::from(*number) * 1000);
    let late = delays.filter(|delay| *delay == 15_000).count();
    // The standard error of the share of delayed packets is 0.2 percentage points. A delayed packet is overtaken,
    // unless all packets in the next 5 ms are delayed, too.
    assert!((late as f64 / 20_000.0 - 0.1).abs() < 0.01, "{late}");
    let reordered = pipe.stats(us(0)).reordered;
    assert!(reordered <= late as u64 && reordered > late as u64 * 99 / 100, "{reordered} of {late}");
}

#[test]
fn a_packet_ahead_of_the_others_overtakes_them_but_not_its_own_service() {
    let reordering = Some(Reordering { share: Share::ALL, by: Span::from_secs(-1) });
    let config =
        PipeConfig { capacity: rate(8), delay: Span::from_millis(10).into(), reordering, ..PipeConfig::default() };
    assert_eq!(run(config, 2, 0, 1).0, [(0, 1000), (1, 2000)]);
    let reordering = Some(Reordering { share: share(0.5), by: Span::from_millis(-5) });
    let config = PipeConfig { delay: Span::from_millis(10).into(), reordering, ..PipeConfig::default() };
    let (out, pipe) = run(config, 1000, 1000, 1);
    assert!(pipe.stats(us(0)).reordered > 100);
    assert!(out.iter().all(|(n, at)| [5000, 10_000].contains(&(at - u64::from(*n) * 1000))));
}

#[test]
fn duplicates_follow_their_originals_and_take_the_link_s_time() {
    let config = PipeConfig { capacity: rate(8), duplication: Share::ALL, ..PipeConfig::default() };
    let (out, pipe) = run(config, 2, 0, 1);
    assert_eq!(out, [(0, 1000), (0, 2000), (1, 3000), (1, 4000)]);
    assert_eq!((pipe.stats(us(4000)).duplicated, pipe.stats(us(4000)).reordered), (2, 0));
}

#[test]
fn what_happens_to_a_packet_does_not_depend_on_what_else_may_happen() {
    let loss = Loss::Random(share(0.2));
    let bare = PipeConfig { loss: loss.into(), ..PipeConfig::default() };
    let full = PipeConfig {
        jitter: Jitter::Normal(Span::from_millis(1)),
        reordering: Some(Reordering { share: share(0.3), by: Span::from_millis(3) }),
        duplication: share(0.1),
        ..bare.clone()
    };
    let numbers = |config, seed| {
        let mut numbers: Vec<u32> = run(config, 1000, 100, seed).0.into_iter().map(|(number, _)| number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    assert_eq!(numbers(bare.clone(), 7), numbers(full, 7));
    assert_ne!(numbers(bare.clone(), 7), numbers(bare, 8), "another seed loses others");
}

/// Before the change of the loss probability, the same packets are lost as without the change. After the change, the
/// same packets are lost as if the later probability applied from the start, because the random numbers depend only on
/// the packet number.
#[test]
fn a_step_of_loss_holds_from_its_time_on() {
    let [few, many] = [0.05, 0.4].map(|fraction| Loss::Random(share(fraction)));
    let passed = |loss| {
        let config = PipeConfig { loss, ..PipeConfig::default() };
        run(config, 20_000, 100, 3).0.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
    };
    let at = Span::from_secs(1);
    let stepped = passed(Schedule::new(few, vec![(at, many)]));
    let (before, after) = stepped.split_at(stepped.partition_point(|number| *number < 10_000));
    let of = |all: Vec<u32>, from, to| all.into_iter().filter(|it| (from..to).contains(it)).collect::<Vec<_>>();
    assert_eq!(before, of(passed(few.into()), 0, 10_000));
    assert_eq!(after, of(passed(many.into()), 10_000, 20_000));
    // The standard errors of the shares of lost packets are 0.0022 before and 0.0049 after the change.
    let lost = [before, after].map(|passed| 1.0 - passed.len() as f64 / 1e4);
    assert!((lost[0] - 0.05).abs() < 0.01 && (lost[1] - 0.4).abs() < 0.02, "{lost:?}");
}

#[test]
fn codel_keeps_the_delay_short_where_drop_tail_fills_its_queue() {
    let drop_tail = PipeConfig { capacity: rate(8), queue: QueueLimit::Packets(500), ..PipeConfig::default() };
    let codel = PipeConfig { discipline: Discipline::Codel(Codel::default()), ..drop_tail.clone() };
    let mean_wait = |config| {
        // A packet arrives every 909 µs and its transmission takes 1000 µs: 1.1 times the link's capacity, for 60 s.
        let (out, pipe) = run(config, 66_000, 909, 1);
        let settled = &out[out.len() / 2..];
        let waits = settled.iter().map(|(number, at)| (at - u64::from(*number) * 909) as f64 / 1e3);
        (waits.sum::<f64>() / settled.len() as f64, pipe.stats(us(60_000_000)))
    };
    let ((long, full), (short, controlled)) = (mean_wait(drop_tail), mean_wait(codel));
    assert!(long > 495.0, "{long} ms in a queue of 500 ms");
    assert!(short < 40.0, "{short} ms under a target of 5 ms");
    assert!(full.dropped_early == 0 && full.dropped_full > 0);
    assert!(controlled.dropped_early > 0 && controlled.dropped_full == 0);
    assert!(controlled.usage.mean_queue.expect("a queue") < full.usage.mean_queue.expect("a queue") / 10.0);
}

#[test]
fn codel_below_its_target_is_a_plain_queue() {
    let plain = PipeConfig { capacity: rate(8), queue: QueueLimit::Packets(5), ..PipeConfig::default() };
    let codel = PipeConfig { discipline: Discipline::Codel(Codel::default()), ..plain.clone() };
    let (expected, expected_stats) = run(plain, 200, 700, 1);
    let (out, pipe) = run(codel, 200, 700, 1);
    let stats = pipe.stats(us(200_000));
    assert_eq!(out, expected);
    assert_eq!((stats.dropped_full, stats.usage.longest_queue), {
        let plain = expected_stats.stats(us(200_000));
        (plain.dropped_full, plain.usage.longest_queue)
    });
}

#[test]
fn what_bypasses_takes_the_delay_only() {
    let config = PipeConfig {
        capacity: rate(8),
        delay: Span::from_millis(5).into(),
        loss: Loss::Random(Share::ALL).into(),
        ..PipeConfig::default()
    };
    let mut pipe = Pipe::new(config, At::ZERO, 1).expect("a path");
    pipe.enter(us(0), PACKET, 1u32);
    pipe.bypass(us(7), PACKET, 2);
    assert_eq!(pipe.next(), Some(us(5007)));
    assert_eq!(pipe.leave(At::MAX), Some((us(5007), 2)));
    assert_eq!((pipe.discarded(), pipe.discarded(), pipe.held()), (Some(1), None, Size::ZERO));
}

/// If this test fails, a packet on a path without delay leaves at the time at which it entered, which contradicts
/// `PipeConfig::least_delay`.
#[test]
fn what_bypasses_leaves_later_than_it_entered() {
    let config = PipeConfig::default();
    let least = config.least_delay();
    let mut pipe = Pipe::new(config, At::ZERO, 1).expect("a path");
    pipe.bypass(us(7), PACKET, 1u32);
    assert_eq!(pipe.leave(us(7)), None);
    assert_eq!(pipe.leave(At::MAX), Some((us(7) + least, 1)));
}

#[test]
fn impossible_paths_are_refused_by_name() {
    let refused = |config| Pipe::<SenderClock, u32>::new(config, At::ZERO, 1).expect_err("impossible");
    let base = PipeConfig::default;
    let negative = Span::from_millis(-1);
    assert!(matches!(
        refused(PipeConfig { delay: negative.into(), ..base() }),
        PipeError::Negative { what: "delay", .. }
    ));
    assert!(matches!(
        refused(PipeConfig { jitter: Jitter::Normal(negative), ..base() }),
        PipeError::Negative { what: "jitter", .. }
    ));
    assert!(matches!(
        refused(PipeConfig { queue: QueueLimit::Time(negative), ..base() }),
        PipeError::Negative { what: "queue's limit", .. }
    ));
    let codel = Discipline::Codel(Codel::default());
    let limit = QueueLimit::Time(Span::from_millis(50));
    assert!(matches!(refused(PipeConfig { queue: limit, discipline: codel, ..base() }), PipeError::TimeLimit { .. }));
    let zero = Discipline::Codel(Codel { interval: Span::ZERO, ..Codel::default() });
    assert!(matches!(
        refused(PipeConfig { discipline: zero, ..base() }),
        PipeError::Discipline { what: "interval", .. }
    ));
    let fq = FqCodel::default();
    let pie = Pie::default();
    for (discipline, named) in [
        // With each of these parameters, the queue would not work correctly, or would need too much memory or computing
        // time.
        (Discipline::FqCodel(FqCodel { quantum: Size::ZERO, ..fq }), "quantum"),
        (Discipline::FqCodel(FqCodel { flows: 0, ..fq }), "number of queues"),
        (Discipline::FqCodel(FqCodel { flows: u32::MAX, ..fq }), "number of queues"),
        (Discipline::Pie(Pie { update: Span::from_nanos(1), ..pie }), "update time"),
        (Discipline::DualPi2(DualPi2 { coupling: f64::NAN, ..DualPi2::default() }), "coupling"),
        (Discipline::DualPi2(DualPi2 { target: Span::from_nanos(1), ..DualPi2::default() }), "target"),
    ] {
        let error = refused(PipeConfig { discipline, ..base() });
        assert!(matches!(error, PipeError::Discipline { what, .. } if what == named), "{error}");
    }
    assert_eq!(refused(PipeConfig { capacity: rate(0), ..base() }), PipeError::Link(LinkError::RateEndsAtZero));
    let nothing = TokenBucket { rate: Rate::from_bps(1_000_000), burst: Size::ZERO };
    let error = refused(PipeConfig { policer: Some(nothing), ..base() });
    assert_eq!(
        error.to_string(),
        "a policer of 1 Mbit/s with bursts of 0 B is not allowed; give it a rate above zero and bursts of 1500 B \
         (a full packet) or more"
    );
    let still = TokenBucket { rate: Rate::ZERO, burst: PACKET + PACKET };
    let error = refused(PipeConfig { capacity: Capacity::Shaped(still), ..base() });
    assert!(matches!(error, PipeError::Bucket { who: "shaper", .. }), "{error}");
}

/// A packet whose ECN field and flow are derived from a number.
#[derive(Clone, Debug)]
struct Any(u64);

impl Queued for Any {
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.0 as u8)
    }

    fn flow(&self) -> u64 {
        self.0 / 4
    }
}

fn any_share() -> impl Strategy<Value = Share> {
    (0.0..=1.0f64).prop_map(share)
}

fn any_bucket() -> impl Strategy<Value = TokenBucket> {
    (1u64..100, 1500u64..20_000).prop_map(|(mbps, bytes)| TokenBucket {
        rate: Rate::from_bps(mbps * 1_000_000),
        burst: Size::from_bytes(bytes),
    })
}

fn any_config() -> impl Strategy<Value = PipeConfig> {
    let loss = prop_oneof![
        Just(Loss::None),
        any_share().prop_map(Loss::Random),
        (any_share(), any_share()).prop_map(|(p, r)| Loss::Burst(GilbertElliott::bursts(p, r))),
    ];
    let loss = (loss, any_share())
        .prop_map(|(loss, later)| Schedule::new(loss, vec![(Span::from_millis(30), Loss::Random(later))]));
    let trace = DeliveryTrace::parse("1\n1\n4\n9\n").expect("a trace");
    let capacity = prop_oneof![
        Just(Capacity::Unlimited),
        (1u64..100).prop_map(rate),
        (1u64..100).prop_map(|mbps| {
            let (fast, steps) = (Rate::from_bps(mbps * 1_000_000), [(20, 0), (40, mbps)]);
            let step = |(at, mbps): (i64, u64)| (Span::from_millis(at), Rate::from_bps(mbps * 1_000_000));
            Capacity::Rate(Schedule::new(fast, steps.map(step).to_vec()))
        }),
        (0i64..20).prop_map(move |ms| Capacity::Trace(trace.clone().from_offset(Span::from_millis(ms)))),
        any_bucket().prop_map(Capacity::Shaped),
    ];
    let queue = prop_oneof![
        (0u32..50).prop_map(|packets| (QueueLimit::Packets(packets), Discipline::DropTail)),
        (0u32..50, 0usize..4).prop_map(|(packets, which)| {
            let quick = Codel { target: Span::from_micros(100), interval: Span::from_millis(1) };
            let disciplines = [
                Discipline::Codel(Codel::default()),
                Discipline::FqCodel(FqCodel { codel: quick, flows: 3, ..FqCodel::default() }),
                Discipline::Pie(Pie {
                    target: Span::from_micros(500),
                    update: Span::from_millis(1),
                    burst: Span::ZERO,
                }),
                Discipline::DualPi2(DualPi2 { target: Span::from_micros(500), ..DualPi2::default() }),
            ];
            (QueueLimit::Packets(packets), disciplines[which])
        }),
        (0u64..50_000).prop_map(|bytes| {
            let codel = Codel { target: Span::from_micros(100), interval: Span::from_millis(1) };
            (QueueLimit::Bytes(Size::from_bytes(bytes)), Discipline::Codel(codel))
        }),
        (0i64..50).prop_map(|ms| (QueueLimit::Time(Span::from_millis(ms)), Discipline::DropTail)),
    ];
    let span = || (0i64..20_000).prop_map(Span::from_micros);
    let jitter = prop_oneof![
        Just(Jitter::None),
        span().prop_map(Jitter::Uniform),
        span().prop_map(Jitter::Normal),
        span().prop_map(Jitter::HalfNormal),
    ];
    let reordering = proptest::option::of(
        (any_share(), -20_000i64..20_000).prop_map(|(share, by)| Reordering { share, by: Span::from_micros(by) }),
    );
    let policer = proptest::option::of(any_bucket());
    let delay = (span(), proptest::collection::vec((span(), span()), 0..3))
        .prop_map(|(initial, steps)| Schedule::new(initial, steps));
    (loss, policer, any_share(), queue, capacity, delay, jitter, reordering).prop_map(
        |(loss, policer, duplication, (queue, discipline), capacity, delay, jitter, reordering)| PipeConfig {
            loss,
            policer,
            duplication,
            queue,
            discipline,
            capacity,
            delay,
            jitter,
            reordering,
        },
    )
}

proptest! {
    #[test]
    fn packets_are_conserved_whatever_the_path(
        config in any_config(),
        gaps in proptest::collection::vec((0u64..3000, 1u64..3000, 0u64..5000), 1..200),
        seed in any::<u64>(),
    ) {
        let mut pipe = Pipe::new(config.clone(), At::ZERO, seed).expect("a path");
        let (mut now, mut left, mut last, mut discarded) = (0, 0, At::ZERO, 0);
        for (gap, bytes, read_after) in &gaps {
            now += gap;
            pipe.enter(us(now), Size::from_bytes(*bytes), Any(*bytes));
            now += read_after;
            while let Some((at, _)) = pipe.leave(us(now)) {
                prop_assert!(at >= last && at <= us(now), "in the order of time, and not beyond the horizon");
                (last, left) = (at, left + 1);
            }
            while pipe.discarded().is_some() {
                discarded += 1;
            }
            let stats = pipe.stats(us(now));
            prop_assert_eq!(stats.lost + stats.dropped(), discarded);
            prop_assert_eq!((stats.left, stats.in_flight), (left, pipe.in_flight() as u64));
            prop_assert_eq!(stats.entered + stats.duplicated, left + discarded + stats.in_flight);
            if let Some(next) = pipe.next() {
                prop_assert!(next > us(now), "what is due has been taken");
            }
        }
        while pipe.leave(At::MAX).is_some() {}
        prop_assert_eq!((pipe.in_flight(), pipe.held(), pipe.next()), (0, Size::ZERO, None));
        let is_one_queue = !matches!(config.discipline, Discipline::FqCodel(_) | Discipline::DualPi2(_));
        if config.reordering.is_none() && is_one_queue {
            prop_assert_eq!(pipe.stats(us(now)).reordered, 0);
        }
    }

    /// If this test fails, `leave_before` returns packets in another order or at other times than `leave`.
    #[test]
    fn what_nothing_can_precede_any_more_comes_out_as_if_all_had_been_waited_for(
        config in any_config(),
        gaps in proptest::collection::vec((0u64..3000, 100u64..1500), 1..100),
        seed in any::<u64>(),
    ) {
        let pipe = || Pipe::new(config.clone(), At::ZERO, seed).expect("a path");
        let (mut waiting, mut eager) = (pipe(), pipe());
        let (mut all, mut early, mut now) = (Vec::new(), Vec::new(), 0);
        for (number, (gap, bytes)) in (0u32..).zip(&gaps) {
            now += gap;
            early.extend(core::iter::from_fn(|| eager.leave_before(us(now))));
            all.extend(core::iter::from_fn(|| waiting.leave(us(now))));
            for pipe in [&mut waiting, &mut eager] {
                pipe.enter(us(now), Size::from_bytes(*bytes), number);
            }
        }
        all.extend(core::iter::from_fn(|| waiting.leave(At::MAX)));
        early.extend(core::iter::from_fn(|| eager.leave(At::MAX)));
        prop_assert_eq!(early, all);
    }

    #[test]
    fn the_same_seed_gives_the_same_path(config in any_config(), seed in any::<u64>()) {
        prop_assert_eq!(run(config.clone(), 100, 300, seed).0, run(config, 100, 300, seed).0);
    }

    /// If this test fails, a packet can leave after less than `least_delay`, so a program that sleeps for this time
    /// would wake too late.
    #[test]
    fn no_packet_is_faster_than_the_least_delay(config in any_config(), seed in any::<u64>()) {
        let least = config.least_delay();
        for (number, at) in run(config, 100, 300, seed).0 {
            // Departure times are truncated to whole microseconds.
            prop_assert!(us(at + 1) - us(u64::from(number) * 300) > least);
        }
    }

    /// If this test fails, the result depends on how often the caller polls the path.
    #[test]
    fn it_does_not_matter_when_one_looks(config in any_config(), seed in any::<u64>()) {
        let (often, _) = run(config.clone(), 100, 300, seed);
        let mut pipe = Pipe::new(config, At::ZERO, seed).expect("a path");
        for number in 0..100u32 {
            pipe.enter(us(u64::from(number) * 300), PACKET, number);
        }
        let mut once = vec![];
        while let Some((at, packet)) = pipe.leave(At::MAX) {
            once.push((packet, at.as_nanos() / 1000));
        }
        prop_assert_eq!(once, often);
    }
}
