use std::time::{Duration, Instant as Clock};

use equipoise::control::{Fate, PacketFeedback};
use equipoise::random;
use equipoise::units::{Instant, SenderClock, Size};
use rand_core::Rng as _;
use rtc_interceptor::{BandwidthEstimator as _, Gcc};

use super::path::{Conditions, FROM, Leader, MAX_BPS, Path, Peer, Point, START_BPS};
use super::pion::{Pion, Recorded, Said, build, recorded_link};
use super::{distance, run};

/// Minimum rate of our controller and of the other implementations, in bit/s. The value is the minimum rate of pion's
/// loss rule, because this minimum cannot be configured.
pub(super) const MIN_BPS: i64 = 100_000;
const OURS: &[(&str, &str)] = &[("form", "draft"), ("min_rate", "100 kbit/s")];
const SECONDS: i64 = 60;

/// The controller of the crate `rtc-interceptor`.
struct Rtc {
    estimator: Gcc,
    began: Clock,
}

impl Rtc {
    fn new() -> Self {
        Self { estimator: Gcc::new(START_BPS as f64, MIN_BPS as f64, MAX_BPS as f64), began: Clock::now() }
    }

    fn at(&self, instant: Instant<SenderClock>) -> Clock {
        self.began + Duration::from_nanos((instant - FROM).as_nanos() as u64)
    }
}

impl Peer for Rtc {
    fn on_sent(&mut self, _now: Instant<SenderClock>, _number: u64, _size: Size) {}

    #[expect(clippy::default_trait_access, reason = "the type of `ecn` has no name among the crate's")]
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) -> Option<f64> {
        let reports = feedback.packets.iter().map(|packet| {
            let arrival = match packet.fate {
                Fate::Arrived { at: Some(at), .. } => Some(Duration::from_nanos(at.as_nanos())),
                _ => None,
            };
            rtc_interceptor::PacketReport {
                ssrc: 1,
                id: packet.number,
                rtp_sequence_number: packet.number as u16,
                is_twcc: true,
                twcc_sequence_number: packet.number as u16,
                size: packet.size.as_bytes() as usize,
                arrived: arrival.is_some(),
                departure: self.at(packet.departed),
                arrival,
                ecn: Default::default(),
            }
        });
        let reports: Vec<_> = reports.collect();
        self.estimator.on_reports(self.at(now), &reports);
        Some(self.estimator.target_bitrate())
    }
}

