//! A scenario, which consists of links, flows, load steps and a seed. The simulator and live runs use the same
//! scenario.
//!
//! A scenario file is TOML. Every quantity is a string with its unit, and unknown keys are refused. The error message
//! for an invalid value states the line, the key, the value, and which values are valid. A scenario that
//! [`Scenario::parse`] returns is valid. Its cost ([`Scenario::check_budget`]) and the trace files of its `video`
//! sources are checked later.

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

/// Maximum length of a scenario's text, in bytes. Ten flows or links, each with one step per second for ten minutes,
/// need about a tenth of this length. Parsing a longer text could take seconds and hundreds of megabytes.
const MOST_TEXT: usize = 2_000_000;

/// A scenario that has been checked and can be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: String,
    /// The author's description of what the scenario shows.
    pub description: String,
    /// The complete text of the scenario file. If there are overrides, they have been applied to this text.
    pub text: String,
    /// Length of a run.
    pub duration: Span,
    /// Length of the warm-up at the start of a run. Mean values exclude the warm-up.
    pub warm_up: Span,
    /// Seed of the first run.
    pub seed: u64,
    /// Time between two samples. The scenario's settings determine what is sampled: see
    /// [`is_sampled`](Self::is_sampled) for the states of connections and links, and
    /// [`receiver_rates`](Self::receiver_rates) for the rates at the receivers.
    pub sample_interval: Span,
    /// Whether the rates of IP packets at the receivers of all flows are sampled. For flow pairs, these rates are
    /// always sampled.
    pub receiver_rates: bool,
    /// The links, each with a forward and a reverse direction.
    pub links: Vec<Link>,
    /// The paths that flows over several paths can use.
    pub paths: Vec<Path>,
    /// The flows, in the order of the scenario file.
    pub flows: Vec<Flow>,
}

/// A flow: a session with a controller over one or several paths, background traffic, a TCP connection, or a flow pair.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Name of the flow.
    pub name: String,
    /// The links that the flow's media pass, as indices into [`Scenario::links`], in the order of the forward
    /// direction. For a flow over several paths, these are the links of all its paths, in the order of the scenario
    /// file. Reports return over the opposite direction of these links, unless [`back`](Self::back) is set.
    pub path: Vec<usize>,
    /// The links of a separate route for reports and acknowledgements, in order, each passed in its forward direction.
    /// `None` if reports return over the opposite direction of the links in [`path`](Self::path).
    pub back: Option<Vec<usize>>,
    /// The direction in which the flow's media pass the links.
    pub direction: Direction,
    /// ECN codepoint of the flow's media packets, which determines whether queues may mark them.
    pub ecn: Ecn,
    /// Size of a full IP packet of the flow. For a flow pair, this is the size of a full IP packet that carries RTP.
    pub packet_size: Size,
    /// Whether the circuit breakers of a session are active (RFC 8083, Sec. 4).
    pub circuit_breakers: bool,
    /// Time at which the flow starts, since the run's start.
    pub start: Span,
    /// Time spans in which a session has nothing to send; for other flows, empty.
    pub pauses: Vec<Outage>,
    /// RTCP settings of a flow over RTP.
    pub rtcp: Rtcp,
    /// Which direction of a session with media in both directions this flow describes; `None` for a session with media
    /// in one direction. The flow of the reverse media directly follows the flow of the forward media.
    pub part: Option<DuplexPart>,
    /// What the flow sends.
    pub kind: FlowKind,
}

/// Settings that determine the sizes and times of a flow's RTCP packets. Without these settings, sizes and times follow
/// from the run's seed and the flow's index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rtcp {
    /// Canonical name (CNAME) of the sender (RFC 3550, Sec. 6.5.1).
    pub sender: Option<String>,
    /// Canonical name (CNAME) of the receiver.
    pub receiver: Option<String>,
    /// Seed of the flow's SSRC and of the times of its compound RTCP packets (RFC 3550, Sec. 6.2).
    pub seed: Option<u64>,
}

