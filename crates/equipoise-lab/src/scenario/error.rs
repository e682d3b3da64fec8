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
    /// The text is not TOML, or has a key that no scenario has, or lacks one that every scenario has.
    #[error("the text is no scenario")]
    Syntax(#[from] SyntaxError),
    /// The text is too long to be a scenario.
    #[error("the file is longer than {} kB, which no scenario is; give traces files of their own", most / 1000)]
    TooLong {
        /// The most bytes of a scenario.
        most: usize,
    },
    /// A value is wrong.
    #[error("line {line}, column {column}: {key} = {value}: {problem}")]
    Wrong {
        /// Line of the value, from 1.
        line: usize,
        /// Its first character in that line, from 1.
        column: usize,
        /// The key it belongs to.
        key: String,
        /// The value as it is written.
        value: String,
        /// What is wrong with it and what would be right.
        problem: Box<Problem>,
    },
    /// An override does not fit the file.
    #[error("override {path}: {problem}")]
    Override {
        /// The path of the override.
        path: String,
        /// What is wrong with it and what would be right.
        problem: Box<OverrideProblem>,
    },
    /// A value of the file does not fit what the overrides have made of it.
    #[error("with what is set, {}", changed(path, problem))]
    Changed {
        /// The path of the value, as an override would have it.
        path: String,
        /// What is wrong with it and what would be right.
        problem: Box<OverrideProblem>,
    },
}

/// A value in a text that has no lines, and what is wrong with it.
fn changed(path: &str, problem: &OverrideProblem) -> String {
    match problem {
        OverrideProblem::Value { value, .. } => format!("{path} = {value}: {problem}"),
        _ if path.is_empty() => problem.to_string(),
        _ => format!("{path}: {problem}"),
    }
}

/// What is wrong with a text that is no scenario, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The line, or the part of it around the column, and below it a mark at the column.
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

