//! Tests of queues under load that does not respond to congestion.

use alloc::vec::Vec;

use super::*;
use crate::link::impairment::Chance;
use crate::link::service::RateService;
use equipoise::units::{Rate, Schedule, SenderClock};

type At = Instant<SenderClock>;

/// Size of every packet; its transmission takes 1 ms.
const PACKET: Size = Size::from_bytes(1000);
const ROOM: QueueLimit = QueueLimit::Packets(10_000);

#[derive(Clone, Copy, Debug)]
struct Packet {
    ecn: Ecn,
    flow: u64,
    sent: At,
}

impl Queued for Packet {
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark(&mut self) {
        self.ecn = Ecn::Marked;
    }

    fn flow(&self) -> u64 {
        self.flow
    }
}

/// The drops and marks of a queue in a test.
#[derive(Default)]
struct Log {
    now: f64,
    /// Times since the start at which the queue dropped packets to signal congestion, in s.
    drops: Vec<f64>,
    full: usize,
    marks: usize,
    dropped: Vec<u64>,
}

impl Told<Packet> for Log {
    fn dropped(&mut self, packet: Packet, why: Drop) {
        match why {
            Drop::Full => self.full += 1,
            Drop::Early => self.drops.push(self.now),
        }
        self.dropped.push(packet.flow);
    }

    fn marked(&mut self) {
        self.marks += 1;
    }
}

type Queue = ManagedQueue<SenderClock, Packet, RateService<SenderClock>>;

fn service() -> RateService<SenderClock> {
    RateService::new(Schedule::constant(Rate::from_bps(8_000_000)), At::ZERO).expect("above zero")
}

fn codel() -> Queue {
    ManagedQueue::codel(service(), ROOM, Codel::default(), At::ZERO)
}

fn chance() -> Chance {
    Chance::new(1, 4)
}

/// A source that sends one packet every `gap_us` microseconds.
#[derive(Clone, Copy)]
struct Source {
    gap_us: u64,
    ecn: Ecn,
    flow: u64,
}

const fn every(gap_us: u64) -> Source {
    Source { gap_us, ecn: Ecn::NotCapable, flow: 0 }
}

/// For each packet that the queue sent: the start of its transmission in s, its waiting time in ms, and the packet.
type Out = Vec<(f64, f64, Packet)>;

/// Sends the packets of all sources through the queue for `seconds`. Returns the packets that the queue sent, and the
/// log.
fn run(mut queue: Queue, sources: &[Source], seconds: u64) -> (Out, Log) {
    let (mut out, mut log) = (Vec::new(), Log::default());
    let times =
        |source: &Source| (0..seconds * 1_000_000 / source.gap_us).map(|at| at * source.gap_us).collect::<Vec<_>>();
    let mut all: Vec<_> = sources.iter().flat_map(|source| times(source).into_iter().map(|at| (at, *source))).collect();
    all.sort_by_key(|(at, source)| (*at, source.flow));
    for (at, Source { ecn, flow, .. }) in all {
        let now = At::from_nanos(at * 1000);
        while let Some(at) = queue.next().filter(|at| *at <= now) {
            log.now = at.as_nanos() as f64 / 1e9;
            if let Some((_, packet)) = queue.take(now, &mut log) {
                out.push((log.now, (at - packet.sent).as_millis_f64(), packet));
            }
        }
        log.now = now.as_nanos() as f64 / 1e9;
        queue.offer(now, PACKET, Packet { ecn, flow, sent: now }, &mut log);
    }
    (out, log)
}

/// The mean waiting time in ms of a flow's packets in the second half of the run.
fn settled(out: &Out, flow: u64) -> f64 {
    let end = out.last().map_or(0.0, |(at, ..)| *at);
    let waits: Vec<_> =
        out.iter().filter(|(at, _, packet)| *at > end / 2.0 && packet.flow == flow).map(|(_, wait, _)| *wait).collect();
    waits.iter().sum::<f64>() / waits.len() as f64
}

#[test]
fn below_the_link_s_rate_codel_drops_nothing() {
    assert!(run(codel(), &[every(1010)], 20).1.drops.is_empty());
}

#[test]
fn codel_s_first_drop_comes_an_interval_after_the_delay_has_passed_the_target() {
    // Each packet waits 0.1 ms longer than the previous packet. The delay exceeds the target of 5 ms from about 51 ms
    // on, so the first drop is due an interval of 100 ms later, at about 151 ms.
    let first = run(codel(), &[every(900)], 2).1.drops[0];
    assert!((0.150..0.170).contains(&first), "{first}");
}

#[test]
fn codel_s_drops_come_closer_by_the_inverse_square_root_of_their_count() {
    let drops = run(codel(), &[every(900)], 2).1.drops;
    assert!(drops.len() > 30, "{}", drops.len());
    // RFC 8289, Sec. 5.6: after the n-th drop, the next drop is due 100 ms / √n later. The packet is dropped when the
    // next transmission begins, up to 1 ms after the drop is due.
    let mut expected = drops[0];
    for (n, drop) in (1u32..).zip(&drops) {
        assert!((drop - expected).abs() < 0.0021, "drop {n} at {drop}, not at {expected}");
        expected += 0.1 / f64::from(n).sqrt();
    }
}

