//! Records queueing delays of packets, and the metrics of media in each phase of a run.

use equipoise::units::{Size, Span};
use equipoise_session::{Event, PathId};

use super::bins::Bins;
use super::received::Lot;
use super::waits::Waits;
use crate::phases::{Kind, Plan};
use crate::result::{MediaResult, QueueingResult};
use crate::scenario::{Flow, FlowKind, Scenario};

/// The data recorded so far about the phases of a run.
#[derive(Debug)]
pub(super) struct PhaseRecord {
    warm_up: Span,
    duration: Span,
    flows: Vec<FlowState>,
    /// The data about media; `None` if no flow sends media.
    pub(super) media: Option<MediaState>,
}

/// The data recorded so far about all media together.
#[derive(Debug)]
pub(super) struct MediaState {
    pub(super) plan: Plan,
    /// The segments of all phases, in order of time.
    pub(super) segments: Vec<Segment>,
    /// Queueing delays of the media packets that arrived in each of the `segments`.
    pub(super) waits: Vec<Option<Waits>>,
}

/// A part of a phase. Phases are divided at the end of the warm-up, and when [`UNREST`] has passed since a fall of the
/// capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    pub(super) start: Span,
    pub(super) end: Span,
    pub(super) phase: usize,
    /// Whether this part of a phase starts at or after the end of the warm-up.
    pub(super) is_settled: bool,
    /// False if the capacity fell at the segment's start or less than [`UNREST`] before this start.
    pub(super) is_calm: bool,
}

/// For this time after a fall of the capacity, the queue does not count as calm. Our choice: after this time, a control
/// law that detects the fall within two round trips has reacted, and the queue has drained.
const UNREST: Span = Span::from_secs(1);

/// The data recorded so far about one flow.
#[derive(Debug)]
pub(super) struct FlowState {
    pub(super) name: String,
    role: Role,
    /// Queueing delay of the packet that has just arrived. It is kept until the packet's event shows whether the packet
    /// was media.
    waited: Option<Span>,
    waits: Option<Waits>,
    pub(super) packets_sent: u64,
    pub(super) packets_received: u64,
    pub(super) sent: Size,
    /// Bytes of the packets that arrived at the sender; `None` if no such packet was recorded.
    pub(super) returned: Option<Size>,
    /// Bytes received over each path in each segment (part of a phase): first the bytes of each path in the first
    /// segment, then those in the second segment, and so on.
    pub(super) received: Vec<u64>,
    pub(super) paths: usize,
    /// Index of the segment (part of a phase) in which the last packet arrived.
    place: usize,
    pub(super) sent_bins: Bins,
    pub(super) received_bins: Bins,
}

/// How the packets of a flow are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A media session: its endpoints report events, and all its packets are media.
    Media,
    /// The endpoints report events, and the packets belong to the RTP half of a flow pair.
    Half,
    /// A TCP connection: the queueing delay of every arriving packet counts, and the received bytes are read
    /// periodically.
    Tcp,
    /// Background and web traffic: the queueing delay of every arriving packet counts, and received bytes are not
    /// recorded.
    Background,
}

impl Role {
    const fn of(flow: &Flow) -> Self {
        match (Kind::of(flow), &flow.kind) {
            (Kind::Media, _) => Self::Media,
            (Kind::Tcp, _) => Self::Tcp,
            (Kind::Other, FlowKind::Background { .. } | FlowKind::Tcp(_)) => Self::Background,
            (Kind::Other, _) => Self::Half,
        }
    }
}

