//! `equipoise send`: sends media to `equipoise receive` on another host, or requests media from it.

mod plan;
mod streams;
mod watch;
mod words;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Instant;

use equipoise::control::Controller as _;
use equipoise::units::{Rate, Size, Span};
use equipoise_net::{Clock, SendConfig, Via};
use equipoise_session::Event;
use equipoise_session::rtp::Payload;
use serde::Serialize;

use self::plan::{controller, directions, fetching, laws, resolve, scheduler, sending};
use self::streams::{Planned, Source, socket};
use self::watch::{Outputs, Watch};
use self::words::{head, words};
use super::args::Send;
use super::input::{Given, Input};
use super::rate_socket::RateSocket;
use super::results::{Direction, End, Sums};
use super::rtcp::ToEncoder;
use crate::error::{CliError, RealError};
use crate::outcome::{Outcome, catch_interrupt, outcome};
use crate::output::Output;
use crate::views::told::Told;
use crate::views::{self, Views};
use crate::writer::{MOST_LINES, Screen, Writer};

/// The last line of the JSON results of a single session in which this host sends. The lines before it contain the
/// session's intervals.
#[derive(Debug, Serialize)]
struct ResultsOfOne {
    start: Start,
    end: End,
    /// Number of intervals that were not written because the output file, or the program that reads it, stalled.
    intervals_dropped: u64,
}

/// The last line of the JSON results of several sessions, or of a single session in which the remote host sends.
#[derive(Debug, Serialize)]
struct ResultsOfMany {
    start: Start,
    streams: Vec<StreamEnd>,
    /// Totals over all sessions of each direction.
    sum: Sums,
    intervals_dropped: u64,
}

/// Totals of one of several sessions.
#[derive(Debug, Serialize)]
struct StreamEnd {
    stream: usize,
    direction: Direction,
    end: End,
}

/// The configuration of the run, as the results contain it.
#[derive(Debug, Serialize)]
struct Start {
    version: &'static str,
    peer: SocketAddr,
    /// The local address; `null` with several sessions or with `--path`, because each session or path has its own
    /// address.
    local: Option<SocketAddr>,
    /// Number of sessions in each direction; omitted for a single session in which this end sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<Sessions>,
    /// The paths and, in `split`, the name of their scheduler; both are omitted without `--path`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<String>,
    encrypted: bool,
    controller: String,
    target_delay_s: Option<f64>,
    /// The kind of delays that the controller uses: `queueing`, `one-way` or `estimated one-way`.
    delay: &'static str,
    packet_size_bytes: u64,
    report_interval_s: f64,
    payload: &'static str,
    /// The source of the packets' timestamps; `null` with several sessions or with `--path`.
    timestamps: Option<&'static str>,
}

/// Number of sessions in each direction.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sessions {
    sent: usize,
    received: usize,
}

/// Default length of a session that sends zeros, as in iperf3.
const DEFAULT_TIME: Span = Span::from_secs(10);

/// Runs `equipoise send`.
pub(crate) fn run(options: &Send) -> Result<Outcome, CliError> {
    let directions = directions(options)?;
    let json = options.ends.json.as_deref().map(Output::promise).transpose()?;
    let key = super::key(&options.ends)?;
    let peer = resolve(options)?;
    let stop = catch_interrupt()?;
    let stdout_is_taken = matches!(json, Some(Output::Stdout));
    let (report, quiet) = (options.ends.report.as_deref(), options.ends.quiet);
    let views = Views::open(&options.viewing, report, quiet, stdout_is_taken, &stop)?;
    let clock = Clock::new();
    scheduler(options)?;
    let mut config = sending(options, peer, key);
    // `Input::of` returns `None` if the user interrupts the command before any payload arrives.
    let Some(input) = Input::of(options, &stop)? else { return Ok(Outcome::Interrupted) };
    (config.payload, config.ssrc) = (input.payload(), input.ssrc());
    config.has_further_source = options.audio.is_some();
    let planned = plan(options, &config, &directions, &clock)?;
    let start = start(options, &config, &planned);
    let screen = Screen::new(quiet || stdout_is_taken, &views);
    // The rate socket is opened before the sessions, so that nothing has been sent if the socket cannot be opened.
    let offer = options.rate_socket.as_deref().map(RateSocket::open).transpose()?;
    let (post, queue) = mpsc::channel();
    let (streams, payloads) = streams::open(planned, &post).map_err(RealError::from)?;
    drop(post);
    let origin = clock.now();
    screen.say(&head(&start));
    let given = Arc::new(Given::default());
    let encoder = input.encoder()?;
    if let Some(payloads) = payloads {
        input.feed(payloads, &stop, &given);
    }
    let audio = AudioRate::new(&config, given.clone());
    let mut steer = steering(options, &config, (offer.as_ref(), encoder), audio);
    let lasts = options.time.or((config.payload == Payload::Generated).then_some(DEFAULT_TIME));
    let lasts = lasts.filter(|time| *time > Span::ZERO);
    let json = json.map(|file| Writer::start(file, MOST_LINES));
    views.tell(Told::Start(views::told::Start {
        version: start.version,
        command: "send",
        title: head(&start).trim_end().to_owned(),
    }));
    let outputs = Outputs { screen, json, views };
    let mut watch = Watch::new(&directions, &start, options.ends.interval, outputs);
    let mut end = Span::ZERO;
    while !stop.load(Ordering::Relaxed) && lasts.is_none_or(|lasts| end < lasts) {
        let open = watch.take_in(&queue, origin, &mut steer);
        end = (clock.now() - origin).max(Span::ZERO);
        watch.tell(end);
        if !open || streams.iter().all(streams::Stream::is_finished) {
            break;
        }
    }
    // The measurements are written even if a session failed.
    let stopped = streams::stop(streams);
    while watch.take_in(&queue, origin, &mut steer) {}
    watch.add(&stopped, clock.wall_clock_steps());
    watch.finish(start, (end, &given), options.delay)?;
    stopped.into_iter().collect::<Result<Vec<_>, _>>().map_err(RealError::from)?;
    Ok(outcome(&stop))
}