/// CoDel marks ECN-capable packets as often as it drops other packets.
#[test]
fn codel_marks_as_often_as_it_would_drop() {
    let marked = Source { ecn: Ecn::Ect0, ..every(1010) };
    let brief = Source { gap_us: 500_000, flow: 1, ..every(0) };
    assert_eq!(run(codel(), &[marked], 5).1.marks, 0);
    let (out, log) = run(codel(), &[Source { gap_us: 900, ..marked }], 2);
    let drops = run(codel(), &[every(900)], 2).1.drops;
    assert!(log.drops.is_empty() && log.marks.abs_diff(drops.len()) <= 2, "{} marks, {} drops", log.marks, drops.len());
    assert_eq!(out.iter().filter(|(.., packet)| packet.ecn == Ecn::Marked).count(), log.marks);
    // A packet that already carries a mark is not counted as marked by this queue.
    assert_eq!(run(codel(), &[Source { ecn: Ecn::Marked, ..every(900) }, brief], 2).1.marks, 0);
}

#[test]
fn codel_sheds_an_overload_of_a_tenth_and_leaves_no_standing_queue() {
    let (out, log) = run(codel(), &[every(909)], 60);
    // With traffic that does not respond to drops, CoDel's delay oscillates around the target. Without CoDel, 3000
    // packets would be queued by the middle of the run, which is a delay of 3 s.
    assert!(settled(&out, 0) < 40.0, "{} ms", settled(&out, 0));
    assert!(
        out[out.len() / 2..].iter().any(|(_, wait, _)| *wait < 5.0),
        "the delay comes below the target again and again"
    );
    let shed = log.drops.len() as f64 / (out.len() + log.drops.len()) as f64;
    assert!((shed - 1.0 / 11.0).abs() < 0.01, "{shed}");
}

/// A PI controller has no error in steady state: PIE drops exactly the excess packets, and the delay is the target.
#[test]
fn pie_sheds_what_is_too_much_and_holds_its_target() {
    let pie = || ManagedQueue::pie(service(), ROOM, (Pie::default(), chance()), At::ZERO);
    let (out, log) = run(pie(), &[every(909)], 200);
    let shed = log.drops.iter().filter(|at| **at > 100.0).count() as f64 / (100.0 / 909e-6);
    assert!((shed - 1.0 / 11.0).abs() < 0.004, "{shed}");
    assert!((settled(&out, 0) - 15.0).abs() < 1.5, "{} ms", settled(&out, 0));
    assert_eq!((log.full, log.marks), (0, 0));
    // While the drop probability is below 0.1, PIE marks packets instead of dropping them. This load ignores marks, so
    // the probability rises to about 0.1 and PIE also drops some packets.
    let (_, log) = run(pie(), &[Source { ecn: Ecn::Ect0, ..every(990) }], 100);
    assert!(log.marks > 500 && log.drops.len() < log.marks / 5, "{} marks, {} drops", log.marks, log.drops.len());
    assert!(run(pie(), &[every(1010)], 20).1.drops.is_empty(), "nothing below the link's rate");
}

/// If this test fails, a queue drops packets after an hour without packets, or computes all updates of its probability
/// in this hour one by one.
#[test]
fn a_long_silence_is_no_work() {
    let hour = Source { gap_us: 3_600_000_000, ..every(1) };
    for queue in [
        ManagedQueue::pie(service(), ROOM, (Pie::default(), chance()), At::ZERO),
        ManagedQueue::dual_pi2(service(), ROOM, DualPi2::default(), At::ZERO),
    ] {
        assert_eq!(run(queue, &[hour], 3600 * 24 * 30).1.drops.len(), 0);
    }
}

#[test]
fn flows_share_a_link_equally_and_one_that_needs_little_does_not_wait() {
    let fq = || ManagedQueue::fq_codel(service(), ROOM, (FqCodel::default(), chance()), At::ZERO);
    let sources =
        [Source { flow: 1, ..every(700) }, Source { flow: 2, ..every(1400) }, Source { flow: 3, ..every(20_000) }];
    let (out, log) = run(fq(), &sources, 60);
    let count = |flow| out.iter().filter(|(at, _, packet)| *at > 30.0 && packet.flow == flow).count() as f64;
    // Flows 1 and 2 each get half of the capacity that flow 3 does not use, although flow 1 sends twice as much as flow
    // 2.
    for flow in [1, 2] {
        assert!((count(flow) / 30.0 - 475.0).abs() < 10.0, "flow {flow}: {} a second", count(flow) / 30.0);
    }
    assert!((count(3) / 30.0 - 50.0).abs() < 1.0);
    // A packet of flow 3 waits until the packet in transmission is sent. If flow 3 is still in the list of old flows
    // when its packet arrives, the packet also waits until flows 1 and 2 have each sent the 1500 bytes of their turn.
    let longest = out.iter().filter(|(.., packet)| packet.flow == 3).map(|(_, wait, _)| *wait).fold(0.0, f64::max);
    assert!(longest <= 5.0, "{longest} ms");
    assert!(settled(&out, 3) < 1.5, "{} ms", settled(&out, 3));
    assert!(!log.dropped.contains(&3));
}

