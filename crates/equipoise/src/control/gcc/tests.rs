//! Tests of the complete Google congestion control, over a simulated path with a queue and a delay.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::{Gcc, GccConfig, GccForm, GccProbing};
use crate::control::{Controller, Ecn, Fate, Feedback, PacketFeedback, PacketReport, RateLimits, Reason, SentPacket};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

const PACKET: Size = Size::from_bytes(1200);
const FORMS: [GccForm; 2] = [GccForm::Libwebrtc, GccForm::Draft];

fn at(micros: u64) -> Instant<SenderClock> {
    Instant::from_nanos(micros * 1000)
}

fn limits() -> RateLimits {
    RateLimits::within(Rate::from_bps(30_000), Rate::from_bps(20_000_000)).starting_at(Rate::from_bps(300_000))
}

fn gcc(form: GccForm) -> Gcc {
    Gcc::new(GccConfig { form, ..GccConfig::new(limits()) })
}

fn bps(gcc: &Gcc) -> u64 {
    gcc.allowance().rate.expect("a rate").as_bps()
}

/// A simulated link with a queue of 300 ms. The delay is 20 ms in each direction. The receiver reports every 50 ms. The
/// sender sends at the allowed rate, or at `application_bps` if that is lower, and sends probes if `sends_probes`.
struct Path {
    gcc: Gcc,
    capacity_bps: f64,
    /// Every `lost`-th packet is lost.
    lost: u64,
    application_bps: f64,
    sends_probes: bool,
    now_us: u64,
    number: u64,
    /// The link is free from the time `free_us` on. The next packet and the next report are due at the times
    /// `next_send_us` and `next_report_us`. All are in µs.
    free_us: f64,
    next_send_us: f64,
    next_report_us: u64,
    under_way: VecDeque<PacketReport>,
    /// The longest wait of a packet in the queue so far in the current run, in ms.
    longest_wait_ms: f64,
    arrived: u64,
}

impl Path {
    fn new(form: GccForm, capacity_bps: f64) -> Self {
        Self {
            gcc: gcc(form),
            capacity_bps,
            lost: u64::MAX,
            application_bps: f64::INFINITY,
            sends_probes: false,
            now_us: 0,
            number: 0,
            free_us: 0.0,
            next_send_us: 0.0,
            next_report_us: 50_000,
            under_way: VecDeque::new(),
            longest_wait_ms: 0.0,
            arrived: 0,
        }
    }

    fn send(&mut self) {
        let (now, now_us) = (at(self.now_us), self.now_us as f64);
        let wait_us = (self.free_us - now_us).max(0.0);
        let is_lost = wait_us > 300e3 || self.number % self.lost == self.lost - 1;
        let fate = if is_lost {
            Fate::Lost
        } else {
            self.free_us = now_us + wait_us + PACKET.as_bits() as f64 / self.capacity_bps * 1e6;
            let at = Some(at(self.free_us as u64 + 20_000).assume_clock());
            self.longest_wait_ms = self.longest_wait_ms.max(wait_us / 1e3);
            Fate::Arrived { at, ecn: Ecn::NotEct }
        };
        self.under_way.push_back(PacketReport::new(self.number, PACKET, now, fate));
        let probe = self.gcc.wanted_probe().filter(|_| self.sends_probes);
        let packet = SentPacket::new(self.number, PACKET, Size::ZERO);
        self.gcc.on_sent(now, &probe.map_or(packet, |probe| packet.of_probe(probe.number)));
        self.number += 1;
        let rate = (bps(&self.gcc) as f64).min(self.application_bps);
        let rate = probe.map_or(rate, |probe| probe.rate.as_bps_f64());
        self.next_send_us = now_us + PACKET.as_bits() as f64 / rate * 1e6;
    }