/// One direction of a session with media in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplexPart {
    /// The forward media, which travel in the direction that the scenario file states for the flow.
    There,
    /// The reverse media, which travel in the opposite direction in the same session.
    Back,
}

/// What a flow sends.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FlowKind {
    /// A session that sends media at the rate of a controller over one path.
    Session {
        /// The controller with its parameters.
        controller: Choice,
        /// Time between two requests for a receiver report.
        report_interval: Span,
        /// How the session's receiver reports about single packets; `None` if it does not.
        reporting: Option<Reporting>,
        /// The media that the session sends.
        media: MediaChoice,
        /// Index, in [`Scenario::links`], of the link whose queue is the receiver's playout buffer. The flow's path
        /// contains this link, but packets leave the network before this link. `None` if the receiver has no playout
        /// buffer.
        playout: Option<usize>,
        /// The one-way delay that the controller tries to reach; `None` if it has no target.
        target: Option<Span>,
        /// The group with which the session shares its rate; `None` if the session is in no group.
        coupled: Option<CoupledFlow>,
    },
    /// Background traffic: packets at the times that a traffic model determines.
    Background {
        /// The traffic model with its parameters.
        traffic: TrafficChoice,
        /// Rate of the traffic over time, with times since the flow's start.
        rate: Schedule<Rate>,
    },
    /// A TCP connection.
    Tcp(TcpFlow),
    /// A session that sends media at the rate of a controller, distributed over several paths.
    Multipath(MultipathFlow),
    /// A flow pair, which sends application data units alternately over TCP and RTP.
    Pair(PairFlow),
}

/// The media of a session.
#[derive(Clone, Debug)]
pub enum MediaChoice {
    /// As much data as the rate allows.
    Unlimited,
    /// Finite content, which is sent until its end.
    Content(ContentChoice),
    /// Live video, live audio, or both. The sizes of video frames follow the rate.
    Live(LiveChoice),
}

impl Flow {
    /// The target delay of a session or a flow pair; `None` if the flow has no target.
    pub const fn target(&self) -> Option<Span> {
        match &self.kind {
            FlowKind::Session { target, .. } | FlowKind::Multipath(MultipathFlow { target, .. }) => *target,
            FlowKind::Pair(pair) => pair.target(),
            FlowKind::Background { .. } | FlowKind::Tcp(_) => None,
        }
    }

    /// The index of the link whose queue is the receiver's playout buffer; `None` if the receiver has no playout
    /// buffer. The flow's packets leave the network before this link.
    pub const fn playout(&self) -> Option<usize> {
        match self.kind {
            FlowKind::Session { playout, .. } => playout,
            FlowKind::Background { .. } | FlowKind::Tcp(_) | FlowKind::Multipath(_) | FlowKind::Pair(_) => None,
        }
    }

    /// The finite content of a session or a TCP connection; `None` if the flow has none.
    pub const fn content(&self) -> Option<&ContentChoice> {
        match &self.kind {
            FlowKind::Session { media: MediaChoice::Content(content), .. } => Some(content),
            FlowKind::Tcp(tcp) => tcp.content.as_ref(),
            _ => None,
        }
    }

    /// The live media of a session; `None` if the flow sends none.
    pub const fn live(&self) -> Option<&LiveChoice> {
        match &self.kind {
            FlowKind::Session { media: MediaChoice::Live(live), .. } => Some(live),
            _ => None,
        }
    }

    /// How the receiver of a session reports about single packets; `None` if it does not.
    pub const fn reporting(&self) -> Option<Reporting> {
        match &self.kind {
            FlowKind::Session { reporting, .. } => *reporting,
            FlowKind::Multipath(multipath) => multipath.reporting,
            _ => None,
        }
    }

    /// The group with which a session shares its rate; `None` if the flow is in no group.
    pub const fn coupled(&self) -> Option<&CoupledFlow> {
        match &self.kind {
            FlowKind::Session { coupled, .. } => coupled.as_ref(),
            _ => None,
        }
    }

