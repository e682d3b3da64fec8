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
    /// The text is not TOML, has an unknown key, or lacks a mandatory key.
    #[error("the text is no scenario")]
    Syntax(#[from] SyntaxError),
    /// The text is too long to be a scenario.
    #[error("the file is longer than {} kB, which no scenario is; give traces files of their own", most / 1000)]
    TooLong {
        /// Maximum length of a scenario, in bytes.
        most: usize,
    },
    /// A value is wrong.
    #[error("line {line}, column {column}: {key} = {value}: {problem}")]
    Wrong {
        /// Line of the value, from 1.
        line: usize,
        /// Column of its first character, from 1.
        column: usize,
        /// The key it belongs to.
        key: String,
        /// The value as written.
        value: String,
        /// What is wrong with it and what would be valid.
        problem: Box<Problem>,
    },
    /// An override does not fit the file.
    #[error("override {path}: {problem}")]
    Override {
        /// The path of the override.
        path: String,
        /// What is wrong with it and what would be valid.
        problem: Box<OverrideProblem>,
    },
    /// A value of the file does not fit the file as the overrides changed it.
    #[error("with what is set, {}", changed(path, problem))]
    Changed {
        /// The path of the value, in the form of an override's path.
        path: String,
        /// What is wrong with it and what would be valid.
        problem: Box<OverrideProblem>,
    },
}

/// Names a value by its path, not by a line, and says what is wrong with it.
fn changed(path: &str, problem: &OverrideProblem) -> String {
    match problem {
        OverrideProblem::Value { value, .. } => format!("{path} = {value}: {problem}"),
        _ if path.is_empty() => problem.to_string(),
        _ => format!("{path}: {problem}"),
    }
}

/// What is wrong with a text that is not a scenario, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The line, or the part of it around the column, with a mark at the column below it.
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

/// What is wrong with an override: its path, or its value.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OverrideProblem {
    /// The path is not a chain of keys.
    #[error("a path is a chain of keys between dots, such as flow.media.start; a name with a dot stands in quotes")]
    Path,
    /// No section has this name.
    #[error("there is no {what} `{name}`; there are: {known}")]
    UnknownName {
        /// `link`, `path` or `flow`.
        what: String,
        /// The name in the path.
        name: String,
        /// The existing names.
        known: String,
    },
    /// The list has no such entry.
    #[error("`{list}` has no entry {entry}; it has {length}, which count from 0")]
    NoSuchEntry {
        /// The key of the list.
        list: String,
        /// The entry that the path names.
        entry: String,
        /// The number of entries; 0 if the file omits the list.
        length: usize,
    },
    /// The path continues after a plain value.
    #[error("`{key}` is a plain value ({found}) and has no key `{next}`; the path must end there")]
    NotATable {
        /// The key or the entry of the value.
        key: String,
        /// The value's type in TOML.
        found: &'static str,
        /// The key that follows in the path.
        next: String,
    },
    /// No scenario has this key.
    #[error("unknown field `{key}`{similar}; there are: {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The valid keys at this position.
        known: String,
        /// Text about the most similar key; empty if none is similar.
        similar: String,
    },
    /// The value has the wrong TOML type, or lacks a key.
    #[error("{message}; a text that reads as a number stands in quotes within the shell's: KEY='\"2\"'")]
    Mistyped {
        /// What its type is, and what it should be.
        message: String,
    },
    /// The value is wrong, or does not fit other values.
    #[error("{problem}{similar}")]
    Value {
        /// The value in TOML.
        value: String,
        /// What is wrong with it and what would be valid.
        problem: Box<Problem>,
        /// Text about a similar key, if the key is unknown; empty if none is similar.
        similar: String,
    },
    /// The key to be removed is not in the file.
    #[error("there is no `{key}` to remove; there are: {known}")]
    NothingToRemove {
        /// The key.
        key: String,
        /// The existing keys.
        known: String,
    },
}

