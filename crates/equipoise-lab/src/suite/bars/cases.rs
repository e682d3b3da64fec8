//! The cases of the suite `bars` and their bars (pass criteria). The cases are those of RFC 8867, Sec. 5 and 6, with
//! additional variants, and four cases of our own.

use super::super::{Item, rfc8867};
use super::measure::Measure;
use super::result::{Limit, Unit};
use crate::scenario::Override;

/// A case of the suite.
#[derive(Clone, Debug)]
pub struct Case {
    /// The section of RFC 8867 that defines the case, such as "5.1", or a name of our own.
    pub name: &'static str,
    /// The title of the case.
    pub title: &'static str,
    /// The variants of the case. A quick run uses only the first variant, and the variants with which a bar (pass
    /// criterion) compares the first variant.
    pub variants: Vec<Variant>,
}

/// A variant of a case with its bars (pass criteria).
#[derive(Clone, Debug)]
pub struct Variant {
    /// The scenario of the variant, as an item of the suite.
    pub item: Item,
    /// The bars (pass criteria) for this variant.
    pub(super) bars: Vec<Bar>,
}

impl Variant {
    /// Returns the variant of the same case with which the bars (pass criteria) compare this variant; `None` if no bar
    /// compares variants.
    pub(super) fn reference(&self) -> Option<&'static str> {
        self.bars.iter().find_map(|bar| match bar.of {
            Of::Less(_, variant) | Of::Lower(_, variant) => Some(variant),
            Of::Run(_) | Of::OverLaw(_, _) => None,
        })
    }
}

/// A bar: a requirement that a control law must meet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) key: &'static str,
    pub(super) quantity: String,
    pub(super) unit: Unit,
    pub(super) limit: Limit,
    pub(super) of: Of,
}

