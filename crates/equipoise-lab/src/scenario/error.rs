use std::fmt;
use std::io;

use equipoise::control::coupled::GroupError;
use equipoise::control::{ConfigError, UnmetNeeds};
use equipoise::units::{Size, Span, UnitError};
use equipoise_pair::tpba::TpbaError;
use equipoise_path::source::WebError;
use equipoise_path::video::SyntheticError;
use thiserror::Error;

use super::excerpt::{self, Place};
use super::link_problem::LinkProblem;
use super::media_problem::MediaProblem;
use super::nearest::{UnknownField, similar};

/// Why a scenario cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("the file cannot be read")]
    Read(#[from] io::Error),
    /// The text is not valid TOML, has an unknown key or a value of the wrong TOML type, or lacks a mandatory key.
    #[error("the text is no scenario")]
    Syntax(#[from] SyntaxError),
    /// The text is too long to be a scenario.
    #[error("the file is longer than {} kB, which no scenario is; give traces files of their own", most / 1000)]
    TooLong {
        /// Maximum length of a scenario, in bytes.
        most: usize,
    },
    /// A value in the text is wrong.
    #[error("line {line}, column {column}: {key} = {value}: {problem}")]
    Wrong {
        /// Line of the value, counted from 1.
        line: usize,
        /// Column of the value's first character, counted from 1.
        column: usize,
        /// The key to which the value belongs.
        key: String,
        /// The value as written in the file.
        value: String,
        /// What is wrong with the value, and which values would be valid.
        problem: Box<Problem>,
    },
    /// An override does not fit the scenario file, or makes the file invalid.
    #[error("override {path}: {problem}")]
    Override {
        /// The path of keys in the override.
        path: String,
        /// What is wrong with the override, and what would be valid.
        problem: Box<OverrideProblem>,
    },
    /// A value in the file conflicts with the overrides that changed the file, or a mandatory key is missing because an
    /// override removed it.
    #[error("with what is set, {}", changed(path, problem))]
    Changed {
        /// The path of the value in the file, written like the path of an override.
        path: String,
        /// What is wrong with the value, and which values would be valid.
        problem: Box<OverrideProblem>,
    },
}

/// Describes the error of a value. The text names the value by its path instead of its line.
fn changed(path: &str, problem: &OverrideProblem) -> String {
    match problem {
        OverrideProblem::Value { value, .. } => format!("{path} = {value}: {problem}"),
        _ if path.is_empty() => problem.to_string(),
        _ => format!("{path}: {problem}"),
    }
}

/// An error in a text that is not a scenario, with the position of the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line of the error, counted from 1.
    pub line: usize,
    /// Column of the error in the line, in characters counted from 1.
    pub column: usize,
    /// What is wrong with the text.
    pub message: String,
    /// Two lines of text: the line, or its part around the column, and a mark (`^`) below the column.
    pub excerpt: String,
}

impl SyntaxError {
    pub(super) fn new(text: &str, error: &toml::de::Error) -> Self {
        let place = Place::of(text, error.span().map_or(0, |span| span.start));
        let Place { line, column } = place;
        let unknown = UnknownField::of(error.message());
        let similar = unknown.map(|unknown| similar(unknown.name, unknown.known)).unwrap_or_default();
        let message = excerpt::message(&format!("{}{similar}", error.message()));
        Self { line, column, message, excerpt: excerpt::line(text, place) }
    }
}

impl std::error::Error for SyntaxError {}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}\n{}", self.line, self.column, self.message, self.excerpt)
    }
}