/// What is wrong with a value.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is not a quantity of the right kind.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The parameters of the controller are invalid.
    #[error(transparent)]
    Controller(#[from] ConfigError),
    /// The flow does not provide what the controller needs.
    #[error(transparent)]
    Needs(#[from] UnmetNeeds),
    /// The configuration of the link is invalid.
    #[error(transparent)]
    Link(#[from] LinkProblem),
    /// A playout buffer must be a plain queue.
    #[error("the link of a playout has a rate, a delay and a drop-tail queue, and nothing happens by chance on it")]
    PlayoutNotPlain,
    /// Only flows whose receiver reports congestion marks can be ECN-capable.
    #[error("only a session with a `controller` can bear marks")]
    EcnOfWhat,
    /// Only a flow over one path and without a playout buffer can send its media in the reverse direction.
    #[error("only a flow over one `path` and without a `playout` can go back")]
    WhatGoesBack,
    /// The flow's session cannot have media in both directions.
    #[error(
        "media come back in the session of a flow with a `controller` and one `path`, without `back` and `playout`"
    )]
    WhatMediaBack,
    /// The periods of the flow pair are invalid.
    #[error(transparent)]
    Tpba(#[from] TpbaError),
    /// The time must be above zero.
    #[error("must be above zero")]
    NotPositive,
    /// The time must not be negative.
    #[error("must not be negative")]
    Negative,
    /// The warm-up leaves no time to measure.
    #[error("must be below the duration, {duration}")]
    WarmUpTooLong {
        /// The duration.
        duration: Span,
    },
    /// A flow starts, or a step happens, at or after the end of the run.
    #[error("must be before the end of the run at {duration}")]
    AfterTheEnd {
        /// The duration.
        duration: Span,
    },
    /// A step is not after the step before it.
    #[error("must be after the step before it, at {previous}")]
    StepOrder {
        /// Time of the step before.
        previous: Span,
    },
    /// The name is already in use.
    #[error("there is another {what} of this name; give each its own")]
    NameTaken {
        /// A link, a path or a flow.
        what: &'static str,
    },
    /// The name is empty or too long for a table.
    #[error("a name has 1 to {most} characters")]
    NameLength {
        /// The maximum number of characters.
        most: usize,
    },
    /// A path uses a link that does not exist.
    #[error("there is no such link; there are: {known}")]
    UnknownLink {
        /// The existing links.
        known: String,
    },
    /// A path uses a link twice.
    #[error("the path already goes over this link; a path takes each link once")]
    LinkTwice,
    /// A path has no links.
    #[error("a path takes at least one link")]
    EmptyPath,
    /// The packets are too small for the session's headers or too large for an Ethernet frame.
    #[error("must be between {min}, which holds the headers, and {max}, which fits a frame")]
    PacketSize {
        /// The smallest packet.
        min: Size,
        /// The largest packet.
        max: Size,
    },
    /// A flow must be exactly one of a controlled session, background traffic, a TCP connection and a flow pair.
    #[error(
        "a flow has either `controller` and `report_interval`, or `window` or `kernel` or both, or only a `source`, or a `pair`"
    )]
    WhatFlow,
    /// The key belongs to a TCP connection.
    #[error("only a TCP connection, a flow with `window` or `kernel`, has this")]
    OnlyWithWindow,
    /// No congestion control of the kernel can have this name.
    #[error("a congestion control's name has 1 to {most} characters, such as \"cubic\"")]
    KernelName {
        /// The maximum number of characters.
        most: usize,
    },
    /// A connection ends before it starts.
    #[error("must be after the flow's start at {start}")]
    StopBeforeStart {
        /// The start.
        start: Span,
    },
    /// A number of segments is out of range.
    #[error("must be between 1 and {most} segments")]
    Segments {
        /// The maximum.
        most: u64,
    },
    /// The value is not one of the allowed words.
    #[error("must be {known}")]
    NotAWord {
        /// The words.
        known: String,
    },
    /// There is no such source of the bandwidth.
    #[error("there is no such source of bandwidth; use known or inline")]
    UnknownBandwidth,
    /// A known bandwidth lacks the interval at which the law learns it.
    #[error("a known bandwidth needs an `interval`, such as \"400 ms\"")]
    NoMeasurementInterval,
    /// Inline measurement has its own interval and its own errors.
    #[error("an inline measurement takes neither `interval` nor `noise`")]
    InlineNeedsNothing,
    /// A connection has both a finite transfer and a rate.
    #[error("a connection has either `transfer` or `rate`")]
    TransferOrRate,
    /// The configuration of the web traffic is invalid.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The sizes of fetches are not two values.
    #[error("must be the smallest and the largest size of a fetch, such as [\"30 kB\", \"50 kB\"]")]
    TwoSizes,
    /// The key belongs to a single connection; web traffic has one connection for each fetch.
    #[error(
        "a flow with `web` does not have this: it opens a connection by a handshake for each fetch, which sends that and knows nothing of the path"
    )]
    NotOfWeb,
    /// There would be more samples than a chart can show.
    #[error("must be {least} or more")]
    TooManySamples {
        /// The shortest interval.
        least: Span,
    },
    /// A controlled session lacks its report interval.
    #[error("a flow with a `controller` needs a `report_interval`, such as \"1 s\"")]
    NoReportInterval,
    /// Per-packet reports exist only for media under a controller.
    #[error(
        "only a flow with a `controller` over one `path`, and without `media_back`, has feedback by packet, or one over several `paths` whose controller uses it"
    )]
    FeedbackOfWhat,
    /// Packets of several paths have no transport-wide sequence number.
    #[error(
        "must be \"rfc8888\" for a flow over several `paths`: reports are by the numbers that packets have on each path"
    )]
    FormatOfPaths,
    /// Only a session under a controller has a rate to share.
    #[error("only a flow with a `controller` over one `path` shares the rate of a group")]
    GroupOfWhat,
    /// The flow cannot be in the group.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// All flows of a group must have the same coupling.
    #[error("the flows of a group have one `coupling`; another flow of this group has the other")]
    OneCoupling,
    /// Per-packet feedback would be too rare for any control law, or too frequent for its headers.
    #[error("must be {min} to {max}")]
    FeedbackInterval {
        /// The shortest interval.
        min: Span,
        /// The longest interval.
        max: Span,
    },
    /// Reports would be too frequent to be meaningful.
    #[error("must be {min} or more")]
    ReportInterval {
        /// The shortest interval.
        min: Span,
    },
    /// A controller's parameter is a list or a table.
    #[error("a parameter is a text with its unit, or a plain number")]
    NotAParameter,
    /// A source lacks its rate.
    #[error("a {kind} source needs a `rate`, such as \"1 Mbit/s\"")]
    NoRate {
        /// The kind of source.
        kind: String,
    },
    /// The content of a session or a connection lacks its length.
    #[error("what a flow with a `controller`, a `window` or a `kernel` has to send needs a `length`, such as \"30 s\"")]
    NoLength,
    /// The key belongs to another kind of source.
    #[error("a {kind} source does not have this; {known}")]
    NotOfThisSource {
        /// The kind.
        kind: String,
        /// The sources that have it.
        known: &'static str,
    },
    /// There is no such kind of content.
    #[error(
        "what a flow with a `controller`, a `window` or a `kernel` has to send is constant or video; with a `controller` also encoder or audio"
    )]
    UnknownContent,
    /// A synthetic video lacks the peak and the coefficient of variation of its frame sizes.
    #[error("a video needs either a `trace`, or `peak` and `cv`: largest and spread of its frames over their mean")]
    NoMoments,
    /// A number must be above zero, and at most a maximum.
    #[error("must be above zero, and at most {most}")]
    OutOfRange {
        /// The maximum.
        most: f64,
    },
    /// A group of pictures contains other letters than I, P and B, or too many letters.
    #[error("must be made of I, P and B, and 1 to {most} of them")]
    Pattern {
        /// The maximum.
        most: usize,
    },
    /// A synthetic video cannot have the given properties.
    #[error(transparent)]
    Synthetic(#[from] SyntheticError),
    /// Only a controlled session can have a playout buffer.
    #[error("only a flow with a `controller` has an playout")]
    PlayoutOfWhat,
    /// The playout link is not on the path, or is its first link.
    #[error("must be a link of the path, and not its first, as the packets have to come there")]
    PlayoutOffPath,
    /// A TCP connection has a source and another specification of its data.
    #[error("a connection with a `source` has neither `transfer` nor `rate`")]
    SourceOrSupply,
    /// Something is wrong with live media.
    #[error(transparent)]
    Media(#[from] MediaProblem),
    /// The target can never be reached.
    #[error("is below the path's propagation delay of {propagation}; the target must be above it")]
    TargetBelowPropagation {
        /// Sum over the links of the path.
        propagation: Span,
    },
    /// A flow has neither a path nor paths, or both.
    #[error("a flow has either a `path`, the names of its links, or `paths`, the names of `[[path]]` sections")]
    PathOrPaths,
    /// Only a controlled session can use several paths.
    #[error("a flow with `paths` has a `controller` for its total, a `report_interval` and a `scheduler`")]
    WhatMultipath,
    /// The key belongs to a flow over several paths.
    #[error("only a flow with `paths` has this")]
    OnlyWithPaths,
    /// The number of paths is out of range.
    #[error("a flow has 1 to {most} paths")]
    HowManyPaths {
        /// The maximum.
        most: usize,
    },
    /// A flow uses a path that does not exist.
    #[error("there is no such `[[path]]`; there are: {known}")]
    UnknownPath {
        /// The existing paths.
        known: String,
    },
    /// A flow uses the same path twice.
    #[error("the flow already has this path")]
    PathTwice,
    /// Two names stand for the same path.
    #[error("takes the same links as {other}, which the flow already has; paths differ in a link at least")]
    SameLinks {
        /// The other path.
        other: String,
    },
    /// The period of the splits is shorter than the interval of the reports that they use.
    #[error("must be the report interval, {min}, or more")]
    Period {
        /// The report interval.
        min: Span,
    },
    /// The catalogue has no such entry.
    #[error("there is no such {what}; there are: {known}")]
    UnknownEntry {
        /// The kind of entry.
        what: &'static str,
        /// The existing entries.
        known: String,
    },
    /// An entry of the catalogue is requested without its name.
    #[error("a {what} needs a `name`: {known}")]
    NoEntryName {
        /// The kind of entry.
        what: &'static str,
        /// The existing entries.
        known: String,
    },
    /// The scheduler is to use a path that the flow does not have.
    #[error("the flow has {paths} paths, which count from 0 in the order of `paths`")]
    NoSuchPath {
        /// The number of paths.
        paths: usize,
    },
    /// Only a session over one path can have content.
    #[error("a flow with `paths` sends as much as its rate allows; it has no `source`")]
    ContentOverPaths,
    /// A receiver of several paths cannot have a playout buffer.
    #[error("a flow with `paths` has no playout buffer")]
    PlayoutOverPaths,
    /// A flow pair lacks one of its halves, or has the keys of another flow.
    #[error(
        "a flow with `pair` has a `path`, a `report_interval` for its RTP half, and `window` or `kernel` or both for its TCP half; it has no `controller`, no `source` and no `playout`"
    )]
    WhatPair,
    /// The key belongs to a TCP connection that is a flow of its own.
    #[error(
        "the TCP half of a flow pair does not have this: it sends what the pair writes, as long as the pair does, and keeps its window over idleness"
    )]
    NotOfAPair,
    /// An ADU is empty or longer than the wire format allows.
    #[error("must be between 1 B and {most}")]
    AduSize {
        /// The largest ADU.
        most: Size,
    },
    /// The end of a probing interval is specified twice.
    #[error("a flow pair has either `interval` or `between_reductions`")]
    IntervalOrReductions,
    /// There is no such law for running periods.
    #[error("there is no such running law; use loss or ap")]
    UnknownRunningLaw,
    /// The control law of running periods lacks a parameter, or has a parameter of the other law.
    #[error("loss has `adapt`, `reduction_factor` and `min_rate`; ap has a `target`, and `min_rate`")]
    RunningParameters,
    /// The key is about RTCP, and only a flow over RTP has RTCP.
    #[error("only a flow over RTP has this: one with a `controller` or a `pair`")]
    OnlyOverRtp,
    /// The flow has several paths, and its feedback returns on each of them, not on a separate route.
    #[error("only a flow with one `path` has a way `back`")]
    BackOverPaths,
    /// The number of sections is out of range.
    #[error("a scenario has {least} to {most} `[[{what}]]` sections")]
    HowMany {
        /// `link`, `path` or `flow`.
        what: &'static str,
        /// The minimum.
        least: usize,
        /// The maximum.
        most: usize,
    },
}