fn random_path(seed: u64) -> Conditions {
    let mut random = random::generator(seed, 1);
    let mut between =
        |least: f64, most: f64| least + (most - least) * (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut changes = Vec::new();
    let mut seconds = 0.0;
    while seconds < SECONDS as f64 {
        changes.push((seconds, 0.4e6 * between(0.0, 10f64.ln()).exp()));
        seconds += between(5.0, 20.0);
    }
    Conditions { changes, jitter_ms: between(0.0, 5.0), loss: between(-0.03, 0.03).max(0.0), seed, ..Conditions::new() }
}

/// Returns the paths. Each has a name, its conditions, and the maximum distance between pion's rate and our rate while
/// the sender follows pion's rate. The distance is the mean of |ln(ours/theirs)|.
fn paths() -> Vec<(&'static str, Conditions, f64)> {
    let steady = |mbps: f64| Conditions { capacity_bps: mbps * 1e6, ..Conditions::new() };
    let changing = |bps: f64| Conditions { changes: vec![(30.0, bps)], ..Conditions::new() };
    let lossy = |loss: f64| Conditions { loss, seed: 7, ..Conditions::new() };
    vec![
        ("steady 0.5", steady(0.5), 0.05),
        ("steady 2", steady(2.0), 0.35),
        ("steady 4", steady(4.0), 0.35),
        ("drop", changing(0.6e6), 0.15),
        ("rise", changing(4e6), 0.35),
        ("jitter", Conditions { jitter_ms: 4.0, ..Conditions::new() }, 0.2),
        ("loss 0.01", lossy(0.01), 0.4),
        ("loss 0.05", lossy(0.05), 0.4),
        ("loss 0.15", lossy(0.15), 0.2),
        ("random 1", random_path(1), 0.15),
        ("random 2", random_path(2), 0.2),
        ("random 3", random_path(3), 0.15),
    ]
}

fn beside(theirs: Box<dyn Peer>, conditions: Conditions, leader: Leader) -> Vec<Point> {
    run(Path::new(conditions, OURS, theirs, leader), SECONDS)
}

#[test]
fn beside_pion_both_say_about_the_same() {
    for (name, conditions, most) in paths() {
        let (mean, apart) = distance(&beside(Box::new(Recorded::of(name)), conditions, Leader::Theirs));
        println!("pion, {name}: {mean:.3} on average, {apart:.3} of the points apart");
        assert!(mean <= most, "{name}: {mean}, where {most} is the most");
    }
}

/// If this test fails, pion's version or a path has changed: pion's current output, in `target/tmp/pion.txt`, differs
/// from the recorded output.
#[test]
fn what_pion_said_is_what_it_says() {
    let Some(program) = build() else { return };
    let head = "# Targets in bit/s after each report, by pion/interceptor v0.1.51, pkg/gcc (bench/peers/gcc):\n\
                # EQUIPOISE_GO=go cargo test -p equipoise --test it gcc::draft, which writes pion.txt into target/tmp\n";
    let mut text = String::from(head);
    for (name, conditions, _) in paths() {
        let said = Said::default();
        beside(Box::new(Pion::start(&program, said.clone())), conditions, Leader::Theirs);
        let targets: Vec<_> = said.borrow().iter().map(u64::to_string).collect();
        text.push_str(&format!("{name}: {}\n", targets.join(" ")));
    }
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pion.txt");
    std::fs::write(&file, &text).expect("writable");
    assert!(text == include_str!("pion.txt"), "{} is another text than tests/it/gcc/pion.txt", file.display());
}

#[test]
fn on_a_recorded_link_pion_says_about_the_same() {
    let Some(program) = build() else { return };
    let Some(changes) = recorded_link("links/wifi-cellular-pairs/11_1_cellular.csv") else { return };
    let theirs = Box::new(Pion::start(&program, Said::default()));
    let (mean, _) = distance(&beside(theirs, Conditions { changes, ..Conditions::new() }, Leader::Theirs));
    assert!(mean <= 0.35, "{mean}");
}

/// The draft increases the rate only up to 1.5 times the delivery rate, and we do the same. The crate `rtc-interceptor`
/// does not limit its rate by the delivery rate.
#[test]
fn of_an_application_that_sends_little_only_we_stay_near_what_arrives() {
    let conditions = Conditions { application_bps: 200e3, ..Conditions::new() };
    let points = beside(Box::new(Rtc::new()), conditions, Leader::Ours);
    let last = points.last().expect("a minute of them");
    assert!(last.ours_bps <= 1.5 * 200e3 * 1.1 && last.theirs_bps > 10.0 * last.ours_bps, "{last:?}");
}

/// Maximum distance between the rate of the crate `rtc-interceptor` and our rate on each path, while the sender follows
/// our rate. The distance is the mean of |ln(ours/theirs)|. The maximum is the measured distance plus 10 %.
///
/// Two differences cause nearly all of this distance. First, the crate compares the estimated delay variation m(i) with
/// the threshold, as in the draft (draft-ietf-rmcat-gcc-02, Sec. 5.4), and detects no overuse on these paths. Like
/// libwebrtc and pion, we first multiply m(i) by the number of packet groups, at most 60. Second, we increase the rate
/// to at most 1.5 times the delivery rate (Sec. 5.5). The crate increases the rate up to the maximum rate, so the
/// distance is largest for the lowest capacity.
const FROM_RTC: &[(&str, f64)] = &[
    ("steady 0.5", 2.2),
    ("steady 2", 1.0),
    ("steady 4", 0.56),
    ("drop", 1.7),
    ("rise", 0.75),
    ("jitter", 1.0),
    ("loss 0.01", 1.0),
    ("loss 0.05", 0.44),
    ("loss 0.15", 0.95),
    ("random 1", 2.0),
    ("random 2", 1.3),
    ("random 3", 1.75),
];

/// If this test fails, one of three things has changed: our control law, the control law of the crate
/// `rtc-interceptor`, or a path.
#[test]
fn beside_our_rate_the_crate_rtc_interceptor_sees_no_overuse_and_stays_as_far_away_as_it_is() {
    for (name, conditions, _) in paths() {
        let points = beside(Box::new(Rtc::new()), conditions, Leader::Ours);
        let falls = points.windows(2).filter(|pair| pair[1].theirs_bps < 0.9 * pair[0].theirs_bps).count();
        let (mean, apart) = distance(&points);
        println!("rtc, {name}: {mean:.3} on average, {apart:.3} of the points apart, {falls} falls");
        assert!(falls == 0 || name.starts_with("loss"), "{name}: {falls}");
        let most = FROM_RTC.iter().find(|(path, _)| *path == name).map(|(_, most)| *most);
        assert!(most.is_some_and(|most| mean <= most), "{name}: {mean}, where {most:?} is the most");
    }
}