impl PhaseRecord {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let plan = Plan::new(scenario);
        let media = plan.map(|plan| {
            let segments = segments(&plan, scenario.warm_up);
            MediaState { waits: vec![None; segments.len()], plan, segments }
        });
        let flow = |flow: &Flow| FlowState {
            name: flow.name.clone(),
            role: Role::of(flow),
            waited: None,
            waits: None,
            packets_sent: 0,
            packets_received: 0,
            sent: Size::ZERO,
            returned: None,
            received: Vec::new(),
            paths: scenario.paths_of(flow).count().max(1),
            place: 0,
            sent_bins: Bins::default(),
            received_bins: Bins::default(),
        };
        let flows = scenario.flows.iter().map(flow).collect();
        Self { warm_up: scenario.warm_up, duration: scenario.duration, flows, media }
    }

    /// Records that packets arrived at the receiver of flow number `flow`, each with its time and total queueing delay.
    /// Packets of a flow whose endpoints report events must be recorded one at a time.
    pub(super) fn on_waited(&mut self, flow: usize, mut waits: impl Lot<(Span, Span)>) {
        let Some(state) = self.flows.get_mut(flow) else { return };
        if state.has_events() {
            state.waited = waits.next_back().map(|(_, wait)| wait);
            return;
        }
        // The packets are in order of time, so the packets before the measured time come first, and the packets after
        // the measured time come last.
        let timely = self.warm_up..self.duration;
        let early = waits.clone().take_while(|(at, _)| *at < timely.start).count();
        let late = waits.clone().rev().take_while(|(at, _)| *at >= timely.end).count();
        let counted = waits.len().saturating_sub(early + late);
        if counted > 0 {
            let counted = waits.skip(early).take(counted).map(|(_, wait)| wait);
            state.waits.get_or_insert_with(Waits::default).push_all(counted);
        }
    }

    /// Records that a packet arrived at the sender of flow number `flow`.
    pub(super) fn on_returned(&mut self, flow: usize, size: Size) {
        if let Some(state) = self.flows.get_mut(flow) {
            state.returned = Some(state.returned.unwrap_or_default() + size);
        }
    }

    /// Records that TCP packets of this total size arrived at the receiver of flow number `flow` until the time `at`,
    /// inclusive.
    pub(super) fn on_tcp_received(&mut self, at: Span, flow: usize, size: Size) {
        let (Some(state), Some(media)) = (self.flows.get_mut(flow), &self.media) else { return };
        if state.role == Role::Tcp {
            // The packets arrived at `at` or earlier. If `at` is the boundary between two phases, the packets count in
            // the earlier phase.
            state.count(media, at - Span::from_nanos(1), 0, size);
        }
    }

    #[inline]
    pub(super) fn on_event(&mut self, at: Span, flow: usize, path: PathId, event: &Event) {
        let Some(state) = self.flows.get_mut(flow) else { return };
        if !state.has_events() {
            return;
        }
        match event {
            Event::MediaSent { size, .. } => {
                state.packets_sent += 1;
                state.sent = state.sent + *size;
                if let (Role::Media, Some(media)) = (state.role, &self.media) {
                    state.sent_bins.push(at, *size, &media.plan.phases);
                }
            }
            Event::MediaReceived { size, .. } => {
                state.packets_received += 1;
                let wait = state.waited.take();
                if let Some(wait) = wait.filter(|_| at >= self.warm_up && at < self.duration) {
                    state.waits.get_or_insert_with(Waits::default).push(wait);
                }
                let (Role::Media, Some(media)) = (state.role, &mut self.media) else { return };
                state.received_bins.push(at, *size, &media.plan.phases);
                let place = state.count(media, at, usize::from(path.0), *size);
                if let Some((waits, wait)) = place.and_then(|place| media.waits.get_mut(place)).zip(wait) {
                    waits.get_or_insert_with(Waits::default).push(wait);
                }
            }
            _ => {}
        }
    }

    /// Returns the queueing delays of the packets of flow number `flow` that arrived after the warm-up; `None` if no
    /// delay is known.
    pub(super) fn queueing(&self, flow: usize) -> Option<QueueingResult> {
        Some(self.flows.get(flow)?.waits.as_ref()?.result())
    }

    /// Returns the results of all media in a run of length `lasted`.
    pub(super) fn finish(&self, lasted: Span) -> Option<MediaResult> {
        Some(self.media.as_ref()?.result(&self.flows, lasted))
    }
}

impl FlowState {
    const fn has_events(&self) -> bool {
        matches!(self.role, Role::Media | Role::Half)
    }

    pub(super) fn is_media(&self) -> bool {
        self.role == Role::Media
    }

    /// Counts bytes that arrived at the time `at` over a path. Returns the index of the segment (a part of a phase)
    /// that contains `at`; `None` after the planned end of the run.
    fn count(&mut self, media: &MediaState, at: Span, path: usize, size: Size) -> Option<usize> {
        while media.segments.get(self.place)?.end <= at {
            self.place += 1;
        }
        let index = self.place * self.paths + path.min(self.paths - 1);
        if index >= self.received.len() {
            self.received.resize(index + 1, 0);
        }
        if let Some(bytes) = self.received.get_mut(index) {
            *bytes += size.as_bytes();
        }
        Some(self.place)
    }

    /// Returns the number of bits received in one segment (a part of a phase) over one path, or over all paths if
    /// `path` is `None`.
    pub(super) fn received_bits(&self, segment: usize, path: Option<usize>) -> f64 {
        let paths = path.map_or(0..self.paths, |path| path..path + 1);
        let bytes = paths.filter_map(|path| self.received.get(segment * self.paths + path));
        8.0 * bytes.sum::<u64>() as f64
    }
}

/// Divides the phases at these times: the end of the warm-up, and [`UNREST`] after each fall of the capacity.
fn segments(plan: &Plan, warm_up: Span) -> Vec<Segment> {
    let unrests = || plan.falls.iter().map(|&fall| (fall, fall + UNREST));
    let mut segments = Vec::new();
    for (number, phase) in plan.phases.iter().enumerate() {
        let inside = |at: &Span| *at > phase.start && *at < phase.end;
        let mut cuts: Vec<_> = unrests().map(|(_, end)| end).chain([warm_up]).filter(inside).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let starts = std::iter::once(phase.start).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([phase.end]);
        segments.extend(starts.zip(ends).map(|(start, end)| Segment {
            start,
            end,
            phase: number,
            is_settled: start >= warm_up,
            is_calm: !unrests().any(|(fall, calm)| start >= fall && start < calm),
        }));
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::Phase;

    #[test]
    fn phases_are_cut_where_the_warm_up_ends_and_a_second_after_falls() {
        let secs = Span::from_secs;
        let phase = |start, end| Phase {
            start: secs(start),
            end: secs(end),
            media: vec![0],
            tcp: Vec::new(),
            bottlenecks: Vec::new(),
        };
        let plan = Plan { phases: vec![phase(0, 10), phase(10, 20)], falls: vec![secs(10)] };
        let found: Vec<_> = segments(&plan, secs(5))
            .iter()
            .map(|segment| (segment.start, segment.end, segment.phase, segment.is_settled, segment.is_calm))
            .collect();
        let expected =
            [(0, 5, 0, false, true), (5, 10, 0, true, true), (10, 11, 1, true, false), (11, 20, 1, true, true)];
        assert_eq!(
            found,
            expected.map(|(start, end, phase, settled, calm)| (secs(start), secs(end), phase, settled, calm))
        );
    }
}