/// What is wrong with an override: either its path or its value.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OverrideProblem {
    /// The path of the override is not a chain of keys.
    #[error("a path is a chain of keys between dots, such as flow.media.start; a name with a dot stands in quotes")]
    Path,
    /// No section has this name.
    #[error("there is no {what} `{name}`; there are: {known}")]
    UnknownName {
        /// The kind of section: `link`, `path` or `flow`.
        what: String,
        /// The name in the path.
        name: String,
        /// The names of the existing sections.
        known: String,
    },
    /// A list in the file does not have the entry that the path names.
    #[error("`{list}` has no entry {entry}; it has {length}, which count from 0")]
    NoSuchEntry {
        /// The key of the list.
        list: String,
        /// The entry that the path names.
        entry: String,
        /// The number of entries; 0 if the file omits the list.
        length: usize,
    },
    /// The path continues after a plain value, which has no keys.
    #[error("`{key}` is a plain value ({found}) and has no key `{next}`; the path must end there")]
    NotATable {
        /// The key or the list entry at which the scenario has a plain value.
        key: String,
        /// The value's type in TOML.
        found: &'static str,
        /// The key that follows in the path.
        next: String,
    },
    /// An override names a key that no scenario can have at this position.
    #[error("unknown field `{key}`{similar}; there are: {known}")]
    UnknownKey {
        /// The unknown key.
        key: String,
        /// The valid keys at this position.
        known: String,
        /// Text that suggests the most similar key; empty if no key is similar.
        similar: String,
    },
    /// The value has the wrong TOML type, or is a table that lacks a key.
    #[error("{message}; a text that reads as a number stands in quotes within the shell's: KEY='\"2\"'")]
    Mistyped {
        /// Which type the value has and which type it should have, or which key the table lacks.
        message: String,
    },
    /// The value is wrong, or conflicts with other values.
    #[error("{problem}{similar}")]
    Value {
        /// The value, in TOML.
        value: String,
        /// What is wrong with the value, and which values would be valid.
        problem: Box<Problem>,
        /// Text that suggests a similar parameter; empty unless the problem is an unknown parameter and another
        /// parameter is similar.
        similar: String,
    },
    /// The override removes a key that is not in the file.
    #[error("there is no `{key}` to remove; there are: {known}")]
    NothingToRemove {
        /// The key that should be removed.
        key: String,
        /// The keys that exist at this position.
        known: String,
    },
}

