//! `equipoise receive`: receives media from other hosts and, on request, sends media to them.

mod watch;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use equipoise_net::{Clock, End, Server, ServerConfig, Session, SessionObserver, Socket, SocketStats, Time};
use equipoise_session::rtp::{Payload, ReorderConfig};
use equipoise_session::{DropReason, Event, PathId};
use serde::Serialize;

use self::watch::{Given, Note, Outputs, SessionResult, Watch};
use super::args::Receive;
use super::results::Together;
use super::rtcp;
use crate::error::{CliError, RealError};
use crate::outcome::{Outcome, catch_interrupt, outcome};
use crate::output::Output;
use crate::views::told::Told;
use crate::views::{self, Views};
use crate::writer::{Inlet, MOST_LINES, MOST_PAYLOAD, Screen, Writer};

/// The last line of the JSON results. The lines before it contain the intervals of the sessions.
#[derive(Debug, Serialize)]
struct Results {
    start: Start,
    /// The first 1000 sessions that ended, in the order in which they ended.
    sessions: Vec<SessionResult>,
    /// The totals of all sessions that `sessions` does not list.
    more_sessions: Together,
    /// Number of intervals that were not written because the output file, or the program that reads it, stalled.
    intervals_dropped: u64,
    /// Number of datagrams that were ignored before they reached a session, by the reason for ignoring them.
    ignored: BTreeMap<&'static str, u64>,
    /// Number of datagrams that this host could not send; `null` if the server failed.
    datagrams_unsent: Option<u64>,
    /// Number of detected steps of this host's wall clock. The measured delays do not depend on this clock.
    wall_clock_steps: u64,
}

#[derive(Debug, Serialize)]
struct Start {
    version: &'static str,
    local: SocketAddr,
    encrypted: bool,
    timestamps: &'static str,
}

/// Interval at which the main thread handles the events of the server's thread, and at which the thread that receives
/// RTCP checks whether it must stop.
const TICK: Duration = Duration::from_millis(20);
/// Sends the server's events to the main thread through an unbounded channel, so the server's thread never blocks.
/// Payload itself goes directly to the player and to the queue of the output file.
struct Poster {
    post: mpsc::Sender<Note>,
    rtp: Option<PlayOut>,
    output: Option<Inlet>,
}

/// The socket that sends received RTP packets to the player, and the player's addresses for video and audio.
struct PlayOut {
    socket: UdpSocket,
    video: SocketAddr,
    audio: SocketAddr,
}

impl SessionObserver for Poster {
    fn on_open(&mut self, now: Time, session: &Session) {
        let _ = self.post.send(Note::Opened(now, *session));
    }

    fn on_event(&mut self, now: Time, session: &Session, event: &Event) {
        let _ = self.post.send(Note::Event(now, session.number, None, *event));
    }

    fn on_path_event(&mut self, now: Time, session: &Session, path: PathId, event: &Event) {
        let _ = self.post.send(Note::Event(now, session.number, Some(path), *event));
    }

    fn on_payload(&mut self, _now: Time, session: &Session, missing: u64, payload: &[u8]) {
        let is_rtp = session.payload == Payload::Rtp;
        let is_audio = is_rtp && payload.get(8..12).is_some_and(|source| source != session.ssrc.to_be_bytes());
        if let (true, Some(PlayOut { socket, video, audio })) = (is_rtp, &self.rtp) {
            // An error is ignored: if the player does not listen yet, the session continues.
            let _ = socket.send_to(payload, if is_audio { audio } else { video });
        }
        let output = self.output.as_ref().filter(|_| session.number == 0);
        let is_dropped = output.is_some_and(|output| !output.offer(payload.to_vec()));
        let given = Given { missing, bytes: payload.len() as u64, is_audio, is_dropped };
        let _ = self.post.send(Note::Payload(session.number, given));
    }

    fn on_end(&mut self, now: Time, session: &Session, why: End) {
        let _ = self.post.send(Note::Ended(now, session.number, why));
    }

    fn on_ignored(&mut self, _now: Time, reason: DropReason) {
        let _ = self.post.send(Note::Ignored(reason));
    }
}

/// Runs `equipoise receive`.
pub(crate) fn run(options: &Receive) -> Result<Outcome, CliError> {
    let stop = catch_interrupt()?;
    let key = super::key(&options.ends)?;
    let (Outputs { screen, json, views }, output) = outputs(options, &stop)?;
    let clock = Clock::new();
    // A socket that is bound to the unspecified IPv6 address receives IPv4 datagrams as well.
    let bind = options.bind.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    let mut socket = Socket::bind((bind, options.ends.port).into(), &clock)?;
    socket.set_dscp(options.ends.dscp);
    let start = Start {
        version: env!("CARGO_PKG_VERSION"),
        local: socket.address(),
        encrypted: key.is_some(),
        timestamps: socket.timestamps().name(),
    };
    let rtp = options.rtp.map(|video| {
        let audio = options.audio.unwrap_or(video);
        play_out(video, options.rtcp).map(|socket| PlayOut { socket, video, audio })
    });
    let rtp = rtp.transpose()?;
    let feedback = rtp.as_ref().map(|out| out.socket.try_clone().map(|socket| (socket, out.video)));
    let feedback = feedback.transpose().map_err(|source| RealError::Input { what: "RTCP".to_owned(), source })?;
    let config = ServerConfig {
        reorder: ReorderConfig { hold: options.hold, ..ReorderConfig::default() },
        repairs: options.repair,
        most_sessions: options.most_sessions,
        idle: options.idle,
        reverse_limit: options.reverse_limit(),
        ..ServerConfig::new(key)
    };
    let (post, queue) = mpsc::channel();
    let poster = Poster { post, rtp, output: output.as_ref().map(|output| output.inlet().clone()) };
    let server = Server::start(socket, config, poster)?;
    if let Some((socket, decoder)) = feedback {
        rtcp::from_decoder(socket, decoder, server.key_frames().clone(), stop.clone());
    }
    let secure = if start.encrypted { "encrypted sessions" } else { "sessions without encryption or authentication" };
    let title = format!("receiving {secure} at {}", start.local);
    screen.say(&format!("{title}\n"));
    views.tell(Told::Start(views::told::Start { version: start.version, command: "receive", title }));
    let has_failed = || output.as_ref().is_some_and(Writer::has_failed);
    let origin = clock.now();
    let mut watch = Watch::new(Outputs { screen, json, views }, origin, options.ends.interval);
    while !stop.load(Ordering::Relaxed) && options.time.is_none_or(|lasts| clock.now() - origin < lasts) {
        let open = watch.take_in(&queue, TICK);
        watch.tell(clock.now());
        let is_over = server.is_finished() || options.one_off && watch.is_over();
        if !open || is_over || has_failed() {
            break;
        }
    }
    // The measurements are written even if the server or the output failed.
    let stopped = server.stop();
    watch.take_in(&queue, Duration::ZERO);
    let socket = stopped.as_ref().ok().map(|(_, host)| host.socket);
    let told = finish(watch, start, socket, &clock);
    output.map_or(Ok(()), |output| output.finish()?.finish())?;
    told?;
    stopped?;
    Ok(outcome(&stop))
}

