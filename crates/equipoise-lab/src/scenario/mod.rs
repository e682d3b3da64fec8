//! A scenario: links, flows, load steps and a seed. The simulator and live runs use the same scenario.
//!
//! The file is TOML. Every quantity is a string with its unit. Unknown keys are refused. Every error names the line,
//! the key, the value and what would be valid. A result of [`Scenario::parse`] can be run without further checks.

mod blame;
mod budget;
mod catalogue;
mod check;
mod content;
mod error;
mod excerpt;
mod explain;
mod group;
mod link;
mod link_problem;
mod live;
mod media_problem;
mod multipath;
pub(crate) mod nearest;
mod overrides;
mod pair;
mod raw;
mod raw_link;
mod raw_source;
mod set;
mod swap;
mod tcp;

use std::fs::File;
use std::io::{self, Read as _};
use std::path;

use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_session::Ecn;
use equipoise_session::feedback::Reporting;

pub(crate) use budget::MOST_INTERVALS;
pub use budget::OverBudget;
pub use catalogue::{Catalogue, Choice, LawChoice, Listed, Made, NameTaken, SchedulerChoice, Table, TrafficChoice};
pub use content::{ContentChoice, ContentKind, Frames};
pub use error::{OverrideProblem, Problem, ScenarioError, SyntaxError};
pub use group::CoupledFlow;
pub use link::{Direction, Link};
pub use link_problem::LinkProblem;
pub use live::{AudioChoice, LiveChoice, LiveMediaError, VideoChoice};
pub use media_problem::MediaProblem;
pub use multipath::{MultipathFlow, Outage, Path};
pub use overrides::Override;
pub use pair::{PairFlow, RunningLaw};
pub use set::SetError;
pub use swap::{Swap, SwapError};
pub use tcp::{BandwidthSource, TcpFlow};
pub use toml::Value;

/// Maximum length of a scenario's text, in bytes: many times the length with one step per second on every flow and
/// link. Parsing a longer text would take seconds and hundreds of megabytes before the first error.
const MOST_TEXT: usize = 2_000_000;

/// A scenario that can be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// The author's description of what it shows.
    pub description: String,
    /// The whole file.
    pub text: String,
    /// Length of a run.
    pub duration: Span,
    /// Time at the beginning of a run that means leave out.
    pub warm_up: Span,
    /// Seed of the first run.
    pub seed: u64,
    /// Time between two samples of the rates at the receivers and, with TCP flows, flow pairs or playout buffers, of
    /// the states of connections and links.
    pub sample_interval: Span,
    /// Whether the rates of IP packets at all flows' receivers are sampled; for flow pairs, they always are.
    pub receiver_rates: bool,
    /// The links, each with two directions of the same kind.
    pub links: Vec<Link>,
    /// The paths from which flows over several paths choose.
    pub paths: Vec<Path>,
    /// The flows.
    pub flows: Vec<Flow>,
}

/// A flow: a controlled session over one path or several, background traffic, a TCP connection or a flow pair.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// The links that its media pass, in order, as indices into [`Scenario::links`]; reports return over the opposite
    /// direction of the same links. For a flow over several paths, the links of all of them, in the scenario's order.
    pub path: Vec<usize>,
    /// The links of a separate route for reports and acknowledgements, in order, each in its forward direction; `None`
    /// for the opposite direction of the links of [`path`](Self::path).
    pub back: Option<Vec<usize>>,
    /// The direction in which its media pass the links.
    pub direction: Direction,
    /// ECN codepoint of its media packets: whether queues may mark them.
    pub ecn: Ecn,
    /// Size of its IP packets; for a flow pair, of its RTP packets.
    pub packet_size: Size,
    /// Whether the circuit breakers of a session act (RFC 8083, Sec. 4).
    pub circuit_breakers: bool,
    /// When it starts.
    pub start: Span,
    /// Time spans in which a session has nothing to send.
    pub pauses: Vec<Outage>,
    /// RTCP settings of a flow over RTP.
    pub rtcp: Rtcp,
    /// The direction of its media in a session with media in both directions; `None` for a session with media in one
    /// direction. The flow of the reverse media directly follows the flow of the forward media.
    pub part: Option<DuplexPart>,
    /// What it sends.
    pub kind: FlowKind,
}