    /// The links that the flow's packets pass in the network: those before the playout buffer, or all links of
    /// [`path`](Self::path) if the flow has no playout buffer.
    pub fn network(&self) -> &[usize] {
        let whole = self.path.as_slice();
        let playout = self.playout().and_then(|playout| whole.iter().position(|link| *link == playout));
        playout.and_then(|playout| whole.get(..playout)).unwrap_or(whole)
    }

    /// The TCP connection of a TCP flow or of a flow pair's TCP half; `None` for other flows.
    pub const fn connection(&self) -> Option<&TcpFlow> {
        match &self.kind {
            FlowKind::Tcp(tcp) | FlowKind::Pair(PairFlow { tcp, .. }) => Some(tcp),
            FlowKind::Session { .. } | FlowKind::Background { .. } | FlowKind::Multipath(_) => None,
        }
    }

    /// The report interval of a session or of a flow pair's RTP half; `None` for other flows.
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
    /// Reads and checks a scenario file.
    ///
    /// # Errors
    /// [`ScenarioError`] if the file cannot be read or is too long, and the errors of [`Scenario::parse`].
    pub fn read(path: &path::Path) -> Result<Self, ScenarioError> {
        Self::parse(&Self::read_text(path)?)
    }

    /// Reads the text of a scenario file, and checks only that the text is UTF-8 and not too long.
    ///
    /// # Errors
    /// [`ScenarioError::Read`] if the file cannot be read or is not UTF-8, and [`ScenarioError::TooLong`].
    pub fn read_text(path: &path::Path) -> Result<String, ScenarioError> {
        let mut bytes = Vec::new();
        // Reads at most one byte more than the maximum, so that a file that is too long is detected.
        File::open(path)?.take(MOST_TEXT as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MOST_TEXT {
            return Err(ScenarioError::TooLong { most: MOST_TEXT });
        }
        let not_utf8 = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8").into();
        String::from_utf8(bytes).map_err(not_utf8)
    }

    /// Checks the text of a scenario file. The text can name the controllers, window laws, schedulers and traffic
    /// models of this library.
    ///
    /// # Errors
    /// [`ScenarioError`] for the first error that the checks find.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, &[])
    }

    /// Applies overrides in their order to the text of a scenario file, and checks the result.
    ///
    /// [`Scenario::text`] is the changed text, which has no comments if there are overrides.
    ///
    /// # Errors
    /// - [`ScenarioError::Override`] if an override cannot be applied to the file, sets an unknown key, or sets an
    ///   invalid value.
    /// - [`ScenarioError::Changed`] if the overrides cause an error that cannot be attributed to one of them: another
    ///   value of the file conflicts with them, or a mandatory key has been removed.
    /// - The errors of [`Scenario::parse`] if the file itself is wrong.
    pub fn parse_with(text: &str, overrides: &[Override]) -> Result<Self, ScenarioError> {
        Self::parse_in(&Catalogue::default(), text, overrides)
    }

    /// Checks a text with overrides, as [`Scenario::parse_with`] does. The text can name every entry of `catalogue`.
    ///
    /// # Errors
    /// The errors of [`Scenario::parse_with`].
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

    /// Whether the states of connections and links are sampled. This is the case if the scenario has TCP flows, flow
    /// pairs or playout buffers, or if it requests the rates at the receivers.
    pub fn is_sampled(&self) -> bool {
        let is_sampled =
            |flow: &Flow| matches!(flow.kind, FlowKind::Tcp(_) | FlowKind::Pair(_)) || flow.playout().is_some();
        self.receiver_rates || self.flows.iter().any(is_sampled)
    }

    /// Whether a live run of this scenario needs the kernel's congestion control with this name.
    pub fn wants_of_kernel(&self, name: &str) -> bool {
        self.flows.iter().any(|flow| flow.connection().is_some_and(|tcp| tcp.congestion_control() == name))
    }

