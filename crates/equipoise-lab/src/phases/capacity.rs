//! The link capacity that remains for media over time, and how much of this capacity media can use.

use equipoise::control::{Parameters, Value};
use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_path::link::Capacity;
use equipoise_session::wire::NtpTime;
use equipoise_session::wire::rtp::RtpHeader;

use super::{MOST_STEPS, ways};
use crate::scenario::{Direction, Flow, FlowKind, LiveChoice, MultipathFlow, Scenario, VideoChoice};

/// The link directions that media pass, with the background traffic over these links.
pub(super) struct Capacities<'a> {
    links: Vec<Passed<'a>>,
}

/// A link direction that media pass.
struct Passed<'a> {
    place: usize,
    capacity: &'a Capacity,
    /// Start time and planned rate of each background flow over this link direction.
    loads: Vec<(Span, &'a Schedule<Rate>)>,
}

impl<'a> Capacities<'a> {
    pub(super) fn new(scenario: &'a Scenario, media: &[&Flow]) -> Self {
        let mut places: Vec<_> = media.iter().flat_map(|flow| ways(scenario, flow)).flatten().collect();
        places.sort_unstable();
        places.dedup();
        let count = scenario.links.len();
        let passed = |place: usize| {
            let (number, direction) =
                if place < count { (place, Direction::Forward) } else { (place - count, Direction::Back) };
            let capacity = &scenario.links.get(number)?.direction(direction).capacity;
            let loads = scenario.flows.iter().filter_map(|flow| match &flow.kind {
                FlowKind::Background { rate, .. } if ways(scenario, flow).iter().any(|way| way.contains(&place)) => {
                    Some((flow.start, rate))
                }
                _ => None,
            });
            Some(Passed { place, capacity, loads: loads.collect() })
        };
        Self { links: places.into_iter().filter_map(passed).collect() }
    }

    /// Returns the times of the planned steps of link capacities and background loads. A load's start counts as a step.
    /// Capacities that follow a trace are ignored, and so is any capacity or load with more than [`MOST_STEPS`] steps.
    pub(super) fn changes(&self, duration: Span) -> Vec<Span> {
        let mut changes = Vec::new();
        let mut add = |times: Vec<Span>| {
            let inside: Vec<_> = times.into_iter().filter(|at| *at > Span::ZERO && *at < duration).collect();
            if inside.len() <= MOST_STEPS {
                changes.extend(inside);
            }
        };
        for link in &self.links {
            if let Capacity::Rate(rate) = link.capacity {
                add(rate.steps().iter().map(|&(at, _)| at).collect());
            }
            for (start, rate) in &link.loads {
                let steps = rate.steps().iter().map(|&(at, _)| *start + at);
                add(std::iter::once(*start).chain(steps).collect());
            }
        }
        changes
    }

    /// Whether a planned step at the time `at` reduces the capacity that some link leaves to media.
    pub(super) fn falls_at(&self, at: Span) -> bool {
        let before = at - Span::from_nanos(1);
        self.links.iter().any(|link| link.at(at).zip(link.at(before)).is_some_and(|(now, then)| now < then))
    }

    /// Returns the mean capacity of a link direction in a time span, minus the mean planned rate of background traffic,
    /// in bit/s; `None` if the link has no rate limit.
    pub(super) fn left_bps(&self, place: usize, (from, to): (Span, Span)) -> Option<f64> {
        let link = self.links.iter().find(|link| link.place == place)?;
        let carried = link.capacity.bits(from, to)?;
        let load = |(start, rate): &(Span, &Schedule<Rate>)| {
            let load = Capacity::Rate((*rate).clone());
            load.bits((from - *start).max(Span::ZERO), (to - *start).max(Span::ZERO)).unwrap_or(0.0)
        };
        let left = carried - link.loads.iter().map(load).sum::<f64>();
        Some(left.max(0.0) / (to - from).as_secs_f64())
    }
}

impl Passed<'_> {
    /// Returns the capacity that the planned loads leave at the time `at`, in bit/s; `None` if the link's capacity is
    /// not a rate with steps.
    fn at(&self, at: Span) -> Option<f64> {
        let Capacity::Rate(rate) = self.capacity else { return None };
        let loads = self.loads.iter().filter(|(start, _)| *start <= at);
        let load: f64 = loads.map(|(start, rate)| rate.at(at - *start).as_bps_f64()).sum();
        Some((rate.at(at).as_bps_f64() - load).max(0.0))
    }
}

/// Returns the maximum rate of a flow's media in bit/s, including IP headers; `None` if the media have no rate limit.
pub(super) fn greatest_bps(flow: &Flow) -> Option<f64> {
    let controller = match &flow.kind {
        FlowKind::Session { controller, .. } | FlowKind::Multipath(MultipathFlow { controller, .. }) => controller,
        FlowKind::Background { .. } | FlowKind::Tcp(_) | FlowKind::Pair(_) => return None,
    };
    let of_law = max_rate(&controller.parameters).map(Rate::as_bps_f64);
    let of_media = flow.live().and_then(|live| live_bps(live, flow.packet_size));
    of_law.into_iter().chain(of_media).reduce(f64::min)
}

/// Returns a controller's maximum rate, or its rate if it sends at a fixed rate.
fn max_rate(parameters: &Parameters) -> Option<Rate> {
    let of = |key: &str| {
        parameters.iter().find_map(|(name, value)| match value {
            Value::Rate(rate) if name == key => Some(rate),
            _ => None,
        })
    };
    of("max_rate").or_else(|| of("rate"))
}

/// Returns the maximum rate of live media in bit/s, including packet headers. Each frame starts a new packet, so the
/// number of packets per frame is rounded up.
fn live_bps(live: &LiveChoice, packet: Size) -> Option<f64> {
    let header = RtpHeader { send_time: Some(NtpTime::from_bits(0)), ..RtpHeader::default() };
    let header = Size::IPV4_UDP + Size::from_bytes(header.encoded_len() as u64);
    let with_headers = |rate: Rate, frames_a_second: f64| {
        let frame = rate.as_bps_f64() / frames_a_second;
        let packets = (frame / (packet - header).as_bits().max(1) as f64).ceil();
        rate.as_bps_f64() + frames_a_second * packets * header.as_bits() as f64
    };
    let video = match &live.video {
        None => 0.0,
        Some(VideoChoice::Modelled(model)) => with_headers(model.max_rate, model.frame_rate),
        Some(VideoChoice::Quantised { .. }) => return None,
    };
    let audio = live.audio.map_or(0.0, |audio| with_headers(audio.rate, 1.0 / audio.interval.as_secs_f64()));
    Some(video + audio)
}