    fn report(&mut self) {
        self.next_report_us += 50_000;
        // A report covers the packets that arrived at least 20 ms ago. A report also covers the lost packets between
        // these packets and directly after them.
        let known = |packet: &PacketReport| match packet.fate {
            Fate::Arrived { at: Some(arrived), .. } => arrived.as_nanos() / 1000 + 20_000 <= self.now_us,
            _ => true,
        };
        let count = self.under_way.iter().take_while(|packet| known(packet)).count();
        let packets: Vec<_> = self.under_way.drain(..count).collect();
        self.arrived += packets.iter().filter(|packet| packet.fate != Fate::Lost).count() as u64;
        let mut feedback = PacketFeedback::new(&packets, Size::ZERO);
        feedback.round_trip = packets.last().map(|packet| at(self.now_us) - packet.departed);
        self.gcc.on_feedback(at(self.now_us), &Feedback::Packets(&feedback));
    }

    /// Simulates `seconds` of time. Returns the allowed rate at the end in kbit/s.
    fn run(&mut self, seconds: u64) -> f64 {
        let end_us = self.now_us + seconds * 1_000_000;
        (self.longest_wait_ms, self.arrived) = (0.0, 0);
        while self.now_us < end_us {
            if (self.next_send_us as u64) < self.next_report_us {
                self.now_us = self.next_send_us as u64;
                self.send();
            } else {
                self.now_us = self.next_report_us;
                self.report();
            }
            if let Some(due) = self.gcc.next_timer().filter(|due| *due <= at(self.now_us)) {
                self.gcc.on_timer(at(self.now_us));
                assert!(self.gcc.next_timer().is_none_or(|next| next > due), "a timer that does not move on");
            }
        }
        bps(&self.gcc) as f64 / 1e3
    }

    /// Returns the share of the capacity that was used in the last run, which lasted `seconds`.
    fn utilisation(&self, seconds: u64) -> f64 {
        self.arrived as f64 * PACKET.as_bits() as f64 / seconds as f64 / self.capacity_bps
    }
}

#[test]
fn it_finds_a_link_and_keeps_its_queue_short() {
    for form in FORMS {
        let mut path = Path::new(form, 2e6);
        path.run(60);
        path.run(60);
        let (used, wait) = (path.utilisation(60), path.longest_wait_ms);
        assert!((0.75..=1.0).contains(&used), "{form:?}: {used}");
        assert!(wait < 250.0, "{form:?}: {wait} ms");
    }
}

/// If this test fails, the rate stays above a capacity that became lower, and the queue stays full.
#[test]
fn a_link_that_shrinks_is_followed_within_seconds() {
    for form in FORMS {
        let mut path = Path::new(form, 2e6);
        path.run(60);
        path.capacity_bps = 0.8e6;
        path.run(5);
        path.run(20);
        assert!(path.utilisation(20) > 0.6 && path.longest_wait_ms < 300.0, "{form:?}: {}", path.longest_wait_ms);
        assert!(bps(&path.gcc) < 1_000_000, "{form:?}: {}", bps(&path.gcc));
    }
}

/// The first two probes raise the rate to up to 6 times the first rate. Each further probe can double the rate. Without
/// probes, growth by 8 % per second takes 37 s from 300 kbit/s to 5 Mbit/s.
#[test]
fn probes_find_a_wide_link_in_a_second_or_two() {
    let mut path = Path::new(GccForm::Libwebrtc, 10e6);
    path.sends_probes = true;
    let found = path.run(2);
    assert!(found > 5000.0, "{found} kbit/s");
    let slow = Path::new(GccForm::Libwebrtc, 10e6).run(2);
    assert!(slow < 500.0, "{slow} kbit/s");
}

#[test]
fn an_application_that_sends_little_does_not_raise_the_rate_beyond_what_arrives_proves() {
    let mut path = Path::new(GccForm::Libwebrtc, 10e6);
    path.application_bps = 400e3;
    let found = path.run(60);
    assert!((590.0..=615.0).contains(&found), "1.5 times 400 kbit/s and 10 kbit/s: {found}");
}

