//! Converts the command's options into the configurations of the sessions.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};

use equipoise::control::scheduler::{self, BoxedScheduler};
use equipoise::control::{self, BoxedController, Cbr, ConfigError, Entry, Parameters};
use equipoise::units::{Size, Span};
use equipoise_net::{FetchConfig, Key, NetError, SendConfig, Wanted};
use equipoise_session::Ecn;
use equipoise_session::feedback::{Format, Reporting};
use equipoise_session::multipath::PathLaws;
use equipoise_session::rtp::Delays;

use super::super::args::{DelayKind, EcnField, FeedbackFormat, Send};
use super::super::results::Direction;
use crate::error::RealError;

/// Returns the direction of every session, in the order of the session numbers.
pub(super) fn directions(options: &Send) -> Result<Vec<Direction>, RealError> {
    let count = usize::from(options.ways.parallel);
    let one = [
        (options.file.is_some(), "--file"),
        (options.rtp.is_some(), "--rtp"),
        (options.rate_socket.is_some(), "--rate-socket"),
        (!options.path.is_empty(), "--path"),
    ];
    if let Some((_, option)) = one.iter().find(|(is_given, _)| *is_given && count > 1) {
        return Err(RealError::Parallel { option });
    }
    let each: &[Direction] = match (options.ways.reverse, options.ways.bidir) {
        (true, _) => &[Direction::Received],
        (false, true) => &[Direction::Sent, Direction::Received],
        (false, false) => &[Direction::Sent],
    };
    Ok(each.iter().flat_map(|direction| std::iter::repeat_n(*direction, count)).collect())
}

/// Returns the configuration of a session in which this host sends.
pub(super) fn sending(options: &Send, peer: SocketAddr, key: Option<Key>) -> SendConfig {
    SendConfig {
        packet_size: Size::from_bytes(u64::from(options.length)),
        report_interval: options.report_interval,
        delays: delays(options.delay),
        ecn: ecn(options.ecn),
        reporting: options.feedback.map(|format| reporting(format, options.feedback_interval)),
        ..SendConfig::new(peer, key)
    }
}

/// Returns the configuration of a session in which the remote host sends.
pub(super) fn fetching(options: &Send, peer: SocketAddr, key: Option<Key>) -> Result<FetchConfig, RealError> {
    let (min, max) = options.bitrate.map_or((options.min_rate, options.max_rate), |rate| (rate, rate));
    let wanted = || {
        let wanted = Wanted::new(min, max)?;
        let start = options.start_rate.filter(|_| options.bitrate.is_none());
        let wanted = start.map_or(Ok(wanted), |start| wanted.starting_at(start))?;
        let wanted = wanted.in_packets_of(Size::from_bytes(u64::from(options.length)))?;
        wanted.reported_every(options.report_interval)
    };
    let wanted = wanted().map_err(NetError::from)?.marked(ecn(options.ecn));
    let reporting = options.feedback.map(|format| reporting(format, options.feedback_interval));
    Ok(FetchConfig { reporting, ..FetchConfig::new(peer, key, wanted) })
}

const fn delays(kind: DelayKind) -> Delays {
    match kind {
        DelayKind::Queueing => Delays::Queueing,
        DelayKind::OneWay => Delays::Synchronised,
        DelayKind::Estimated => Delays::Estimated,
    }
}

const fn reporting(format: FeedbackFormat, interval: Span) -> Reporting {
    let format = match format {
        FeedbackFormat::Rfc8888 => Format::CongestionFeedback,
        FeedbackFormat::Twcc => Format::TransportWide,
    };
    Reporting { format, interval }
}

const fn ecn(field: EcnField) -> Ecn {
    match field {
        EcnField::Off => Ecn::NotCapable,
        EcnField::Ect0 => Ecn::Ect0,
        EcnField::Ect1 => Ecn::Ect1,
    }
}

pub(super) fn resolve(options: &Send) -> Result<SocketAddr, RealError> {
    let failed = |source| RealError::Host { host: options.host.clone(), source };
    let mut found = (options.host.as_str(), options.ends.port).to_socket_addrs().map_err(failed)?;
    let wanted = |address: &SocketAddr| !(options.four && address.is_ipv6() || options.six && address.is_ipv4());
    found.find(wanted).ok_or_else(|| failed(io::Error::from(io::ErrorKind::AddrNotAvailable)))
}

/// The target delay if the user sets no target.
const USUAL_TARGET: Span = Span::from_millis(20);

pub(super) fn controller(options: &Send, packet: Size) -> Result<BoxedController, RealError> {
    if let Some(rate) = options.bitrate {
        return Ok(Box::new(Cbr::new(rate)));
    }
    let (entry, parameters) = chosen(options)?;
    entry.build(&parameters, packet).map_err(|source| failed(options, source))
}

/// Returns the function that creates the controller of each path. The session uses the returned function only if the
/// user chose a kind of controller that needs per-packet reports. For other kinds, one controller serves all paths.
pub(super) fn laws(options: &Send, packet: Size) -> Result<PathLaws, RealError> {
    if options.bitrate.is_some() {
        // With a constant rate, all paths share one controller, so no further controllers are created.
        return Ok(PathLaws::new(|| None, None));
    }
    let (entry, parameters) = chosen(options)?;
    let highest = parameters.highest_rate();
    Ok(PathLaws::new(move || entry.build(&parameters, packet).ok(), highest))
}

fn failed(options: &Send, source: ConfigError) -> RealError {
    RealError::Controller { name: options.controller().to_owned(), source }
}

/// Returns the catalogue entry of the requested controller, and the controller's parameters.
fn chosen(options: &Send) -> Result<(&'static Entry, Parameters), RealError> {
    let name = options.controller();
    let entry = control::find(name).ok_or_else(|| RealError::UnknownController {
        name: name.to_owned(),
        known: control::entries().iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })?;
    let target = options.target.unwrap_or(USUAL_TARGET);
    let [target, min, max] = [target.to_string(), options.min_rate.to_string(), options.max_rate.to_string()];
    let start = options.start_rate.map(|rate| rate.to_string());
    let mut given = vec![("target", target.as_str()), ("min_rate", &min), ("max_rate", &max)];
    given.extend(start.as_deref().map(|start| ("initial_rate", start)));
    given.retain(|(name, _)| entry.parameters.iter().any(|parameter| parameter.name == *name));
    for (name, value) in pairs(&options.set) {
        given.retain(|(other, _)| *other != name);
        given.push((name, value));
    }
    let parameters = entry.parse(&given).map_err(|source| failed(options, source))?;
    Ok((entry, parameters))
}

pub(super) fn scheduler(options: &Send) -> Result<BoxedScheduler, RealError> {
    let name = options.scheduler.as_str();
    let entry = scheduler::find(name).ok_or_else(|| RealError::UnknownScheduler {
        name: name.to_owned(),
        known: scheduler::entries().iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })?;
    let failed = |source| RealError::Scheduler { name: name.to_owned(), source };
    let packet = Size::from_bytes(u64::from(options.length));
    let given: Vec<_> = pairs(&options.scheduler_set).collect();
    entry.parse(&given).and_then(|parameters| entry.build(&parameters, packet)).map_err(failed)
}

/// Splits settings `NAME=VALUE` into names and values.
fn pairs(set: &[String]) -> impl Iterator<Item = (&str, &str)> {
    set.iter().map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}