/// What is wrong with an override: its path, or the value that it sets.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OverrideProblem {
    /// It is not a chain of keys.
    #[error("a path is a chain of keys between dots, such as flow.media.start; a name with a dot stands in quotes")]
    Path,
    /// There is no section of this name.
    #[error("there is no {what} `{name}`; there are: {known}")]
    UnknownName {
        /// `link`, `path` or `flow`.
        what: String,
        /// The name in the path.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The list has no such entry.
    #[error("`{list}` has no entry {entry}; it has {length}, which count from 0")]
    NoSuchEntry {
        /// The key of the list.
        list: String,
        /// The entry in the path.
        entry: String,
        /// The number of entries; 0 if the file omits the list.
        length: usize,
    },
    /// The path goes on behind a plain value.
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
        /// The keys that a scenario can have in this place.
        known: String,
        /// Words on the most similar of them, if one is similar.
        similar: String,
    },
    /// The value is of another type in TOML, or lacks a key.
    #[error("{message}; a text that reads as a number stands in quotes within the shell's: KEY='\"2\"'")]
    Mistyped {
        /// What it is, and what it should be.
        message: String,
    },
    /// The value is wrong, or does not fit others.
    #[error("{problem}{similar}")]
    Value {
        /// The value as TOML has it.
        value: String,
        /// What is wrong with it and what would be right.
        problem: Box<Problem>,
        /// Words on a similar key, if the key is unknown and one is similar.
        similar: String,
    },
    /// The key to be removed is not in the file.
    #[error("there is no `{key}` to remove; there are: {known}")]
    NothingToRemove {
        /// The key.
        key: String,
        /// The keys that there are.
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
    /// The controller cannot be made like that.
    #[error(transparent)]
    Controller(#[from] ConfigError),
    /// The flow does not provide what the controller needs.
    #[error(transparent)]
    Needs(#[from] UnmetNeeds),
    /// The link cannot be like that.
    #[error(transparent)]
    Link(#[from] LinkProblem),
    /// A playout buffer is a plain queue.
    #[error("the link of a playout has a rate, a delay and a drop-tail queue, and nothing happens by chance on it")]
    PlayoutNotPlain,
    /// Only who reports marks may bear them.
    #[error("only a session with a `controller` can bear marks")]
    EcnOfWhat,
    /// A flow in the other direction takes one path, all of it.
    #[error("only a flow over one `path` and without a `playout` can go back")]
    WhatGoesBack,
    /// Media come back in another kind of flow's session.
    #[error(
        "media come back in the session of a flow with a `controller` and one `path`, without `back` and `playout`"
    )]
    WhatMediaBack,
    /// The periods of the flow pair cannot be like that.
    #[error(transparent)]
    Tpba(#[from] TpbaError),
    /// The time must be above zero.
    #[error("must be above zero")]
    NotPositive,
    /// The time must not be negative.
    #[error("must not be negative")]
    Negative,
    /// The warm-up leaves nothing to measure.
    #[error("must be below the duration, {duration}")]
    WarmUpTooLong {
        /// The duration.
        duration: Span,
    },
    /// A flow starts when all is over, or a step comes then.
    #[error("must be before the end of the run at {duration}")]
    AfterTheEnd {
        /// The duration.
        duration: Span,
    },
    /// A step comes before the one above it.
    #[error("must be after the step before it, at {previous}")]
    StepOrder {
        /// Time of the step before.
        previous: Span,
    },
    /// The name is taken.
    #[error("there is another {what} of this name; give each its own")]
    NameTaken {
        /// A link, a path or a flow.
        what: &'static str,
    },
    /// The name is empty or too long for a table.
    #[error("a name has 1 to {most} characters")]
    NameLength {
        /// The most characters.
        most: usize,
    },
    /// A path goes over a link that is not there.
    #[error("there is no such link; there are: {known}")]
    UnknownLink {
        /// The links that there are.
        known: String,
    },
    /// A path goes over a link twice.
    #[error("the path already goes over this link; a path takes each link once")]
    LinkTwice,
    /// A path goes nowhere.
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
    /// A flow is more or less than one of a controlled session, background traffic, a TCP connection and a flow pair.
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
        /// The most characters.
        most: usize,
    },
    /// A connection ends before it begins.
    #[error("must be after the flow's start at {start}")]
    StopBeforeStart {
        /// The start.
        start: Span,
    },
    /// A number of segments is out of range.
    #[error("must be between 1 and {most} segments")]
    Segments {
        /// The most there may be.
        most: u64,
    },
    /// It is none of the words that it could be.
    #[error("must be {known}")]
    NotAWord {
        /// The words.
        known: String,
    },
    /// There is no such way to know the bandwidth.
    #[error("there is no such source of bandwidth; use known or inline")]
    UnknownBandwidth,
    /// A known bandwidth does not say how often it is told.
    #[error("a known bandwidth needs an `interval`, such as \"400 ms\"")]
    NoMeasurementInterval,
    /// Inline measurement has its own pace and its own errors.
    #[error("an inline measurement takes neither `interval` nor `noise`")]
    InlineNeedsNothing,
    /// A connection has both a finite transfer and a rate.
    #[error("a connection has either `transfer` or `rate`")]
    TransferOrRate,
    /// Web traffic cannot be like that.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The sizes of fetches are not two.
    #[error("must be the smallest and the largest size of a fetch, such as [\"30 kB\", \"50 kB\"]")]
    TwoSizes,
    /// The key belongs to one connection, and web traffic has one for each fetch.
    #[error(
        "a flow with `web` does not have this: it opens a connection by a handshake for each fetch, which sends that and knows nothing of the path"
    )]
    NotOfWeb,
    /// The samples would be more than anybody can look at.
    #[error("must be {least} or more")]
    TooManySamples {
        /// The shortest interval.
        least: Span,
    },
    /// A controlled session does not say how often it reports.
    #[error("a flow with a `controller` needs a `report_interval`, such as \"1 s\"")]
    NoReportInterval,
    /// Only media under a controller is reported on by packet.
    #[error(
        "only a flow with a `controller` over one `path`, and without `media_back`, has feedback by packet, or one over several `paths` whose controller goes by it"
    )]
    FeedbackOfWhat,
    /// Packets of several paths have no transport-wide number.
    #[error(
        "must be \"rfc8888\" for a flow over several `paths`: reports are by the numbers that packets have on each path"
    )]
    FormatOfPaths,
    /// Only a session has a rate to share.
    #[error("only a flow with a `controller` over one `path` shares the rate of a group")]
    GroupOfWhat,
    /// The flow cannot be in the group.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// A group is coupled in one way.
    #[error("the flows of a group have one `coupling`; another flow of this group has the other")]
    OneCoupling,
    /// Feedback by packet would come too rarely for any law, or too often for its headers.
    #[error("must be {min} to {max}")]
    FeedbackInterval {
        /// The shortest interval.
        min: Span,
        /// The longest interval.
        max: Span,
    },
    /// Reports would come too often to mean anything.
    #[error("must be {min} or more")]
    ReportInterval {
        /// The shortest interval.
        min: Span,
    },
    /// A controller's parameter is a list or a table.
    #[error("a parameter is a text with its unit, or a plain number")]
    NotAParameter,
    /// A source does not say how much there is of it.
    #[error("a {kind} source needs a `rate`, such as \"1 Mbit/s\"")]
    NoRate {
        /// The kind of source.
        kind: String,
    },
    /// The content of a session or a connection does not say how long it is.
    #[error("what a flow with a `controller`, a `window` or a `kernel` has to send needs a `length`, such as \"30 s\"")]
    NoLength,
    /// The key belongs to another kind of source.
    #[error("a {kind} source does not have this; {known}")]
    NotOfThisSource {
        /// The kind.
        kind: String,
        /// What has it.
        known: &'static str,
    },
    /// There is no such content.
    #[error(
        "what a flow with a `controller`, a `window` or a `kernel` has to send is constant or video; with a `controller` also encoder or audio"
    )]
    UnknownContent,
    /// A synthetic video needs its moments.
    #[error("a video needs either a `trace`, or `peak` and `cv`: largest and spread of its frames over their mean")]
    NoMoments,
    /// A number has to be above zero.
    #[error("must be above zero, and at most {most}")]
    OutOfRange {
        /// The largest.
        most: f64,
    },
    /// A group of pictures is more than its three kinds of frames.
    #[error("must be made of I, P and B, and 1 to {most} of them")]
    Pattern {
        /// The most there may be.
        most: usize,
    },
    /// No video has such moments.
    #[error(transparent)]
    Synthetic(#[from] SyntheticError),
    /// Only what a controller is told of can have a playout buffer.
    #[error("only a flow with a `controller` has an playout")]
    PlayoutOfWhat,
    /// The playout is a link behind which the flow does not come.
    #[error("must be a link of the path, and not its first, as the packets have to come there")]
    PlayoutOffPath,
    /// A TCP connection has a source and another supply.
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
    /// A flow goes nowhere, or over one path and several.
    #[error("a flow has either a `path`, the names of its links, or `paths`, the names of `[[path]]` sections")]
    PathOrPaths,
    /// Only a controlled session can divide what it sends.
    #[error("a flow with `paths` has a `controller` for its total, a `report_interval` and a `scheduler`")]
    WhatMultipath,
    /// The key belongs to a flow over several paths.
    #[error("only a flow with `paths` has this")]
    OnlyWithPaths,
    /// There are more or fewer paths than a session takes.
    #[error("a flow has 1 to {most} paths")]
    HowManyPaths {
        /// The most there may be.
        most: usize,
    },
    /// A flow goes over a path that is not there.
    #[error("there is no such `[[path]]`; there are: {known}")]
    UnknownPath {
        /// The paths that there are.
        known: String,
    },
    /// A flow goes over a path twice.
    #[error("the flow already has this path")]
    PathTwice,
    /// Two names are one path.
    #[error("takes the same links as {other}, which the flow already has; paths differ in a link at least")]
    SameLinks {
        /// The other path.
        other: String,
    },
    /// A split comes before the reports that it goes by.
    #[error("must be the report interval, {min}, or more")]
    Period {
        /// The report interval.
        min: Span,
    },
    /// The catalogue has no such entry.
    #[error("there is no such {what}; there are: {known}")]
    UnknownEntry {
        /// What it would be.
        what: &'static str,
        /// The entries that there are.
        known: String,
    },
    /// An entry of the catalogue is asked for without its name.
    #[error("a {what} needs a `name`: {known}")]
    NoEntryName {
        /// What it would be.
        what: &'static str,
        /// The entries that there are.
        known: String,
    },
    /// All is to go over a path that the flow does not have.
    #[error("the flow has {paths} paths, which count from 0 in the order of `paths`")]
    NoSuchPath {
        /// How many there are.
        paths: usize,
    },
    /// Content is a session's over one path.
    #[error("a flow with `paths` sends as much as its rate allows; it has no `source`")]
    ContentOverPaths,
    /// The receiver of several paths has no one buffer.
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
    /// An ADU is empty or longer than the wire format can say.
    #[error("must be between 1 B and {most}")]
    AduSize {
        /// The largest ADU.
        most: Size,
    },
    /// The end of a probing interval is given twice.
    #[error("a flow pair has either `interval` or `between_reductions`")]
    IntervalOrReductions,
    /// There is no such law of running periods.
    #[error("there is no such running law; use loss or ap")]
    UnknownRunningLaw,
    /// The law of running periods lacks a parameter, or has one of the other law.
    #[error("loss has `adapt`, `reduction_factor` and `min_rate`; ap has a `target`, and `min_rate`")]
    RunningParameters,
    /// Only RTP has a control protocol.
    #[error("only a flow over RTP has this: one with a `controller` or a `pair`")]
    OnlyOverRtp,
    /// A flow over several paths comes back over each of them.
    #[error("only a flow with one `path` has a way `back`")]
    BackOverPaths,
    /// There is nothing to run.
    #[error("a scenario has {least} to {most} `[[{what}]]` sections")]
    HowMany {
        /// `link`, `path` or `flow`.
        what: &'static str,
        /// The least there may be.
        least: usize,
        /// The most there may be.
        most: usize,
    },
}