/// Opens the outputs of the command. The second return value writes the received payload, if `--output` requests this.
fn outputs(options: &Receive, stop: &Arc<AtomicBool>) -> Result<(Outputs, Option<Writer>), CliError> {
    let json = options.ends.json.as_deref().map(Output::promise).transpose()?;
    let output = options.output.as_deref().map(Output::promise).transpose()?;
    let stdout_is_taken = [&json, &output].iter().any(|file| matches!(file, Some(Output::Stdout)));
    let (report, quiet) = (options.ends.report.as_deref(), options.ends.quiet);
    let views = Views::open(&options.viewing, report, quiet, stdout_is_taken, stop)?;
    let screen = Screen::new(quiet || stdout_is_taken, &views);
    let json = json.map(|file| Writer::start(file, MOST_LINES));
    Ok((Outputs { screen, json, views }, output.map(|file| Writer::start(file, MOST_PAYLOAD))))
}

/// Ends all sessions and views, and writes the last line of the results.
fn finish(mut watch: Watch, start: Start, socket: Option<SocketStats>, clock: &Clock) -> Result<(), CliError> {
    // Sessions are still open here if the server failed.
    watch.end_all(clock.now());
    let Outputs { screen, json, views } = watch.outputs;
    let viewed = views.finish((clock.now() - watch.origin).as_secs_f64());
    screen.finish();
    if let Some(unanswerable) = socket.map(|socket| socket.unanswerable).filter(|count| *count > 0) {
        watch.ignored.insert("unanswerable", unanswerable);
    }
    let Some(json) = json else { return viewed };
    let results = Results {
        start,
        sessions: watch.done,
        more_sessions: watch.more,
        intervals_dropped: json.inlet().dropped(),
        ignored: watch.ignored,
        datagrams_unsent: socket.map(|socket| socket.unsent),
        wall_clock_steps: clock.wall_clock_steps(),
    };
    json.fulfil(&results).and(viewed)
}

/// Opens the socket that sends RTP to the program at `to` and receives the program's RTCP. The socket's address is the
/// result of [`local_for`].
fn play_out(to: SocketAddr, local: Option<SocketAddr>) -> Result<UdpSocket, RealError> {
    let from = local_for(to, local);
    let open = || {
        let socket = UdpSocket::bind(from)?;
        socket.set_read_timeout(Some(TICK))?;
        Ok(socket)
    };
    let what = || local.map_or_else(|| format!("a socket to {to}"), |_| format!("RTCP at {from}"));
    open().map_err(|source| RealError::Input { what: what(), source })
}

/// Returns the local address of a socket that sends to a program at `to`. `wanted` is the address of `--rtcp`.
///
/// If `--rtcp` has only a port, `wanted` contains an IPv4 loopback address. If `wanted` contains a loopback address
/// that cannot reach `to`, the unspecified address with the same port is returned instead. If `wanted` is `None`, any
/// free port is used.
fn local_for(to: SocketAddr, wanted: Option<SocketAddr>) -> SocketAddr {
    let any: IpAddr = if to.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let leads_there =
        |wanted: &SocketAddr| !wanted.ip().is_loopback() || to.ip().is_loopback() && wanted.is_ipv6() == to.is_ipv6();
    wanted.filter(leads_there).unwrap_or((any, wanted.map_or(0, |wanted| wanted.port())).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, `--rtcp 5009`, a port without an address, prevents sending RTP to a player on another host.
    #[test]
    fn a_port_alone_leads_to_every_player() {
        let address = |text: &str| -> SocketAddr { text.parse().expect("an address") };
        let from = |to: &str, wanted: Option<&str>| local_for(address(to), wanted.map(address)).to_string();
        assert_eq!(from("127.0.0.1:5008", Some("127.0.0.1:5009")), "127.0.0.1:5009");
        assert_eq!(from("192.0.2.7:5008", Some("127.0.0.1:5009")), "0.0.0.0:5009");
        assert_eq!(from("[::1]:5008", Some("127.0.0.1:5009")), "[::]:5009");
        assert_eq!(from("192.0.2.7:5008", Some("192.0.2.1:5009")), "192.0.2.1:5009");
        assert_eq!(from("192.0.2.7:5008", None), "0.0.0.0:0");
    }
}