/// Settings for the sizes and times of a flow's RTCP packets, which otherwise follow from the run's seed and the flow's
/// index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rtcp {
    /// Canonical name of the sender (RFC 3550, Sec. 6.5.1).
    pub sender: Option<String>,
    /// Canonical name of the receiver.
    pub receiver: Option<String>,
    /// Seed of the flow's source number and of the times of its compound packets (RFC 3550, Sec. 6.2).
    pub seed: Option<u64>,
}

/// A direction of a session with media in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplexPart {
    /// The forward media: those of the flow in the scenario file.
    There,
    /// The reverse media, which return in the same session.
    Back,
}

/// What a flow sends.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FlowKind {
    /// Media at the rate of a controller.
    Session {
        /// The controller.
        controller: Choice,
        /// Time between two requests for a report.
        report_interval: Span,
        /// How its receiver reports on single packets; `None` if it does not.
        reporting: Option<Reporting>,
        /// The media that it sends.
        media: MediaChoice,
        /// The link, as an index into [`Scenario::links`], whose queue is the receiver's playout buffer: the receiver
        /// is before this link. The link belongs to the path. `None` for a receiver at the end of the path.
        playout: Option<usize>,
        /// The one-way delay that the controller tries to hold.
        target: Option<Span>,
        /// The group with which it shares its rate; `None` if it is in no group.
        coupled: Option<CoupledFlow>,
    },
    /// Packets on a traffic model's schedule.
    Background {
        /// The model.
        traffic: TrafficChoice,
        /// Its rate over time, counted from the flow's start.
        rate: Schedule<Rate>,
    },
    /// A TCP connection.
    Tcp(TcpFlow),
    /// Media at the rate of a controller, distributed over several paths.
    Multipath(MultipathFlow),
    /// Application data units, sent alternately over TCP and RTP (a flow pair).
    Pair(PairFlow),
}

/// The media of a session.
#[derive(Clone, Debug)]
pub enum MediaChoice {
    /// As much as the rate allows.
    Unlimited,
    /// Finite content, which is sent to its end.
    Content(ContentChoice),
    /// Live video and audio; the video follows the rate.
    Live(LiveChoice),
}

impl Flow {
    /// The target delay of a session, if it has one.
    pub const fn target(&self) -> Option<Span> {
        match &self.kind {
            FlowKind::Session { target, .. } | FlowKind::Multipath(MultipathFlow { target, .. }) => *target,
            FlowKind::Pair(pair) => pair.target(),
            FlowKind::Background { .. } | FlowKind::Tcp(_) => None,
        }
    }

    /// The link that serves as the flow's playout buffer, if there is one. The flow leaves the network before this
    /// link.
    pub const fn playout(&self) -> Option<usize> {
        match self.kind {
            FlowKind::Session { playout, .. } => playout,
            FlowKind::Background { .. } | FlowKind::Tcp(_) | FlowKind::Multipath(_) | FlowKind::Pair(_) => None,
        }
    }

    /// The finite content of a session or a connection.
    pub const fn content(&self) -> Option<&ContentChoice> {
        match &self.kind {
            FlowKind::Session { media: MediaChoice::Content(content), .. } => Some(content),
            FlowKind::Tcp(tcp) => tcp.content.as_ref(),
            _ => None,
        }
    }

    /// The live media of a session.
    pub const fn live(&self) -> Option<&LiveChoice> {
        match &self.kind {
            FlowKind::Session { media: MediaChoice::Live(live), .. } => Some(live),
            _ => None,
        }
    }

    /// How the receiver of a session reports on single packets.
    pub const fn reporting(&self) -> Option<Reporting> {
        match &self.kind {
            FlowKind::Session { reporting, .. } => *reporting,
            FlowKind::Multipath(multipath) => multipath.reporting,
            _ => None,
        }
    }

    /// The group with which a session shares its rate.
    pub const fn coupled(&self) -> Option<&CoupledFlow> {
        match &self.kind {
            FlowKind::Session { coupled, .. } => coupled.as_ref(),
            _ => None,
        }
    }

