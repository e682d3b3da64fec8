//! Converts the raw form of a scenario into a scenario that can be run ("parse, don't validate").

use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;

use equipoise::control::{Context, Needs, Parameters};
use equipoise::units::{Rate, Schedule, Size, Span, UnitError};
use equipoise_session::feedback::{Format, Reporting};
use equipoise_session::{Ecn, multipath, rtp};
use toml::{Spanned, Value};

use super::error::{Problem, ScenarioError, SyntaxError};
use super::excerpt::{self, Place};
use super::raw::{RawFlow, RawRtcp, RawScenario};
use super::raw_source::RawSource;
use super::raw_source::RawStep;
use super::{
    Catalogue, Choice, Direction, DuplexPart, Flow, FlowKind, Link, Listed, MediaProblem, Rtcp, Scenario, Table,
};

mod content;
mod group;
mod link;
mod live;
mod pair;
mod paths;
mod tcp;
mod web;

/// Limits on the numbers of links, paths and flows and on the length of names. Our choice: a scenario beyond these
/// limits counts as a mistake.
const MOST_LINKS: usize = 64;
const MOST_PATHS: usize = 64;
const MOST_FLOWS: usize = 256;
const MOST_NAME: usize = 40;
/// Minimum packet size of all flows except background traffic. In a session over one path, the IP, UDP and RTP headers
/// with the sending time take 56 bytes, so at least 44 bytes of each full packet are media.
const SMALLEST_PACKET: Size = Size::from_bytes(100);
/// Minimum packet size of background traffic. It is below [`SMALLEST_PACKET`], because only the headers with the
/// sending time (56 bytes) must fit into a packet. The rest of the packet is padding without media.
const SMALLEST_BACKGROUND_PACKET: Size = Size::from_bytes(64);
/// Maximum packet size: the payload of an Ethernet frame, so that no packet is fragmented.
const LARGEST_PACKET: Size = Size::from_bytes(1500);
/// The shortest report interval that a scenario can have. A report over a shorter interval would cover too few packets:
/// at 1.6 Mbit/s, only two packets of 1000 bytes are sent in 10 ms.
const SHORTEST_INTERVAL: Span = Span::from_millis(10);

/// Maximum number of samples of each connection, link and receiver in a run.
const MOST_SAMPLES: i64 = 100_000;

/// Checks the text of a scenario, and returns the scenario.
pub(super) fn scenario(text: &str, catalogue: &Catalogue) -> Result<Scenario, ScenarioError> {
    let raw: RawScenario = toml::from_str(text).map_err(|error| SyntaxError::new(text, &error))?;
    let check = Check { text, catalogue };
    let duration = check.positive("duration", &raw.duration)?;
    let warm_up = match &raw.warm_up {
        None => Span::ZERO,
        Some(value) => {
            let warm_up = check.not_negative("warm_up", value)?;
            check.that(warm_up < duration, "warm_up", value, || Problem::WarmUpTooLong { duration })?;
            warm_up
        }
    };
    check.count("link", raw.link.len(), 1, MOST_LINKS)?;
    check.count("path", raw.path.len(), 0, MOST_PATHS)?;
    check.count("flow", raw.flow.len(), 1, MOST_FLOWS)?;
    check.name(&raw.name)?;
    check.unique("link", raw.link.iter().map(|link| &link.name))?;
    check.unique("path", raw.path.iter().map(|path| &path.name))?;
    check.unique("flow", raw.flow.iter().map(|flow| &flow.name))?;
    let flows = check.both_ways(raw.flow)?;
    check.distinct("flow", flows.iter().map(|(flow, _)| &flow.name))?;
    let links = raw.link.iter().map(|link| check.link(link, duration)).collect::<Result<Vec<_>, _>>()?;
    let paths = raw.path.iter().map(|path| check.named_path(path, &links, duration)).collect::<Result<_, _>>()?;
    let mut scenario = Scenario {
        name: raw.name.into_inner(),
        description: raw.description,
        text: text.to_owned(),
        duration,
        warm_up,
        seed: raw.seed.unwrap_or(1),
        sample_interval: match &raw.sample_interval {
            None => sample_interval(duration),
            Some(value) => {
                let interval = check.positive("sample_interval", value)?;
                let least = Span::from_nanos(duration.as_nanos() / MOST_SAMPLES);
                check.that(interval >= least, "sample_interval", value, || Problem::TooManySamples { least })?;
                interval
            }
        },
        receiver_rates: check.word("receiver_rates", raw.receiver_rates.as_ref(), &["on", "off"])? == Some("on"),
        links,
        paths,
        flows: Vec::new(),
    };
    let flow = |(raw, part): &(RawFlow, Option<DuplexPart>), before: &[Flow]| -> Result<Flow, ScenarioError> {
        let part = *part;
        let flow = check.flow(raw, &scenario)?;
        check.one_coupling(raw, &flow, before)?;
        let is_possible = part.is_none() || flow.reporting().is_none();
        check.that(is_possible, "controller", &raw.name, || Problem::FeedbackOfWhat)?;
        Ok(Flow { part, ..flow })
    };
    let mut checked = Vec::with_capacity(flows.len());
    for raw in &flows {
        let flow = flow(raw, &checked)?;
        checked.push(flow);
    }
    scenario.flows = checked;
    Ok(scenario)
}