#[test]
fn where_flows_are_too_long_together_the_longest_gives_way() {
    let limit = QueueLimit::Packets(100);
    let queue = ManagedQueue::fq_codel(service(), limit, (FqCodel::default(), chance()), At::ZERO);
    // Flow 1 sends ten times as much as the link can transmit.
    let (_, log) = run(queue, &[Source { flow: 1, ..every(100) }, Source { flow: 2, ..every(5000) }], 1);
    assert!(log.full > 5000, "{}", log.full);
    assert!(log.dropped.iter().all(|flow| *flow == 1), "it alone is too long");
}

#[test]
fn dual_pi2_holds_the_classic_queue_and_couples_the_other_one_by_the_square_root() {
    let dual = || ManagedQueue::dual_pi2(service(), ROOM, DualPi2::default(), At::ZERO);
    let classic = Source { flow: 1, ..every(1000) };
    let little = Source { flow: 2, ecn: Ecn::Ect1, ..every(20_000) };
    let (out, log) = run(dual(), &[classic, little], 200);
    assert!((settled(&out, 1) - 15.0).abs() < 1.5, "{} ms", settled(&out, 1));
    // A packet of flow 2 waits at most for the packet in transmission and for one packet of the classic queue.
    assert!(settled(&out, 2) < 2.0, "{} ms", settled(&out, 2));
    let dropped = log.drops.iter().filter(|at| **at > 100.0).count() as f64 / 100_000.0;
    let (mut marked, mut all) = (0.0, 0.0);
    for (_, _, packet) in out.iter().filter(|(at, _, packet)| *at > 100.0 && packet.flow == 2) {
        all += 1.0;
        marked += f64::from(u8::from(packet.ecn == Ecn::Marked));
    }
    // RFC 9332, Sec. 2.1, Eq. 1: the classic queue's drop probability is (p / 2)², where p is the low-latency queue's
    // marking probability.
    assert!((dropped - 0.05).abs() < 0.003, "{dropped}: five in a hundred are too many");
    assert!((marked / all - 2.0 * dropped.sqrt()).abs() < 0.03, "{} of {}", marked / all, 2.0 * dropped.sqrt());
}

/// The traffic is ECN-capable (L4S) but ignores marks. Therefore the low-latency queue must drop the excess packets,
/// and keep the delay at the target of the classic queue.
#[test]
fn dual_pi2_sheds_what_does_not_yield_to_marks() {
    let dual = ManagedQueue::dual_pi2(service(), ROOM, DualPi2::default(), At::ZERO);
    let (out, log) = run(dual, &[Source { ecn: Ecn::Ect1, ..every(500) }], 100);
    let shed = log.drops.iter().filter(|at| **at > 50.0).count() as f64 / 100_000.0;
    assert!((shed - 0.5).abs() < 0.02, "{shed}");
    assert!((settled(&out, 0) - 15.0).abs() < 2.0, "{} ms", settled(&out, 0));
    let marked = out.iter().filter(|(at, _, packet)| *at > 50.0 && packet.ecn != Ecn::Marked).count();
    assert_eq!(marked, 0, "all that is left is marked");
}

#[test]
fn below_the_thresholds_dual_pi2_marks_nothing_and_above_them_all_that_waits() {
    let dual = || ManagedQueue::dual_pi2(service(), ROOM, DualPi2::default(), At::ZERO);
    assert_eq!(run(dual(), &[Source { ecn: Ecn::Ect1, ..every(1000) }], 10).1.marks, 0);
    // Every 4 ms three packets arrive together. They wait 0, 1 and 2 ms. The third packet is not marked for its delay,
    // because no packet is queued behind it.
    let burst = [0, 1, 2].map(|flow| Source { flow, ecn: Ecn::Ect1, ..every(4000) });
    let (out, log) = run(dual(), &burst, 10);
    assert_eq!(log.marks, out.iter().filter(|(.., packet)| packet.ecn == Ecn::Marked).count());
    let in_the_middle = |wait: f64| (wait - 1.0).abs() < 1e-6;
    let others = out.iter().filter(|(_, wait, packet)| packet.ecn == Ecn::Marked && !in_the_middle(*wait)).count();
    // At every fourth update of the base probability, the delay has risen from 0 to 2 ms. This raises the base
    // probability to 0.004 for 15 ms, so a few packets that waited 0 or 2 ms are marked.
    assert!(others * 50 < log.marks, "{others} of {}", log.marks);
    // A delay of 1 ms is in the middle of the ramp from 0.8 to 1.2 ms, so half of the packets with this delay are
    // marked.
    assert!((log.marks as f64 / 2500.0 - 0.5).abs() < 0.01, "{}", log.marks);
}

#[test]
fn the_two_bits_are_those_of_the_header() {
    assert_eq!([Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0, Ecn::Marked].map(Ecn::bits), [0b00, 0b01, 0b10, 0b11]);
    assert!((0..=255).all(|field: u8| Ecn::from_bits(field).bits() == field & 3));
}