/// The quantity that a bar limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Of {
    /// A measure of each run. If a run has several values of the measure, such as one for each phase, each value is
    /// averaged over the runs. The worst of these means counts.
    Run(Measure),
    /// By how much a measure is lower than in another variant of the case, with the same seed.
    Less(Measure, &'static str),
    /// By how much a measure is lower than in another variant of the case, relative to the value of that variant.
    Lower(Measure, &'static str),
    /// Ratio of a measure to the value of the same measure under another control law, with the same seed.
    OverLaw(Measure, &'static str),
}

impl Of {
    /// Returns the measure from which the quantity is computed.
    pub(super) const fn measure(self) -> Measure {
        match self {
            Self::Run(measure) | Self::Less(measure, _) | Self::Lower(measure, _) | Self::OverLaw(measure, _) => {
                measure
            }
        }
    }
}

fn bar(key: &'static str, quantity: impl Into<String>, unit: Unit, limit: Limit, of: Measure) -> Bar {
    Bar { key, quantity: quantity.into(), unit, limit, of: Of::Run(of) }
}

/// The maximum rate of media in bit/s, from the example values of RFC 8593.
const MEDIA_BPS: f64 = 1.5e6;
/// Length of the windows in which a rate must be reached, in seconds. Our choice: a window contains several video
/// frames, because a single frame does not determine a rate.
const WINDOW_S: f64 = 0.5;
/// Length of the windows in which a rate must be reached in the case `start`, in seconds. Our choice: ten of the
/// shortest round trips in this case, because its pass criteria (bars) allow 1 s plus ten round trips.
const START_WINDOW_S: f64 = 0.2;

/// Returns all cases.
pub fn all() -> Vec<Case> {
    let mut cases: Vec<_> = rfc8867::CASES.iter().map(of_rfc8867).collect();
    for case in &mut cases {
        match case.name {
            "5.1" => case.variants.extend(["100 ms", "200 ms"].into_iter().filter_map(with_feedback)),
            "5.6" => case.variants.extend(beside_tcp().into_iter().flatten()),
            _ => {}
        }
    }
    cases.extend([losses(), policer(), starts(), idle()]);
    for case in &mut cases {
        for variant in &mut case.variants {
            variant.bars.extend(beside_others(case.name));
        }
    }
    cases
}

fn of_rfc8867(case: &'static rfc8867::Case) -> Case {
    let variant = |variant: &rfc8867::Variant| Variant {
        item: rfc8867::item(case, variant),
        bars: asked(case.number, variant.name),
    };
    Case { name: case.number, title: case.title, variants: case.variants.iter().map(variant).collect() }
}

/// Returns the bars, which are the requirements on a control law, for a variant of a case of RFC 8867. Three kinds of
/// variants have no bars here, and are only compared between control laws: variants with jitter, variants whose
/// capacity is changed by UDP traffic instead of steps of the link rate, and the cases of Sec. 6.
fn asked(case: &str, variant: &str) -> Vec<Bar> {
    match (case, variant) {
        ("5.1", "50ms-link") => one_flow(0.030),
        ("5.1", "100ms-link") => one_flow(0.035),
        ("5.2", "50ms-link") => steady(0.92, 0.030),
        ("5.2", "100ms-link") => steady(0.92, 0.035),
        ("5.3", "50ms-link") => {
            let mut bars = steady(0.92, 0.030);
            bars.push(Bar {
                key: "below_reference",
                quantity: "S1 below reference".into(),
                unit: Unit::Percent(1),
                limit: Limit::AtMost(0.05),
                of: Of::Less(FORWARD, "50ms-link-reference"),
            });
            bars
        }
        ("5.3", "50ms-link-reference") => {
            let mut bars = steady(0.92, 0.030);
            bars.push(bar("used_s1", "S1 used, 35 to 70 s", Unit::Percent(1), Limit::Reported, FORWARD));
            bars
        }
        ("5.4", "50ms") => {
            let mut bars = come(1, 20, MEDIA_BPS, &[0, 1]);
            bars.extend(come(2, 40, 3.5e6 / 3.0, &[0, 1, 2]));
            bars.push(queue_p95(0.030));
            bars
        }
        ("5.5", "10-150ms") => {
            let spread = Measure::Spread { from_s: 50.0, until_s: 299.0 };
            vec![bar("spread", "largest over smallest rate", Unit::Ratio, Limit::AtMost(1.15), spread)]
        }
        ("5.6", "300ms-reno" | "1000ms-reno" | "300ms-cubic" | "1000ms-cubic") => vec![equal_share((0.8, 1.25))],
        ("5.7", "one-connection") => beside_web(true),
        ("5.7", "30-connections") => beside_web(false),
        ("5.8", "50ms") => {
            let mut bars = come(1, 60, 3.5e6 / 3.0, &[0, 1, 2]);
            bars.push(queue_p95(0.030));
            bars
        }
        _ => Vec::new(),
    }
}

/// Share of the usable capacity that the forward flow of case 5.3 receives from 35 to 70 s. In this time, the reverse
/// direction has its lowest capacity. In the variant `50ms-link-reference`, the reverse direction has no rate limit.
const FORWARD: Measure = Measure::Used { flow: 0, from_s: 35.0, until_s: 70.0 };

fn queue_p95(most_s: f64) -> Bar {
    bar("queueing_p95_s", "queues, p95", Unit::Millis, Limit::AtMost(most_s), Measure::QueueP95)
}

/// Returns the bars (pass criteria) for a steady run: the link is well used, the queue is short, and few packets are
/// lost.
fn steady(used: f64, p95_s: f64) -> Vec<Bar> {
    vec![
        bar("used_worst_phase", "used, worst phase", Unit::Percent(1), Limit::AtLeast(used), Measure::ByPhase),
        bar("queueing_mean_s", "queues, mean", Unit::Millis, Limit::AtMost(0.014), Measure::QueueMean),
        queue_p95(p95_s),
        bar("loss", "lost", Unit::Percent(3), Limit::AtMost(0.0005), Measure::Loss { from_s: 0 }),
    ]
}

/// Bars of case 5.1, in which the capacity is 1 Mbit/s at the start, and again from 80 s on.
fn one_flow(p95_s: f64) -> Vec<Bar> {
    let reached = |key, at_s: f64, most_s| {
        let measure = Measure::Reached { flow: 0, at_s, window_s: WINDOW_S, rate_bps: 0.95e6, most_s };
        bar(key, format!("95 % reached from {at_s} s"), Unit::Seconds, Limit::AtMost(2.0), measure)
    };
    let mut bars = steady(0.95, p95_s);
    bars.extend([reached("reached_from_0_s", 0.0, 40.0), reached("reached_from_80_s", 80.0, 19.0)]);
    bars
}

/// Returns the bars (pass criteria) for a flow that starts or resumes at second `at` of the run: the flow soon reaches
/// its share, and from 10 to 20 s after `at` the shares of all flows are fair.
fn come(flow: usize, at: u32, share_bps: f64, flows: &'static [usize]) -> Vec<Bar> {
    let (at_s, key, jain_key) = match at {
        20 => (20.0, "share_from_20_s", "jain_from_30_s"),
        40 => (40.0, "share_from_40_s", "jain_from_50_s"),
        _ => (60.0, "share_from_60_s", "jain_from_70_s"),
    };
    let reached = Measure::Reached { flow, at_s, window_s: WINDOW_S, rate_bps: 0.9 * share_bps, most_s: 20.0 };
    let (from_s, until_s) = (at_s + 10.0, at_s + 20.0);
    vec![
        bar(key, format!("90 % of share from {at_s} s"), Unit::Seconds, Limit::AtMost(10.0), reached),
        bar(
            jain_key,
            format!("Jain, {from_s} to {until_s} s"),
            Unit::Ratio,
            Limit::AtLeast(0.98),
            Measure::Jain { flows, from_s, until_s },
        ),
    ]
}

/// Returns the bar (pass criterion) for the rate of media relative to 1 Mbit/s, which is an equal share of the link's
/// 2 Mbit/s. The rate is measured while both flows send.
fn equal_share((least, most): (f64, f64)) -> Bar {
    let measure = Measure::Rate { from_s: 5.0, until_s: 119.0, over_bps: 1e6 };
    bar("equal_share", "of an equal share", Unit::Ratio, Limit::Within(least, most), measure)
}

/// Performance targets of case 5.7 (RFC 8867), in which two media flows and web traffic share 2 Mbit/s.
fn beside_web(has_bars: bool) -> Vec<Bar> {
    let rest = Measure::BesideWeb { from_s: 5.0, until_s: 299.0, capacity_bps: 2e6 };
    let longer = Bar {
        key: "fetch_over_nada",
        quantity: "transfers, over beside NADA".into(),
        unit: Unit::Ratio,
        limit: Limit::AtMost(1.5),
        of: Of::OverLaw(Measure::Fetch, "nada"),
    };
    let mut bars = vec![
        bar("of_what_web_leaves", "of what web leaves", Unit::Percent(1), Limit::AtLeast(0.85), rest),
        bar("frozen_runs", "runs frozen over 1 s", Unit::Percent(0), Limit::AtMost(0.0), Measure::Frozen),
        longer,
    ];
    if !has_bars {
        for bar in &mut bars {
            bar.limit = Limit::Reported;
        }
    }
    bars
}

/// Returns a variant of a case of RFC 8867 that is changed by overrides.
fn changed(case: &str, variant: &str, name: String, overrides: Vec<Override>, bars: Vec<Bar>) -> Option<Variant> {
    let case = rfc8867::case(case)?;
    let variant = case.variants.iter().find(|known| known.name == variant)?;
    Some(Variant { item: Item { variant: name, overrides, ..rfc8867::item(case, variant) }, bars })
}

/// Returns a variant of case 5.1 in which feedback is less frequent.
fn with_feedback(interval: &str) -> Option<Variant> {
    let overrides = vec![Override::set("flow.S1.feedback.interval", interval)];
    let name = format!("50ms-link-feedback-{}", interval.replace(' ', ""));
    changed("5.1", "50ms-link", name, overrides, one_flow(0.035))
}

/// Returns variants of case 5.6 with other queue lengths, and variants in which the TCP connection ends during the run.
fn beside_tcp() -> Vec<Option<Variant>> {
    let queue = |ms: u32| Override::set("link.bottleneck.queue", format!("{ms} ms"));
    let mut variants = Vec::new();
    for (ms, within) in [(100, (0.8, 1.25)), (70, (0.6, 1.3)), (50, (0.6, 1.3))] {
        for law in ["reno", "cubic"] {
            let (base, name) = (format!("300ms-{law}"), format!("{ms}ms-{law}"));
            variants.push(changed("5.6", &base, name, vec![queue(ms)], vec![equal_share(within)]));
        }
    }
    for ms in [100, 300, 1000] {
        for law in ["reno", "cubic"] {
            let (base, name) = (format!("300ms-{law}"), format!("{ms}ms-{law}-ends"));
            let overrides = vec![queue(ms), Override::set("flow.tcp.stop", "60 s")];
            let calm = Measure::CalmAgain { at_s: 60.0, within_s: 5.0, p95_s: 0.030 };
            let quantity = "calm 5 s after TCP's end";
            let bars = vec![bar("calm_again", quantity, Unit::Percent(0), Limit::AtLeast(0.9), calm)];
            variants.push(changed("5.6", &base, name, overrides, bars));
        }
    }
    variants
}

fn own(case: &'static str, title: &str, text: &'static str, name: String, overrides: Vec<Override>) -> Item {
    Item { case: case.into(), title: title.into(), variant: name, text: text.into(), overrides, needs: None }
}

macro_rules! scenario {
    ($name:literal) => {
        include_str!(concat!("../../../scenarios/bars/", $name, ".toml"))
    };
}

fn losses() -> Case {
    let title = "Losses without a queue";
    let rate = Measure::Rate { from_s: 5.0, until_s: 60.0, over_bps: MEDIA_BPS };
    let variant = |percent: u32, most: Option<f64>| {
        let overrides = vec![Override::set("link.radio.loss", format!("{percent}%"))];
        let item = own("loss", title, scenario!("loss"), format!("{percent}-percent"), overrides);
        let used = bar("rate", "rate, of 1.5 Mbit/s", Unit::Percent(1), Limit::Reported, rate);
        let below = most.map(|most| Bar {
            key: "below_lossless",
            quantity: "below rate without loss".into(),
            unit: Unit::Percent(1),
            limit: Limit::AtMost(most),
            of: Of::Lower(rate, "0-percent"),
        });
        Variant { item, bars: std::iter::once(used).chain(below).collect() }
    };
    let variants = vec![variant(1, Some(0.03)), variant(5, Some(0.07)), variant(0, None)];
    Case { name: "loss", title: "Losses without a queue", variants }
}

fn policer() -> Case {
    let title = "A policer";
    let item = own("policer", title, scenario!("policer"), "1M".into(), Vec::new());
    let rate = Measure::Rate { from_s: 5.0, until_s: 60.0, over_bps: 1e6 };
    let bars = vec![
        bar("loss_from_5_s", "lost from 5 s on", Unit::Percent(2), Limit::AtMost(0.03), Measure::Loss { from_s: 5 }),
        bar("rate", "rate, of the policer's", Unit::Percent(1), Limit::Reported, rate),
    ];
    Case { name: "policer", title, variants: vec![Variant { item, bars }] }
}

/// Returns overrides that set the rate of a link to `mbps`, and the maximum rates of the controller and of the media to
/// `most` times the link's rate.
fn capacity(mbps: f64, most: f64) -> Vec<Override> {
    let rate = |mbps: f64| format!("{} kbit/s", (mbps * 1000.0).round());
    vec![
        Override::set("link.access.rate", rate(mbps)),
        Override::set("flow.S1.controller.max_rate", rate(mbps * most)),
        Override::set("flow.S1.source.0.max_rate", rate(mbps * most)),
    ]
}

fn starts() -> Case {
    let title = "Start on an idle path";
    let variant = |(mbps, round_trip_ms): (u32, u32)| {
        let mut overrides = capacity(f64::from(mbps), 2.0);
        overrides.push(Override::set("link.access.delay", format!("{} ms", round_trip_ms / 2)));
        let item = own("start", title, scenario!("start"), format!("{mbps}M-{round_trip_ms}ms"), overrides);
        let by_s = 1.0 + f64::from(round_trip_ms) / 100.0;
        let rate_bps = 0.9e6 * f64::from(mbps);
        let reached = Measure::Reached { flow: 0, at_s: 0.0, window_s: START_WINDOW_S, rate_bps, most_s: 10.0 };
        let waits = Measure::QueueP95Until { until_s: by_s };
        let bars = vec![
            bar("reached", "90 % reached", Unit::Seconds, Limit::AtMost(by_s), reached),
            bar("queueing_p95_s", format!("queues, p95 to {by_s} s"), Unit::Millis, Limit::AtMost(0.030), waits),
        ];
        Variant { item, bars }
    };
    let capacities = [1, 2, 5, 10, 20, 50];
    let all = [20, 100].into_iter().flat_map(|round_trip| capacities.map(|mbps| (mbps, round_trip)));
    Case { name: "start", title, variants: all.map(variant).collect() }
}

fn idle() -> Case {
    let title = "Alone on an idle path";
    let variant = |mbps: f64| {
        let item = own("idle", title, scenario!("idle"), format!("{mbps}M"), capacity(mbps, 1.5));
        let used = Measure::Rate { from_s: 5.0, until_s: 30.0, over_bps: mbps * 1e6 };
        // The limit of the queueing delay: 18 ms plus the transmission time of two packets, rounded to 10 µs.
        let most_s = ((0.018 + 2.0 * 1200.0 * 8.0 / (mbps * 1e6)) * 1e5).round() / 1e5;
        let bars = vec![
            bar("used_from_5_s", "used from 5 s on", Unit::Percent(1), Limit::AtLeast(0.95), used),
            queue_p95(most_s),
            bar("loss", "lost", Unit::Percent(3), Limit::AtMost(0.0), Measure::Loss { from_s: 0 }),
        ];
        Variant { item, bars }
    };
    Case { name: "idle", title, variants: [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0].map(variant).into() }
}

/// Returns the bars (pass criteria) that compare our law with the other laws. Every case has such bars, except the case
/// `start`, which is too short.
fn beside_others(case: &str) -> Vec<Bar> {
    if case == "start" {
        return Vec::new();
    }
    let used = bar("used", "used, whole run", Unit::Percent(1), Limit::NotBehindOthers, Measure::UsedInAll);
    let frames = bar("frame_delay_p95_s", "frames, p95", Unit::Millis, Limit::BelowOthers, Measure::Frames);
    if case.starts_with("5.") { vec![used, frames] } else { vec![used] }
}