/// Returns the default sample interval: 1/500 of the run's duration, but at least 10 ms.
fn sample_interval(duration: Span) -> Span {
    Span::from_nanos(duration.as_nanos() / 500).max(Span::from_millis(10))
}

/// The input that all checks use.
struct Check<'t> {
    /// The text of the scenario, from which errors take line numbers and values.
    text: &'t str,
    /// The entries that a scenario can name, such as controllers.
    catalogue: &'t Catalogue,
}

impl Check<'_> {
    /// Returns the flows. If a session has media in both directions, its flow is followed by a separate flow for the
    /// reverse media.
    fn both_ways(&self, written: Vec<RawFlow>) -> Result<Vec<(RawFlow, Option<DuplexPart>)>, ScenarioError> {
        let mut flows = Vec::with_capacity(written.len());
        for mut there in written {
            let Some(back) = there.media_back.take() else {
                flows.push((there, None));
                continue;
            };
            let plain = there.controller.is_some()
                && !there.is_tcp()
                && [there.paths.is_some(), there.back.is_some(), there.playout.is_some(), there.pair.is_some()]
                    == [false; 4];
            self.that(plain, "media_back", &there.name, || Problem::WhatMediaBack)?;
            let back = there.with_media_back(back);
            flows.extend([(there, Some(DuplexPart::There)), (back, Some(DuplexPart::Back))]);
        }
        Ok(flows)
    }

    fn wrong(&self, key: &str, span: Range<usize>, problem: Problem) -> ScenarioError {
        let Place { line, column } = Place::of(self.text, span.start);
        ScenarioError::Wrong {
            line,
            column,
            key: key.to_owned(),
            value: excerpt::value(self.text.get(span).unwrap_or_default()),
            problem: Box::new(problem),
        }
    }

    fn that<T>(
        &self,
        right: bool,
        key: &str,
        at: &Spanned<T>,
        problem: impl FnOnce() -> Problem,
    ) -> Result<(), ScenarioError> {
        if right { Ok(()) } else { Err(self.wrong(key, at.span(), problem())) }
    }

    fn count(&self, what: &'static str, found: usize, least: usize, most: usize) -> Result<(), ScenarioError> {
        if (least..=most).contains(&found) {
            return Ok(());
        }
        Err(ScenarioError::Wrong {
            line: self.text.lines().count(),
            column: 1,
            key: format!("[[{what}]]"),
            value: format!("{found} sections"),
            problem: Box::new(Problem::HowMany { what, least, most }),
        })
    }

    /// Checks a quantity, which is a string with a unit. A bare number is treated as a string, so that the error says
    /// that the unit is missing.
    fn quantity<T: FromStr<Err = UnitError>>(&self, key: &str, value: &Spanned<Value>) -> Result<T, ScenarioError> {
        let text = match value.get_ref() {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // Errors quote the value, so the value is shortened here. A value that is long enough to be shortened is never
        // valid.
        excerpt::value(&text).parse().map_err(|problem: UnitError| self.wrong(key, value.span(), problem.into()))
    }

    fn not_negative(&self, key: &str, value: &Spanned<Value>) -> Result<Span, ScenarioError> {
        let span = self.quantity(key, value)?;
        self.that(span >= Span::ZERO, key, value, || Problem::Negative)?;
        Ok(span)
    }

    fn positive(&self, key: &str, value: &Spanned<Value>) -> Result<Span, ScenarioError> {
        let span = self.quantity(key, value)?;
        self.that(span > Span::ZERO, key, value, || Problem::NotPositive)?;
        Ok(span)
    }

    fn name(&self, name: &Spanned<String>) -> Result<(), ScenarioError> {
        let length = name.get_ref().chars().count();
        self.that((1..=MOST_NAME).contains(&length), "name", name, || Problem::NameLength { most: MOST_NAME })
    }

    fn unique<'a>(
        &self,
        what: &'static str,
        names: impl Iterator<Item = &'a Spanned<String>> + Clone,
    ) -> Result<(), ScenarioError> {
        names.clone().try_for_each(|name| self.name(name))?;
        self.distinct(what, names)
    }

    fn distinct<'a>(
        &self,
        what: &'static str,
        names: impl Iterator<Item = &'a Spanned<String>>,
    ) -> Result<(), ScenarioError> {
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            self.that(seen.insert(name.get_ref().clone()), "name", name, || Problem::NameTaken { what })?;
        }
        Ok(())
    }

    fn schedule(&self, rate: &Spanned<Value>, steps: &[RawStep], ends: Span) -> Result<Schedule<Rate>, ScenarioError> {
        let initial = self.quantity("rate", rate)?;
        let mut checked: Vec<(Span, Rate)> = Vec::new();
        for step in steps {
            let at = self.step("at", &step.at, checked.last().map(|(at, _)| *at), ends)?;
            checked.push((at, self.quantity("rate", &step.rate)?));
        }
        Ok(Schedule::new(initial, checked))
    }

    /// Checks the time of a step, which must be after the previous step and before `ends`.
    fn step(
        &self,
        key: &str,
        value: &Spanned<Value>,
        previous: Option<Span>,
        ends: Span,
    ) -> Result<Span, ScenarioError> {
        let at = self.positive(key, value)?;
        self.that(at < ends, key, value, || Problem::AfterTheEnd { duration: ends })?;
        if let Some(previous) = previous {
            self.that(at > previous, key, value, || Problem::StepOrder { previous })?;
        }
        Ok(at)
    }

    fn flow(&self, raw: &RawFlow, scenario: &Scenario) -> Result<Flow, ScenarioError> {
        let packet_size: Size = self.quantity("packet_size", &raw.packet_size)?;
        let is_background = raw.controller.is_none() && !raw.is_tcp();
        let min = if is_background { SMALLEST_BACKGROUND_PACKET } else { SMALLEST_PACKET };
        let max = LARGEST_PACKET;
        let fits = (min..=max).contains(&packet_size);
        self.that(fits, "packet_size", &raw.packet_size, || Problem::PacketSize { min, max })?;
        let start = match &raw.start {
            None => Span::ZERO,
            Some(value) => {
                let start = self.not_negative("start", value)?;
                let duration = scenario.duration;
                self.that(start < duration, "start", value, || Problem::AfterTheEnd { duration })?;
                start
            }
        };
        let (kind, path) = match (&raw.path, &raw.paths) {
            (Some(path), None) => {
                let path = self.chain(("path", &raw.name), path, &scenario.links)?;
                (self.kind(raw, (start, &path), scenario)?, path)
            }
            (None, Some(paths)) if raw.is_tcp() || raw.pair.is_some() => {
                return Err(self.wrong("paths", paths.span(), Problem::WhatMultipath));
            }
            (None, Some(paths)) => {
                let (multipath, links) = self.multipath(raw, paths, scenario)?;
                (FlowKind::Multipath(multipath), links)
            }
            _ => return Err(self.wrong("name", raw.name.span(), Problem::PathOrPaths)),
        };
        let back = match &raw.back {
            Some(back) if raw.paths.is_some() => return Err(self.wrong("back", back.span(), Problem::BackOverPaths)),
            Some(back) => Some(self.chain(("back", &raw.name), back.get_ref(), &scenario.links)?),
            None => None,
        };
        if let Some(group) = raw.group.as_ref().filter(|_| raw.controller.is_none() || raw.paths.is_some()) {
            return Err(self.wrong("group", group.span(), Problem::GroupOfWhat));
        }
        let rtcp = match &raw.rtcp {
            Some(_) if raw.controller.is_none() && raw.pair.is_none() => {
                return Err(self.wrong("rtcp", raw.name.span(), Problem::OnlyOverRtp));
            }
            Some(rtcp) => self.rtcp(rtcp)?,
            None => Rtcp::default(),
        };
        let circuit_breakers = raw.circuit_breakers.unwrap_or(true);
        let direction = self.direction_of(raw)?;
        let ecn = self.ecn(raw)?;
        let pauses = self.pauses(raw, start, scenario.duration)?;
        if let Some((key, span)) = raw.live_only().filter(|_| raw.controller.is_none() || raw.paths.is_some()) {
            return Err(self.wrong(key, span, MediaProblem::OnlyLive.into()));
        }
        let name = raw.name.get_ref().clone();
        let part = None;
        Ok(Flow { name, path, back, direction, ecn, packet_size, circuit_breakers, start, pauses, rtcp, part, kind })
    }

    /// Checks whether queues may mark a flow's media with ECN.
    fn ecn(&self, raw: &RawFlow) -> Result<Ecn, ScenarioError> {
        if let Some(ecn) = raw.ecn.as_ref().filter(|_| raw.controller.is_none()) {
            return Err(self.wrong("ecn", ecn.span(), Problem::EcnOfWhat));
        }
        Ok(match self.word("ecn", raw.ecn.as_ref(), &["off", "ect0", "ect1"])? {
            Some("ect0") => Ecn::Ect0,
            Some("ect1") => Ecn::Ect1,
            _ => Ecn::NotCapable,
        })
    }

    /// Checks the direction of a flow's media.
    fn direction_of(&self, raw: &RawFlow) -> Result<Direction, ScenarioError> {
        match (self.word("direction", raw.direction.as_ref(), &["forward", "back"])?, &raw.direction) {
            (Some("back"), Some(at)) => {
                let plain = raw.paths.is_none() && raw.playout.is_none();
                self.that(plain, "direction", at, || Problem::WhatGoesBack)?;
                Ok(Direction::Back)
            }
            _ => Ok(Direction::Forward),
        }
    }

    fn rtcp(&self, raw: &RawRtcp) -> Result<Rtcp, ScenarioError> {
        for name in raw.sender.iter().chain(&raw.receiver) {
            self.name(name)?;
        }
        let name = |name: &Option<Spanned<String>>| name.as_ref().map(|name| name.get_ref().clone());
        Ok(Rtcp { sender: name(&raw.sender), receiver: name(&raw.receiver), seed: raw.seed })
    }

    /// Checks the kind of a flow over one path, such as a session or a TCP connection, and the settings of this kind.
    fn kind(
        &self,
        raw: &RawFlow,
        (start, path): (Span, &[usize]),
        scenario: &Scenario,
    ) -> Result<FlowKind, ScenarioError> {
        if let (Some(feedback), true) = (&raw.feedback, raw.controller.is_none()) {
            return Err(self.wrong("feedback", feedback.span(), Problem::FeedbackOfWhat));
        }
        if let Some(stray) = raw.multipath_only() {
            return Err(self.wrong(stray, raw.name.span(), Problem::OnlyWithPaths));
        }
        if let Some(pair) = &raw.pair {
            let (duration, direction) = (scenario.duration, self.direction_of(raw)?);
            let propagation = scenario.propagation_delay(path, direction);
            return Ok(FlowKind::Pair(self.pair(raw, pair, &pair::Around { start, duration, propagation })?));
        }
        if let (false, Some(stray)) = (raw.is_tcp(), raw.tcp_only()) {
            return Err(self.wrong(stray, raw.name.span(), Problem::OnlyWithWindow));
        }
        if let (None, Some(playout)) = (&raw.controller, &raw.playout) {
            return Err(self.wrong("playout", playout.span(), Problem::PlayoutOfWhat));
        }
        Ok(match (&raw.controller, raw.sources(), raw.is_tcp(), &raw.report_interval) {
            (Some(controller), _, false, Some(interval)) => {
                let media = self.media(raw)?;
                let playout = self.playout(raw, path, scenario)?;
                let (controller, report_interval, target) =
                    self.session(raw, controller, interval, scenario.propagation_delay(path, self.direction_of(raw)?))?;
                let reporting = self.reporting(raw, &controller)?;
                let coupled = self.coupled(raw, &controller)?;
                FlowKind::Session { controller, report_interval, reporting, media, playout, target, coupled }
            }
            (Some(_), _, false, None) => return Err(self.wrong("name", raw.name.span(), Problem::NoReportInterval)),
            (None, [source], false, None) => self.background(source, scenario.duration - start)?,
            (None, _, true, None) => FlowKind::Tcp(self.tcp(raw, (start, scenario.duration))?),
            _ => return Err(self.wrong("name", raw.name.span(), Problem::WhatFlow)),
        })
    }

    /// Checks the names of a chain of links, and returns the indices of the links. `key` and `owner` identify the chain
    /// in errors.
    fn chain(
        &self,
        (key, owner): (&str, &Spanned<String>),
        names: &[Spanned<String>],
        links: &[Link],
    ) -> Result<Vec<usize>, ScenarioError> {
        let mut path = Vec::new();
        for name in names {
            let Some(link) = links.iter().position(|link| link.name == *name.get_ref()) else {
                let known = links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(self.wrong(key, name.span(), Problem::UnknownLink { known }));
            };
            self.that(!path.contains(&link), key, name, || Problem::LinkTwice)?;
            path.push(link);
        }
        self.that(!path.is_empty(), "name", owner, || Problem::EmptyPath)?;
        Ok(path)
    }

    fn session(
        &self,
        raw: &RawFlow,
        controller: &BTreeMap<String, Spanned<Value>>,
        interval: &Spanned<Value>,
        propagation: Span,
    ) -> Result<(Choice, Span, Option<Span>), ScenarioError> {
        let report_interval = self.quantity("report_interval", interval)?;
        let min = SHORTEST_INTERVAL;
        self.that(report_interval >= min, "report_interval", interval, || Problem::ReportInterval { min })?;
        let controller = self.choice("controller", raw, &self.catalogue.controllers, controller)?;
        let built = controller.build(LARGEST_PACKET);
        let built = built.map_err(|problem| self.wrong("controller", raw.name.span(), problem.into()))?;
        built.needs().met_by(provided(raw)).map_err(|unmet| self.wrong("controller", raw.name.span(), unmet.into()))?;
        let target = built.target_delay();
        if let (Some(found), Some(given)) = (target, raw.controller.as_ref().and_then(|given| given.get("target"))) {
            self.that(found > propagation, "target", given, || Problem::TargetBelowPropagation { propagation })?;
        }
        Ok((controller, report_interval, target))
    }

    /// Returns the format and the interval of a session's per-packet feedback. Returns `None` if the flow has no
    /// `feedback` key and the controller does not need per-packet feedback.
    fn reporting(&self, raw: &RawFlow, controller: &Choice) -> Result<Option<Reporting>, ScenarioError> {
        let built = controller.build(LARGEST_PACKET);
        let needs = built.map_or(Needs::NOTHING, |built| built.needs());
        let given = match &raw.feedback {
            None if needs.contains(Needs::PACKETS) => None,
            None => return Ok(None),
            Some(given) => Some(given.get_ref()),
        };
        // By default, a session that uses ECN reports in the format `rfc8888`, because only this format has congestion
        // marks. Other sessions use the format `twcc`, because its arrival times are finer.
        let format = match self.word("format", given.and_then(|given| given.format.as_ref()), &["rfc8888", "twcc"])? {
            Some("rfc8888") => Format::CongestionFeedback,
            Some(_) => Format::TransportWide,
            None if self.ecn(raw)? == Ecn::NotCapable => Format::TransportWide,
            None => Format::CongestionFeedback,
        };
        let interval = match given.and_then(|given| given.interval.as_ref()) {
            None => Reporting::INTERVAL,
            Some(value) => {
                let interval = self.quantity("interval", value)?;
                let (min, max) = (Reporting::SHORTEST, Reporting::LONGEST);
                self.that((min..=max).contains(&interval), "interval", value, || Problem::FeedbackInterval {
                    min,
                    max,
                })?;
                interval
            }
        };
        Ok(Some(Reporting { format, interval }))
    }

    /// Checks the playout link. The queue of this link is the playout buffer of a session's receiver. The links before
    /// the playout link are the network.
    fn playout(&self, raw: &RawFlow, path: &[usize], scenario: &Scenario) -> Result<Option<usize>, ScenarioError> {
        let Some(name) = &raw.playout else { return Ok(None) };
        let is_it = |link: &&usize| scenario.links.get(**link).is_some_and(|link| link.name == *name.get_ref());
        let found = path.iter().skip(1).find(is_it).copied();
        self.that(found.is_some(), "playout", name, || Problem::PlayoutOffPath)?;
        let plain = found.and_then(|link| scenario.links.get(link)?.forward.as_link()).is_some();
        self.that(plain, "playout", name, || Problem::PlayoutNotPlain)?;
        Ok(found)
    }

    /// Checks the catalogue entry that a flow names in `key`, and the entry's parameters.
    fn choice<C, X: Context>(
        &self,
        key: &str,
        raw: &RawFlow,
        table: &Table<C, X>,
        given: &BTreeMap<String, Spanned<Value>>,
    ) -> Result<Choice<C, X>, ScenarioError> {
        let Some(name) = given.get("name") else {
            let problem = Problem::NoEntryName { what: table.what(), known: table.names() };
            return Err(self.wrong(key, raw.name.span(), problem));
        };
        let entry = name.get_ref().as_str().and_then(|name| table.find(name));
        let unknown = || Problem::UnknownEntry { what: table.what(), known: table.names() };
        let entry = entry.ok_or_else(|| self.wrong("name", name.span(), unknown()))?;
        let parameters = self.parameters(entry, name.span(), given)?;
        Ok(Choice { entry: entry.clone(), parameters })
    }

    /// Checks the values for all parameters of an entry. If a parameter is missing, the error points to the entry's
    /// name.
    fn parameters<C, X: Context>(
        &self,
        entry: &Listed<C, X>,
        name: Range<usize>,
        given: &BTreeMap<String, Spanned<Value>>,
    ) -> Result<Parameters, ScenarioError> {
        let mut texts = Vec::new();
        for (key, value) in given.iter().filter(|(key, _)| *key != "name") {
            let text = match value.get_ref() {
                Value::String(text) => text.clone(),
                Value::Integer(number) => number.to_string(),
                Value::Float(number) => number.to_string(),
                _ => return Err(self.wrong(key, value.span(), Problem::NotAParameter)),
            };
            // Errors quote the key and the value, so both are shortened here, as in `quantity`.
            texts.push((excerpt::value(key), excerpt::value(&text)));
        }
        let texts: Vec<_> = texts.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        entry.parse(&texts).map_err(|problem| {
            let at = given.get(problem.parameter()).map_or(name, Spanned::span);
            let key = problem.parameter().to_owned();
            self.wrong(&key, at, problem.into())
        })
    }

    fn background(&self, raw: &RawSource, lasts: Span) -> Result<FlowKind, ScenarioError> {
        let rate = self.schedule(self.rate_of(raw)?, &raw.steps, lasts)?;
        self.no_video(raw)?;
        if let Some(length) = &raw.length {
            return Err(self.not_of_this(raw, "length", length.span(), "a flow with a controller or a window has"));
        }
        let table = &self.catalogue.traffic;
        let unknown = || Problem::UnknownEntry { what: table.what(), known: table.names() };
        let entry = table.find(raw.kind.get_ref()).ok_or_else(|| self.wrong("kind", raw.kind.span(), unknown()))?;
        let parameters = self.parameters(entry, raw.kind.span(), &raw.model)?;
        let traffic = Choice { entry: entry.clone(), parameters };
        Ok(FlowKind::Background { traffic, rate })
    }
}

/// Returns the kinds of feedback that a flow's session provides to its controller.
const fn provided(raw: &RawFlow) -> Needs {
    if raw.paths.is_some() {
        multipath::Sender::PROVIDES.and(multipath::Sender::PROVIDES_PER_PATH)
    } else if raw.playout.is_some() {
        rtp::Sender::PROVIDES.and(Needs::PLAYOUT).and(Needs::PACKETS)
    } else {
        rtp::Sender::PROVIDES.and(Needs::PACKETS)
    }
}