/// Measures the rate that audio uses. The session's remaining rate is available for video.
struct AudioRate {
    given: Arc<Given>,
    /// Bytes that are added to each audio packet: IP and UDP headers, encryption, and the header extension.
    headers: u64,
    rate: Rate,
    /// Time of the last measurement, and number of audio bytes, including headers, sent until then.
    measured: Option<(Instant, u64)>,
}

impl AudioRate {
    fn new(config: &SendConfig, given: Arc<Given>) -> Self {
        // The session adds extension elements to each audio packet: the sending time, and the original sequence number
        // and SSRC. 24 bytes are an upper bound of their size, including padding and a new extension header.
        let headers = Size::IPV4_UDP + config.overhead() + Size::from_bytes(24);
        Self { given, headers: headers.as_bytes(), rate: Rate::ZERO, measured: None }
    }

    /// Returns the audio rate in the last measurement period, which lasts at least 1 s; zero during the first period.
    fn now(&mut self) -> Rate {
        let [packets, bytes] =
            [&self.given.audio_packets, &self.given.audio_bytes].map(|count| count.load(Ordering::Relaxed));
        let sent = bytes.saturating_add(packets.saturating_mul(self.headers));
        let (since, before) = *self.measured.get_or_insert_with(|| (Instant::now(), sent));
        let lasted = since.elapsed().as_secs_f64();
        if lasted >= 1.0 {
            self.rate = Rate::from_bps((sent.saturating_sub(before) as f64 * 8.0 / lasted) as u64);
            self.measured = Some((Instant::now(), sent));
        }
        self.rate
    }
}

/// Returns the function that passes the payload rate and the key-frame requests to the encoder.
fn steering<'a>(
    options: &'a Send,
    config: &'a SendConfig,
    (offer, mut encoder): (Option<&'a RateSocket>, Option<ToEncoder>),
    mut audio: AudioRate,
) -> impl FnMut(&Event) + use<'a> {
    move |event| match event {
        Event::RateDecided { rate, .. } => {
            let is_multipath = !options.path.is_empty();
            let rate = Rate::from_bps(rate.as_bps().saturating_sub(audio.now().as_bps()));
            let rate = if is_multipath { config.multipath_payload_rate(rate) } else { config.payload_rate(rate) };
            if let Some(offer) = offer {
                offer.tell_rate(rate.as_bps());
            }
        }
        Event::KeyFrameWanted(request) => {
            if let Some(offer) = offer {
                offer.ask_for_key_frame();
            }
            if let Some(encoder) = &mut encoder {
                encoder.ask(*request);
            }
        }
        _ => {}
    }
}

/// Returns the sessions to open, each with its socket or paths.
fn plan(
    options: &Send,
    config: &SendConfig,
    directions: &[Direction],
    clock: &Clock,
) -> Result<Vec<Planned>, CliError> {
    let peer = config.peer;
    let plan = |direction: &Direction| -> Result<Planned, RealError> {
        Ok(match direction {
            Direction::Sent => {
                let paths = (scheduler(options)?, laws(options, config.packet_size)?);
                let source = Source::of(options, peer, paths, clock)?;
                Planned::Send(Box::new(config.clone()), controller(options, config.packet_size)?, source)
            }
            Direction::Received => {
                let fetching = fetching(options, peer, config.key.clone())?;
                Planned::Fetch(Box::new(fetching), socket(options, peer, clock)?)
            }
        })
    };
    Ok(directions.iter().map(plan).collect::<Result<_, _>>()?)
}

fn start(options: &Send, config: &SendConfig, planned: &[Planned]) -> Start {
    let socket = if let [one] = planned { one.socket() } else { None };
    let received = planned.iter().filter(|one| matches!(one, Planned::Fetch(..))).count();
    let sessions = Sessions { sent: planned.len() - received, received };
    let target = planned.iter().find_map(|one| match one {
        Planned::Send(_, controller, _) => controller.target_delay(),
        Planned::Fetch(..) => None,
    });
    Start {
        version: env!("CARGO_PKG_VERSION"),
        peer: config.peer,
        local: socket.map(equipoise_net::Socket::address),
        sessions: (planned.len() > 1 || received > 0).then_some(sessions),
        paths: options.path.iter().map(Via::to_string).collect(),
        split: (!options.path.is_empty()).then(|| options.scheduler.clone()),
        encrypted: config.key.is_some(),
        controller: if options.bitrate.is_some() { "cbr".to_owned() } else { options.controller().to_owned() },
        target_delay_s: target.map(Span::as_secs_f64),
        delay: words(options.delay),
        packet_size_bytes: config.packet_size.as_bytes(),
        report_interval_s: config.report_interval.as_secs_f64(),
        payload: match config.payload {
            Payload::Generated => "zeros",
            Payload::Stream => "a stream",
            Payload::Rtp => "another program's RTP",
        },
        timestamps: socket.map(|socket| socket.timestamps().name()),
    }
}