/// One packet in 60, 1.7 %, is lost: libwebrtc's form treats this as inherent loss, and the draft's form raises its
/// rate or keeps it.
#[test]
fn a_little_random_loss_leaves_the_rate() {
    for form in FORMS {
        let mut path = Path::new(form, 2e6);
        path.lost = 60;
        path.run(60);
        path.run(60);
        assert!(path.utilisation(60) > 0.7, "{form:?}: {}", path.utilisation(60));
    }
}

#[test]
fn a_third_of_losses_brings_it_down() {
    for form in FORMS {
        let mut path = Path::new(form, 2e6);
        path.run(60);
        let before = bps(&path.gcc);
        path.lost = 3;
        let after = path.run(20) * 1e3;
        assert!(after < 0.6 * before as f64, "{form:?}: {before} to {after}");
    }
}

#[test]
fn silence_lowers_the_rate_step_by_step_to_its_limit() {
    for form in FORMS {
        let mut gcc = gcc(form);
        let silent = Feedback::Silent { reports: 3 };
        gcc.on_feedback(at(0), &silent);
        assert_eq!((bps(&gcc), gcc.snapshot().reason), (240_000, Some(Reason::ReportsMissing)));
        gcc.on_feedback(at(1), &Feedback::TimedOut { in_flight: Size::ZERO });
        assert_eq!(bps(&gcc), 192_000);
        (0..40).for_each(|micros| gcc.on_feedback(at(micros), &silent));
        assert_eq!((bps(&gcc), gcc.snapshot().reason), (30_000, Some(Reason::ReportsMissing)));
    }
}

/// Packets leave for a minute without feedback. The rate must never rise, and must fall to the lowest rate.
#[test]
fn without_feedback_nothing_rises_and_the_round_trip_back_off_lowers_the_rate() {
    for form in FORMS {
        let mut gcc = gcc(form);
        for number in 0..6000u64 {
            let before = bps(&gcc);
            let now = at(number * 10_000);
            gcc.on_sent(now, &SentPacket::new(number, PACKET, Size::ZERO));
            gcc.on_timer(now);
            assert!(bps(&gcc) <= before);
        }
        assert_eq!(bps(&gcc), 30_000, "{form:?}");
    }
}

/// If this test fails, reports without arrival times raise the rate, although they prove no delivery rate.
#[test]
fn feedback_without_arrival_times_never_raises() {
    for form in FORMS {
        let mut gcc = gcc(form);
        for round in 0..200u64 {
            let fate = Fate::Arrived { at: None, ecn: Ecn::NotEct };
            let packets: Vec<_> =
                (0..10).map(|n| PacketReport::new(10 * round + n, PACKET, at(100_000 * round + n), fate)).collect();
            let before = bps(&gcc);
            gcc.on_feedback(at(100_000 * (round + 1)), &Feedback::Packets(&PacketFeedback::new(&packets, Size::ZERO)));
            assert!(bps(&gcc) <= before, "{form:?}");
            gcc.on_feedback(at(100_000 * (round + 1)), &Feedback::Packets(&PacketFeedback::new(&[], Size::ZERO)));
            assert!(bps(&gcc) <= before, "{form:?}");
        }
    }
}

#[test]
fn the_draft_wants_no_probe_and_libwebrtc_wants_one_unless_it_is_off() {
    let wanted = |form, probing| {
        let mut gcc = Gcc::new(GccConfig { form, probing, ..GccConfig::new(limits()) });
        gcc.on_sent(at(0), &SentPacket::new(0, PACKET, Size::ZERO));
        gcc.wanted_probe().map(|probe| probe.rate.as_bps())
    };
    assert_eq!(wanted(GccForm::Libwebrtc, GccProbing::On), Some(900_000));
    assert_eq!(wanted(GccForm::Libwebrtc, GccProbing::Off), None);
    assert_eq!(wanted(GccForm::Draft, GccProbing::On), None);
}