/// What is wrong with a value in a scenario.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The value is not a quantity of the required kind.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The parameters of a controller, or of another entry of the catalogue, are invalid.
    #[error(transparent)]
    Controller(#[from] ConfigError),
    /// The flow does not provide what the controller needs.
    #[error(transparent)]
    Needs(#[from] UnmetNeeds),
    /// The configuration of a link is invalid.
    #[error(transparent)]
    Link(#[from] LinkProblem),
    /// The link of a playout buffer is not a plain queue.
    #[error("the link of a playout has a rate, a delay and a drop-tail queue, and nothing happens by chance on it")]
    PlayoutNotPlain,
    /// The flow cannot use ECN, because its receiver does not report congestion marks.
    #[error("only a session with a `controller` can bear marks")]
    EcnOfWhat,
    /// The flow's media cannot travel in the reverse direction, because the flow has several paths or a playout buffer.
    #[error("only a flow over one `path` and without a `playout` can go back")]
    WhatGoesBack,
    /// The flow's session cannot have media in both directions.
    #[error(
        "media come back in the session of a flow with a `controller` and one `path`, without `back` and `playout`"
    )]
    WhatMediaBack,
    /// The settings of the flow pair's periods are invalid.
    #[error(transparent)]
    Tpba(#[from] TpbaError),
    /// A quantity is zero or negative, but must be above zero.
    #[error("must be above zero")]
    NotPositive,
    /// A quantity is negative, but must not be.
    #[error("must not be negative")]
    Negative,
    /// The warm-up is not shorter than the run, so no time is left for measurements.
    #[error("must be below the duration, {duration}")]
    WarmUpTooLong {
        /// The duration of the run.
        duration: Span,
    },
    /// A time is not before the end of the run: the start of a flow, the time of a step, or the start or the end of an
    /// outage or of a pause.
    #[error("must be before the end of the run at {duration}")]
    AfterTheEnd {
        /// The duration of the run; for a step of background traffic, the time from the flow's start to the run's end.
        duration: Span,
    },
    /// A time in a list of steps, outages or pauses is not later than the previous time in the list.
    #[error("must be after the step before it, at {previous}")]
    StepOrder {
        /// The previous time in the list.
        previous: Span,
    },
    /// Another section of the same kind already uses the name.
    #[error("there is another {what} of this name; give each its own")]
    NameTaken {
        /// The kind of section: a link, a path or a flow.
        what: &'static str,
    },
    /// A name is empty or too long.
    #[error("a name has 1 to {most} characters")]
    NameLength {
        /// The maximum number of characters in a name.
        most: usize,
    },
    /// A path uses a link that does not exist.
    #[error("there is no such link; there are: {known}")]
    UnknownLink {
        /// The names of the existing links.
        known: String,
    },
    /// A path uses the same link twice.
    #[error("the path already goes over this link; a path takes each link once")]
    LinkTwice,
    /// A path has no link.
    #[error("a path takes at least one link")]
    EmptyPath,
    /// The packets are smaller than the minimum, which has room for the headers, or too large for an Ethernet frame.
    #[error("must be between {min}, which holds the headers, and {max}, which fits a frame")]
    PacketSize {
        /// The smallest valid packet size.
        min: Size,
        /// The largest valid packet size.
        max: Size,
    },
    /// The keys of a flow do not fit exactly one kind of flow: a session with a controller, background traffic, a TCP
    /// connection, or a flow pair.
    #[error(
        "a flow has either `controller` and `report_interval`, or `window` or `kernel` or both, or only a `source`, or a `pair`"
    )]
    WhatFlow,
    /// Only a TCP connection can have this key.
    #[error("only a TCP connection, a flow with `window` or `kernel`, has this")]
    OnlyWithWindow,
    /// The name of the kernel's congestion control is empty or too long, or has invalid characters.
    #[error("a congestion control's name has 1 to {most} characters, such as \"cubic\"")]
    KernelName {
        /// The maximum number of characters in a name.
        most: usize,
    },
    /// A connection stops before it starts, or at the same time.
    #[error("must be after the flow's start at {start}")]
    StopBeforeStart {
        /// The start of the flow.
        start: Span,
    },
    /// A number of segments is out of range.
    #[error("must be between 1 and {most} segments")]
    Segments {
        /// The maximum number of segments.
        most: u64,
    },
    /// The value is not one of the allowed words.
    #[error("must be {known}")]
    NotAWord {
        /// The allowed words.
        known: String,
    },
    /// The source of the bandwidth information is unknown.
    #[error("there is no such source of bandwidth; use known or inline")]
    UnknownBandwidth,
    /// A known bandwidth lacks the interval at which the window law is informed of the bandwidth.
    #[error("a known bandwidth needs an `interval`, such as \"400 ms\"")]
    NoMeasurementInterval,
    /// The bandwidth is measured from the connection's own packets ("inline"), but `interval` or `noise` is set. Both
    /// keys apply only to a bandwidth that the simulator knows.
    #[error("an inline measurement takes neither `interval` nor `noise`")]
    InlineNeedsNothing,
    /// A connection has both a finite transfer and a rate, but can have only one of them.
    #[error("a connection has either `transfer` or `rate`")]
    TransferOrRate,
    /// The configuration of the web traffic is invalid.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The sizes of fetches are not two values, the smallest and the largest.
    #[error("must be the smallest and the largest size of a fetch, such as [\"30 kB\", \"50 kB\"]")]
    TwoSizes,
    /// The key applies only to a single connection, but web traffic opens one connection for each fetch.
    #[error(
        "a flow with `web` does not have this: it opens a connection by a handshake for each fetch, which sends that and knows nothing of the path"
    )]
    NotOfWeb,
    /// The sample interval is so short that there would be too many samples.
    #[error("must be {least} or more")]
    TooManySamples {
        /// The shortest valid sample interval.
        least: Span,
    },
    /// A session with a controller lacks its report interval.
    #[error("a flow with a `controller` needs a `report_interval`, such as \"1 s\"")]
    NoReportInterval,
    /// The flow cannot have per-packet feedback: it has no controller, its session has media in both directions, or it
    /// has several paths and its controller does not use such feedback.
    #[error(
        "only a flow with a `controller` over one `path`, and without `media_back`, has feedback by packet, or one over several `paths` whose controller uses it"
    )]
    FeedbackOfWhat,
    /// The feedback format of a flow over several paths is wrong, because packets of several paths have no
    /// transport-wide sequence numbers.
    #[error(
        "must be \"rfc8888\" for a flow over several `paths`: reports are by the numbers that packets have on each path"
    )]
    FormatOfPaths,
    /// The flow cannot be in a group, because it is not a session with a controller over one path.
    #[error("only a flow with a `controller` over one `path` shares the rate of a group")]
    GroupOfWhat,
    /// The flow cannot be in this group.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The flows of a group do not all have the same coupling.
    #[error("the flows of a group have one `coupling`; another flow of this group has the other")]
    OneCoupling,
    /// The interval of per-packet feedback is out of range.
    #[error("must be {min} to {max}")]
    FeedbackInterval {
        /// The shortest valid feedback interval.
        min: Span,
        /// The longest valid feedback interval.
        max: Span,
    },
    /// Reports would be so frequent that each one covers too few packets.
    #[error("must be {min} or more")]
    ReportInterval {
        /// The shortest valid report interval.
        min: Span,
    },
    /// The value of a parameter has a TOML type that the parameter cannot have, such as a list or a table.
    #[error("a parameter is a text with its unit, or a plain number")]
    NotAParameter,
    /// A source lacks its rate.
    #[error("a {kind} source needs a `rate`, such as \"1 Mbit/s\"")]
    NoRate {
        /// The kind of source.
        kind: String,
    },
    /// The content of a session or a connection has no `length`.
    #[error("what a flow with a `controller`, a `window` or a `kernel` has to send needs a `length`, such as \"30 s\"")]
    NoLength,
    /// The key applies only to other kinds of sources.
    #[error("a {kind} source does not have this; {known}")]
    NotOfThisSource {
        /// The kind of this source.
        kind: String,
        /// End of the message: which flows or sources can have the key, or which keys this kind of source can have.
        known: &'static str,
    },
    /// The kind of content is unknown.
    #[error(
        "what a flow with a `controller`, a `window` or a `kernel` has to send is constant or video; with a `controller` also encoder or audio"
    )]
    UnknownContent,
    /// A video has no trace and lacks the peak or the coefficient of variation of its frame sizes, or it has a trace
    /// together with one of these numbers.
    #[error("a video needs either a `trace`, or `peak` and `cv`: largest and spread of its frames over their mean")]
    NoMoments,
    /// A number is not above zero, or is above its maximum.
    #[error("must be above zero, and at most {most}")]
    OutOfRange {
        /// The largest valid number.
        most: f64,
    },
    /// A group of pictures contains letters other than I, P and B, is empty, or is too long.
    #[error("must be made of I, P and B, and 1 to {most} of them")]
    Pattern {
        /// The maximum number of letters.
        most: usize,
    },
    /// No synthetic video can have the given properties.
    #[error(transparent)]
    Synthetic(#[from] SyntheticError),
    /// The flow cannot have a playout buffer, because it is not a session with a controller.
    #[error("only a flow with a `controller` has a playout")]
    PlayoutOfWhat,
    /// `playout` names the link whose queue is the receiver's playout buffer. This link is not on the flow's path, or
    /// is the first link of the path.
    #[error("must be a link of the path, and not its first, as the packets have to come there")]
    PlayoutOffPath,
    /// A TCP connection has both a source and another specification of its data.
    #[error("a connection with a `source` has neither `transfer` nor `rate`")]
    SourceOrSupply,
    /// The configuration of live media is invalid.
    #[error(transparent)]
    Media(#[from] MediaProblem),
    /// The target delay can never be reached.
    #[error("is below the path's propagation delay of {propagation}; the target must be above it")]
    TargetBelowPropagation {
        /// Sum of the propagation delays of the path's links; for a flow over several paths, the smallest such sum.
        propagation: Span,
    },
    /// A flow has neither `path` nor `paths`, or has both.
    #[error("a flow has either a `path`, the names of its links, or `paths`, the names of `[[path]]` sections")]
    PathOrPaths,
    /// A flow over several paths is not a session with a controller, or lacks a mandatory key.
    #[error("a flow with `paths` has a `controller` for its total, a `report_interval` and a `scheduler`")]
    WhatMultipath,
    /// Only a flow over several paths can have this key.
    #[error("only a flow with `paths` has this")]
    OnlyWithPaths,
    /// The number of a flow's paths is out of range.
    #[error("a flow has 1 to {most} paths")]
    HowManyPaths {
        /// The maximum number of paths.
        most: usize,
    },
    /// A flow uses a path that does not exist.
    #[error("there is no such `[[path]]`; there are: {known}")]
    UnknownPath {
        /// The names of the existing paths.
        known: String,
    },
    /// A flow uses the same path twice.
    #[error("the flow already has this path")]
    PathTwice,
    /// Two paths of a flow have different names but the same links.
    #[error("takes the same links as {other}, which the flow already has; paths differ in a link at least")]
    SameLinks {
        /// Name of the other path with the same links.
        other: String,
    },
    /// The time between two divisions of the rate among the paths is shorter than the report interval, but each
    /// division needs new reports.
    #[error("must be the report interval, {min}, or more")]
    Period {
        /// The report interval of the flow.
        min: Span,
    },
    /// The catalogue has no entry with this name.
    #[error("there is no such {what}; there are: {known}")]
    UnknownEntry {
        /// The kind of entry, such as a controller.
        what: &'static str,
        /// The names of the existing entries.
        known: String,
    },
    /// A table that selects an entry of the catalogue lacks the entry's name.
    #[error("a {what} needs a `name`: {known}")]
    NoEntryName {
        /// The kind of entry, such as a controller.
        what: &'static str,
        /// The names of the existing entries.
        known: String,
    },
    /// The scheduler uses a path that the flow does not have.
    #[error("the flow has {paths} paths, which count from 0 in the order of `paths`")]
    NoSuchPath {
        /// The number of the flow's paths.
        paths: usize,
    },
    /// A flow over several paths has a source, but only a flow over one path can have a source.
    #[error("a flow with `paths` sends as much as its rate allows; it has no `source`")]
    ContentOverPaths,
    /// A flow over several paths has a playout buffer, which its receiver does not support.
    #[error("a flow with `paths` has no playout buffer")]
    PlayoutOverPaths,
    /// A flow pair lacks one of its halves, or has keys of another kind of flow.
    #[error(
        "a flow with `pair` has a `path`, a `report_interval` for its RTP half, and `window` or `kernel` or both for its TCP half; it has no `controller`, no `source` and no `playout`"
    )]
    WhatPair,
    /// The key applies only to a TCP connection that is a flow of its own, but this connection is half of a flow
    /// pair.
    #[error(
        "the TCP half of a flow pair does not have this: it sends what the pair writes, as long as the pair does, and keeps its window over idleness"
    )]
    NotOfAPair,
    /// An application data unit (ADU) is empty or longer than the wire format allows.
    #[error("must be between 1 B and {most}")]
    AduSize {
        /// The largest valid ADU.
        most: Size,
    },
    /// The end of a probing interval is specified in two ways.
    #[error("a flow pair has either `interval` or `between_reductions`")]
    IntervalOrReductions,
    /// The control law for running periods is unknown.
    #[error("there is no such running law; use loss or ap")]
    UnknownRunningLaw,
    /// The control law of a flow pair's running periods lacks a parameter, or has a parameter of another law.
    #[error("loss has `adapt`, `reduction_factor` and `min_rate`; ap has a `target`, and `min_rate`")]
    RunningParameters,
    /// The key is about RTCP, but the flow is not sent over RTP and so has no RTCP.
    #[error("only a flow over RTP has this: one with a `controller` or a `pair`")]
    OnlyOverRtp,
    /// A flow over several paths has the key `back`, which defines a separate route for feedback. Only a flow over one
    /// path can have such a route.
    #[error("only a flow with one `path` has a way `back`")]
    BackOverPaths,
    /// The number of sections of some kind is out of range.
    #[error("a scenario has {least} to {most} `[[{what}]]` sections")]
    HowMany {
        /// The kind of section: `link`, `path` or `flow`.
        what: &'static str,
        /// The minimum number of sections.
        least: usize,
        /// The maximum number of sections.
        most: usize,
    },
}