    /// The links that its packets pass in the network: those before the playout buffer.
    pub fn network(&self) -> &[usize] {
        let whole = self.path.as_slice();
        let playout = self.playout().and_then(|playout| whole.iter().position(|link| *link == playout));
        playout.and_then(|playout| whole.get(..playout)).unwrap_or(whole)
    }

    /// The TCP connection of a TCP flow, or of a flow pair's TCP half.
    pub const fn connection(&self) -> Option<&TcpFlow> {
        match &self.kind {
            FlowKind::Tcp(tcp) | FlowKind::Pair(PairFlow { tcp, .. }) => Some(tcp),
            FlowKind::Session { .. } | FlowKind::Background { .. } | FlowKind::Multipath(_) => None,
        }
    }

    /// The report interval of a session or of a flow pair's RTP half.
    pub const fn report_interval(&self) -> Option<Span> {
        match self.kind {
            FlowKind::Session { report_interval, .. }
            | FlowKind::Multipath(MultipathFlow { report_interval, .. })
            | FlowKind::Pair(PairFlow { report_interval, .. }) => Some(report_interval),
            FlowKind::Background { .. } | FlowKind::Tcp(_) => None,
        }
    }
}

impl Scenario {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ScenarioError`] for a file that cannot be read or is too long, and as [`Scenario::parse`].
    pub fn read(path: &path::Path) -> Result<Self, ScenarioError> {
        Self::parse(&Self::read_text(path)?)
    }

    /// Reads the text of a file, and checks only its length.
    ///
    /// # Errors
    /// [`ScenarioError::Read`] and [`ScenarioError::TooLong`].
    pub fn read_text(path: &path::Path) -> Result<String, ScenarioError> {
        let mut bytes = Vec::new();
        // One byte more than the maximum, so that a file that is too long is recognised.
        File::open(path)?.take(MOST_TEXT as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MOST_TEXT {
            return Err(ScenarioError::TooLong { most: MOST_TEXT });
        }
        let not_utf8 = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8").into();
        String::from_utf8(bytes).map_err(not_utf8)
    }

    /// Checks the text of a scenario file, which can name this library's controllers, window laws and traffic models.
    ///
    /// # Errors
    /// [`ScenarioError`] for the first error in the text.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, &[])
    }

    /// Applies overrides to the text of a scenario file, in their order, and checks the result.
    ///
    /// [`Scenario::text`] is the result, without the comments of the file.
    ///
    /// # Errors
    /// [`ScenarioError::Override`] for an override that does not fit the file, that sets an unknown key, or that sets
    /// an invalid value; as [`Scenario::parse`] if the file itself is wrong; [`ScenarioError::Changed`] for another
    /// value of the file that does not fit the overrides.
    pub fn parse_with(text: &str, overrides: &[Override]) -> Result<Self, ScenarioError> {
        Self::parse_in(&Catalogue::default(), text, overrides)
    }

    /// Like [`Scenario::parse_with`], for a file that can name every entry of a catalogue.
    ///
    /// # Errors
    /// As [`Scenario::parse_with`].
    pub fn parse_in(catalogue: &Catalogue, text: &str, overrides: &[Override]) -> Result<Self, ScenarioError> {
        if text.len() > MOST_TEXT {
            return Err(ScenarioError::TooLong { most: MOST_TEXT });
        }
        let changed = overrides::apply(text, overrides)?;
        check::scenario(&changed, catalogue).map_err(|error| {
            if overrides.is_empty() {
                return error;
            }
            blame::lay(error, &changed, overrides, || check::scenario(text, catalogue).err())
        })
    }

    /// Returns whether the states of connections and links are sampled: with TCP flows, flow pairs or playout buffers,
    /// or if the rates at the receivers are requested.
    pub fn is_sampled(&self) -> bool {
        let is_sampled =
            |flow: &Flow| matches!(flow.kind, FlowKind::Tcp(_) | FlowKind::Pair(_)) || flow.playout().is_some();
        self.receiver_rates || self.flows.iter().any(is_sampled)
    }

    /// Returns whether a live run needs the kernel's congestion control of this name.
    pub fn wants_of_kernel(&self, name: &str) -> bool {
        self.flows.iter().any(|flow| flow.connection().is_some_and(|tcp| tcp.congestion_control() == name))
    }

    /// Checks whether the simulator can run the scenario at reasonable cost.
    ///
    /// # Errors
    /// [`OverBudget`], with the number that is too large and the key to change.
    pub fn check_budget(&self) -> Result<(), OverBudget> {
        budget::check(self)
    }

    /// Returns how many of several runs may keep their time series, 1 to 1000, so that memory is bounded.
    pub fn runs_with_series(&self) -> u32 {
        budget::runs_with_series(self)
    }

    /// Describes the scenario in words: what would run, and how loaded the links would be.
    pub fn explain(&self) -> String {
        explain::explain(self)
    }

    /// Returns the minimum propagation delay of a path in a direction: without jitter, and with the smallest delay of
    /// each link over its route changes.
    pub fn propagation_delay(&self, path: &[usize], direction: Direction) -> Span {
        let least = |link: &Link| link.direction(direction).delay.values().min().unwrap_or(Span::ZERO);
        path.iter().filter_map(|&link| self.links.get(link)).fold(Span::ZERO, |sum, link| sum + least(link))
    }

    /// Returns the indices of a path's links in the list of all link directions, in which all forward directions come
    /// first. In the opposite direction, the path passes its links in reverse order.
    pub fn way(&self, path: &[usize], direction: Direction) -> Vec<usize> {
        let place = |&number: &usize| Some(self.links.get(number)?.place(number, direction, self.links.len()));
        let mut way: Vec<usize> = path.iter().filter_map(place).collect();
        if direction == Direction::Back {
            way.reverse();
        }
        way
    }

    /// Returns the indices of the links that a flow's media pass over `path`, and the indices of the links that its
    /// feedback passes: see [`way`](Self::way).
    pub fn ways(&self, flow: &Flow, path: &[usize]) -> [Vec<usize>; 2] {
        let back = || self.way(path, flow.direction.reversed());
        let there = self.way(path, flow.direction);
        [there, flow.back.as_ref().map_or_else(back, |back| self.way(back, Direction::Forward))]
    }

    /// Returns the link directions whose counters are reported, each with a name and its index: all forward directions,
    /// and the reverse directions that media pass.
    pub fn watched_links(&self) -> Vec<(String, usize)> {
        let forward = self.links.iter().zip(0..).map(|(link, number)| (link.name.clone(), number));
        let media = |number: &usize| {
            self.flows.iter().any(|flow| flow.direction == Direction::Back && flow.path.contains(number))
        };
        let back = self.links.iter().zip(0..).filter(|(link, number)| media(number) && !link.half_duplex);
        let back = back.map(|(link, number)| (format!("{} (back)", link.name), self.links.len() + number));
        forward.chain(back).collect()
    }

    /// Returns the interval of the metrics of flows without reports: the report interval of the first session, or one
    /// second.
    pub fn metric_interval(&self) -> Span {
        self.flows.iter().find_map(Flow::report_interval).unwrap_or(Span::from_secs(1))
    }

    /// Returns the paths of a flow over several paths, in order.
    pub fn paths_of(&self, flow: &Flow) -> impl Iterator<Item = &Path> {
        let places = match &flow.kind {
            FlowKind::Multipath(multipath) => multipath.paths.as_slice(),
            FlowKind::Session { .. } | FlowKind::Background { .. } | FlowKind::Tcp(_) | FlowKind::Pair(_) => &[],
        };
        places.iter().filter_map(|&place| self.paths.get(place))
    }

    /// Returns the times of all planned steps on `path`: of the capacity, the delay or the loss of its links, and of
    /// the load of background traffic on them.
    pub fn steps_on(&self, path: &[usize]) -> Vec<Span> {
        let links = path.iter().filter_map(|&link| self.links.get(link));
        let capacity = links.flat_map(|link| [&link.forward, &link.back]).flat_map(link::steps);
        let sharing = self.flows.iter().filter(|flow| flow.path.iter().any(|link| path.contains(link)));
        let load = sharing.flat_map(|flow| match &flow.kind {
            FlowKind::Background { rate, .. } => rate.steps().iter().map(|&(at, _)| flow.start + at).collect(),
            FlowKind::Tcp(_) | FlowKind::Session { .. } | FlowKind::Multipath(_) | FlowKind::Pair(_) => Vec::new(),
        });
        let mut steps: Vec<_> = capacity.chain(load).collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    }
}