#[derive(Clone, Debug)]
struct Step {
    after_us: u64,
    packets: Vec<(u64, u64, u64, u8)>,
    round_trip_us: Option<i64>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let time = prop_oneof![0u64..3_000_000, any::<u64>().prop_map(|time| time / 1000)];
    let packet = (0u64..500, time.clone(), time, 0..4u8);
    let step = (0u64..5_000_000, prop::collection::vec(packet, 0..30), prop::option::of(any::<i64>()));
    let step = step.prop_map(|(after_us, packets, round_trip_us)| Step { after_us, packets, round_trip_us });
    prop::collection::vec(step, 1..60)
}

/// In the form of libwebrtc, the pace is the start rate, 300 kbit/s, times the configured factor. A factor below 1 is
/// replaced by 1, and NaN is replaced by 1.1. In the form of the draft, the controller sets no pace.
#[test]
fn packets_leave_as_much_faster_as_is_set_and_by_the_session_in_the_drafts_form() {
    let pace = |form, pacing| {
        let gcc = Gcc::new(GccConfig { form, pacing, ..GccConfig::new(limits()) });
        gcc.allowance().pace.map(Rate::as_bps)
    };
    let found = [GccConfig::PACING, 100.0, 0.1, f64::NAN].map(|pacing| pace(GccForm::Libwebrtc, pacing));
    assert_eq!(found, [Some(330_000), Some(30_000_000), Some(300_000), Some(330_000)]);
    assert_eq!(pace(GccForm::Draft, 100.0), None);
}

proptest! {
    /// For any numbers, sizes and times, even invalid ones, the rate stays within its limits, and the next timer is
    /// later than now.
    #[test]
    fn whatever_is_told_the_rate_stays_between_its_limits(steps in steps(), draft in any::<bool>()) {
        let mut gcc = gcc(if draft { GccForm::Draft } else { GccForm::Libwebrtc });
        let mut now_us = 0;
        for step in steps {
            now_us += step.after_us;
            let packets: Vec<_> = step.packets.iter().map(|(number, departed, arrived, fate)| {
                let arrived = (*fate < 2).then_some(at(*arrived).assume_clock());
                let fate = if *fate == 3 { Fate::Lost } else { Fate::Arrived { at: arrived, ecn: Ecn::NotEct } };
                PacketReport::new(*number, Size::from_bytes(*number * 97), at(*departed), fate)
            }).collect();
            let mut feedback = PacketFeedback::new(&packets, Size::ZERO);
            feedback.round_trip = step.round_trip_us.map(Span::from_micros);
            gcc.on_sent(at(now_us), &SentPacket::new(now_us, PACKET, Size::ZERO));
            gcc.on_feedback(at(now_us), &Feedback::Packets(&feedback));
            gcc.on_timer(at(now_us));
            prop_assert!((30_000..=20_000_000).contains(&bps(&gcc)));
            prop_assert!(gcc.next_timer().is_none_or(|next| next > at(now_us)));
        }
    }

    /// Feedback in which all packets are lost never raises the rate.
    #[test]
    fn losses_alone_never_raise(rounds in prop::collection::vec((1u64..500_000, 1u64..40), 1..60), draft in any::<bool>()) {
        let mut gcc = gcc(if draft { GccForm::Draft } else { GccForm::Libwebrtc });
        let (mut now_us, mut number) = (0, 0);
        for (after_us, count) in rounds {
            now_us += after_us;
            let packets: Vec<_> =
                (0..count).map(|n| PacketReport::new(number + n, PACKET, at(now_us + n), Fate::Lost)).collect();
            number += count;
            let before = bps(&gcc);
            gcc.on_feedback(at(now_us), &Feedback::Packets(&PacketFeedback::new(&packets, Size::ZERO)));
            prop_assert!(bps(&gcc) <= before);
        }
    }
}