    /// Checks whether the simulator can run the scenario with reasonable time and memory.
    ///
    /// # Errors
    /// [`OverBudget`], whose message names the number that is too large and the keys to change.
    pub fn check_budget(&self) -> Result<(), OverBudget> {
        budget::check(self)
    }

    /// Returns the maximum number of runs whose time series may be kept in memory, 1 to 1000.
    pub fn runs_with_series(&self) -> u32 {
        budget::runs_with_series(self)
    }

    /// Describes the scenario in words: its links and flows, and the load of the links.
    pub fn explain(&self) -> String {
        explain::explain(self)
    }

    /// Returns the minimum propagation delay of a path in a direction. Jitter does not count, and if the delay of a
    /// link takes steps, its smallest delay counts.
    pub fn propagation_delay(&self, path: &[usize], direction: Direction) -> Span {
        let least = |link: &Link| link.direction(direction).delay.values().min().unwrap_or(Span::ZERO);
        path.iter().filter_map(|&link| self.links.get(link)).fold(Span::ZERO, |sum, link| sum + least(link))
    }

    /// Returns the links of a path, in the order in which packets pass them in `direction`. Each link is given by the
    /// index of its direction ([`Link::place`]).
    pub fn way(&self, path: &[usize], direction: Direction) -> Vec<usize> {
        let place = |&number: &usize| Some(self.links.get(number)?.place(number, direction, self.links.len()));
        let mut way: Vec<usize> = path.iter().filter_map(place).collect();
        if direction == Direction::Back {
            way.reverse();
        }
        way
    }

    /// Returns two lists of link directions: the link directions that a flow's media cross on `path`, and the link
    /// directions that the flow's feedback crosses. Each list has the form that [`way`](Self::way) returns.
    pub fn ways(&self, flow: &Flow, path: &[usize]) -> [Vec<usize>; 2] {
        let back = || self.way(path, flow.direction.reversed());
        let there = self.way(path, flow.direction);
        [there, flow.back.as_ref().map_or_else(back, |back| self.way(back, Direction::Forward))]
    }

    /// Returns the name and the index of each link direction whose counters are reported. The forward direction of
    /// every link is reported. The reverse direction of a link is reported if a flow with the direction
    /// [`Direction::Back`] uses the link. A half-duplex link has no separate reverse direction.
    pub fn watched_links(&self) -> Vec<(String, usize)> {
        let forward = self.links.iter().zip(0..).map(|(link, number)| (link.name.clone(), number));
        let media = |number: &usize| {
            self.flows.iter().any(|flow| flow.direction == Direction::Back && flow.path.contains(number))
        };
        let back = self.links.iter().zip(0..).filter(|(link, number)| media(number) && !link.half_duplex);
        let back = back.map(|(link, number)| (format!("{} (back)", link.name), self.links.len() + number));
        forward.chain(back).collect()
    }

    /// Returns the interval over which metrics of flows without reports are measured. This is the report interval of
    /// the first flow with reports. If no flow has reports, the interval is one second.
    pub fn metric_interval(&self) -> Span {
        self.flows.iter().find_map(Flow::report_interval).unwrap_or(Span::from_secs(1))
    }

    /// Returns the paths of a flow over several paths, in the flow's order; nothing for a flow over one path.
    pub fn paths_of(&self, flow: &Flow) -> impl Iterator<Item = &Path> {
        let places = match &flow.kind {
            FlowKind::Multipath(multipath) => multipath.paths.as_slice(),
            FlowKind::Session { .. } | FlowKind::Background { .. } | FlowKind::Tcp(_) | FlowKind::Pair(_) => &[],
        };
        places.iter().filter_map(|&place| self.paths.get(place))
    }

    /// Returns the times of all planned steps on `path`: steps of the capacity, the delay or the loss of its links, and
    /// steps of the load of background traffic on these links.
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
