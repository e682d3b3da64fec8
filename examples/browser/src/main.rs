//! Live video to a real browser over an emulated bottleneck, whose capacity is 1, 2.5, 0.6 and 1 Mbit/s one after the
//! other.
//!
//! This program encodes a generated picture as H.264 and sends it with webrtc-rs and a rate controller of Equipoise.
//! Headless Chromium decodes the video, and its `getStats` shows the result. With `--from chromium`, Chromium sends
//! with its own congestion control over the same path, to another Chromium or, with `--to us`, to this program.
//!
//! `(cd examples/browser/js && npm ci) && cargo run --release -p browser`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to a person")]

mod chromium;
mod encoder;
mod path;
mod peer;
mod report;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use equipoise::control;
use equipoise::units::Span;
use equipoise_net::{Clock, Time};
use equipoise_webrtc::{Config, Format, Monitor, Status};
use serde_json::Value;
use tokio::task::block_in_place;
use tokio::time::{MissedTickBehavior, interval, sleep};

use chromium::Chromium;
use encoder::{Camera, FRAMES_PER_SECOND};
use path::{Path, STEPS_BPS};
use peer::{Peer, Video, candidate, take_addresses};
use report::{Report, Second};

/// Live video between this program and headless Chromium, over a bottleneck of 1, 2.5, 0.6 and 1 Mbit/s.
#[derive(Debug, Parser)]
struct Arguments {
    /// Who sends: this program under a rate controller of Equipoise, or Chromium under its own.
    #[arg(long, value_enum, default_value_t = Who::Us)]
    from: Who,
    /// Who receives, and reports to the sender.
    #[arg(long, value_enum, default_value_t = Who::Chromium)]
    to: Who,
    /// The rate controller.
    #[arg(long, default_value = "equipoise")]
    controller: String,
    /// A parameter of the rate controller, as `max_rate=5 Mbit/s`; may be repeated.
    #[arg(long = "set", value_name = "PARAMETER=VALUE", value_parser = assignment)]
    given: Vec<(String, String)>,
    /// The format of feedback.
    #[arg(long, value_enum, default_value_t = Feedback::Twcc)]
    feedback: Feedback,
    /// Seconds of each of the four phases.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(6..=600))]
    phase: u32,
    /// The browser.
    #[arg(long, default_value = "/usr/bin/chromium")]
    chromium: PathBuf,
    /// Prints the result as JSON and nothing else.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Who {
    Us,
    Chromium,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Feedback {
    /// Transport-wide, as browsers offer it.
    Twcc,
    /// RFC 8888, for which this program starts Chromium with a field trial.
    Rfc8888,
}

/// The command-line flag with which Chromium offers feedback of RFC 8888 (a field trial of WebRTC).
const RFC_8888_TRIAL: &str = "--force-fieldtrials=WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/";
/// Maximum bitrate of the video if Chromium sends.
const MOST_BPS: u32 = 5_000_000;
/// The encoder's bitrate as a share of the media rate. Our choice: below 1, because frame sizes vary, and the encoder
/// meets its bitrate only on average.
const SHARE: f64 = 0.95;
/// If the pacer needs more than this time, in s, to send the waiting data at the present rate, no frame is encoded. Our
/// choice: the time of three frames.
const LATEST_S: f64 = 0.12;

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not PARAMETER=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let shown = Box::pin(run(&arguments)).await.and_then(|report| {
        if arguments.json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            print!("{report}");
        }
        Ok(())
    });
    let Err(error) = shown else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  {cause}");
        source = cause.source();
    }
    ExitCode::FAILURE
}

async fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let mut sender = End::new(arguments, arguments.from, true).await?;
    let mut receiver = End::new(arguments, arguments.to, false).await?;
    let clock = Clock::new();
    let phase = Span::from_secs(i64::from(arguments.phase));
    let offer = sender.offer().await?;
    let (senders, bare) = take_addresses(&offer);
    let answer = receiver.answer(bare).await?;
    let (receivers, bare) = take_addresses(&answer);
    let begin = clock.now();
    let path = Path::new(&clock, begin, phase, (one_of(&senders)?, one_of(&receivers)?))?;
    let (entrance, exit) = path.ends()?;
    sender.accept(bare).await?;
    sender.add_candidate(entrance).await?;
    receiver.add_candidate(exit).await?;
    sender.connected().await?;
    let end = begin + phase * STEPS_BPS.len() as i64;
    let monitor = sender.monitor();
    let mut log = Vec::new();
    let told = async {
        while clock.now() < end {
            sleep(Duration::from_secs(1)).await;
            let stats = receiver.stats().await?;
            log.push(Second::new(clock.now() - begin, monitor.as_ref().map(Monitor::status), stats));
            if !arguments.json {
                println!("{}", log[log.len() - 1]);
            }
        }
        Ok::<_, Box<dyn Error>>(())
    };
    let (sent, told) = tokio::join!(sender.film(&clock, end), told);
    told?;
    let (sent, through) = (sent?, path.stop(begin, phase)?);
    let versions = [sender.version(), receiver.version()].into_iter().flatten().max();
    sender.close().await?;
    receiver.close().await?;
    Ok(Report::new(versions.unwrap_or_default(), sent, through, monitor.map(|monitor| monitor.status().counts), log))
}

/// One of the two peers of the call: this program or Chromium.
enum End {
    Us(Peer, Option<Video>),
    Chromium(Box<Chromium>),
}

impl End {
    async fn new(arguments: &Arguments, who: Who, sends: bool) -> Result<Self, Box<dyn Error>> {
        let is_rfc_8888 = arguments.feedback == Feedback::Rfc8888;
        Ok(match who {
            Who::Us => {
                let mut config = Config::named(&arguments.controller, &given(arguments))?;
                if is_rfc_8888 {
                    config.format = Format::CongestionFeedback;
                }
                Self::Us(Peer::new(config, sends).await?, None)
            }
            Who::Chromium => {
                let flags: &[_] = if is_rfc_8888 { &[RFC_8888_TRIAL] } else { &[] };
                Self::Chromium(Box::new(Chromium::start(&arguments.chromium, flags).await?))
            }
        })
    }

    /// Returns an SDP offer to send video.
    async fn offer(&mut self) -> Result<String, Box<dyn Error>> {
        match self {
            Self::Us(peer, video) => {
                *video = Some(peer.add_video().await?);
                peer.offer().await
            }
            Self::Chromium(chromium) => chromium.sdp("offer", MOST_BPS).await,
        }
    }

    /// Applies an SDP offer, and returns the SDP answer.
    async fn answer(&mut self, sdp: String) -> Result<String, Box<dyn Error>> {
        match self {
            Self::Us(peer, _) => peer.answer(sdp).await,
            Self::Chromium(chromium) => chromium.sdp("answer", sdp).await,
        }
    }

    /// Applies the SDP answer to the offer that this peer created.
    async fn accept(&mut self, sdp: String) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Us(peer, _) => peer.accept(sdp).await,
            Self::Chromium(chromium) => chromium.call("accept", sdp).await.map(drop),
        }
    }

    /// Adds `address` as a candidate address of the remote peer.
    async fn add_candidate(&mut self, address: SocketAddr) -> Result<(), Box<dyn Error>> {
        let candidate = candidate(address);
        match self {
            Self::Us(peer, _) => peer.add_candidate(candidate).await,
            Self::Chromium(chromium) => chromium.call("candidate", candidate).await.map(drop),
        }
    }

    /// Waits until the peers are connected, so that media can be sent.
    async fn connected(&mut self) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Us(peer, _) => peer.connected().await,
            Self::Chromium(chromium) => chromium.call("connected", Value::Null).await.map(drop),
        }
    }

    /// Returns the monitor of Equipoise's congestion control; `None` if this peer is Chromium.
    fn monitor(&self) -> Option<Monitor> {
        match self {
            Self::Us(peer, _) => Some(peer.monitor.clone()),
            Self::Chromium(_) => None,
        }
    }

    /// Sends video until `end`, and returns the number of frames sent. Chromium sends by itself: for Chromium, this
    /// function waits until `end` and returns the number of frames encoded.
    async fn film(&mut self, clock: &Clock, end: Time) -> Result<u64, Box<dyn Error>> {
        match self {
            Self::Us(peer, Some(video)) => film(video, peer, clock, end).await,
            Self::Us(_, None) => Err("no track was offered".into()),
            Self::Chromium(chromium) => {
                let left = Duration::from_nanos((end - clock.now()).as_nanos().max(0).unsigned_abs());
                sleep(left).await;
                Ok(chromium.call("stats", Value::Null).await?["frames_encoded"].as_u64().unwrap_or(0))
            }
        }
    }

    /// Returns the statistics of Chromium; `Null` if the peer is our program, which decodes no video.
    async fn stats(&mut self) -> Result<Value, Box<dyn Error>> {
        match self {
            Self::Us(..) => Ok(Value::Null),
            Self::Chromium(chromium) => chromium.call("stats", Value::Null).await,
        }
    }

    fn version(&self) -> Option<String> {
        match self {
            Self::Us(..) => None,
            Self::Chromium(chromium) => Some(chromium.version.clone()),
        }
    }

    async fn close(self) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Us(peer, _) => peer.close().await,
            Self::Chromium(chromium) => chromium.close().await,
        }
    }
}

/// Returns the controller's parameters from the command line. Adds a default for each of the two rate limits that the
/// command line does not set and that the controller has.
fn given(arguments: &Arguments) -> Vec<(&str, &str)> {
    let mut given: Vec<_> = arguments.given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    for (name, value) in [("min_rate", "100 kbit/s"), ("max_rate", "5 Mbit/s")] {
        let is_known = |law: &control::Entry| law.parameters.iter().any(|known| known.name == name);
        if control::find(&arguments.controller).is_some_and(is_known) && given.iter().all(|(given, _)| *given != name) {
            given.push((name, value));
        }
    }
    given
}

/// Returns a peer's address on the loopback interface. The port is that of the peer's first IPv4 candidate. The IP
/// addresses of the candidates do not matter: Chromium may hide the addresses of its interfaces, but listens on all
/// interfaces.
fn one_of(addresses: &[SocketAddr]) -> Result<SocketAddr, String> {
    let known = addresses.iter().find(|address| address.is_ipv4());
    let known = known.ok_or_else(|| format!("no address of UDP over IPv4 among {addresses:?}"))?;
    Ok((Ipv4Addr::LOCALHOST, known.port()).into())
}

/// Sends video until `end` at the rate that the congestion control allows. Returns the number of frames sent.
async fn film(video: &Video, peer: &Peer, clock: &Clock, end: Time) -> Result<u64, Box<dyn Error>> {
    let bitrate = |status: &Status| (status.media_rate.as_bps_f64() * SHARE) as u32;
    let mut camera = Camera::new(bitrate(&peer.monitor.status()))?;
    let frame_time = Duration::from_secs(1) / FRAMES_PER_SECOND;
    let mut tick = interval(frame_time);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut sent, mut asked) = (0, 0);
    while clock.now() < end {
        tick.tick().await;
        let status = peer.monitor.status();
        // Skip a frame that would be sent too late.
        if status.waiting.as_bits() as f64 > LATEST_S * status.rate.as_bps_f64() {
            camera.skip();
            continue;
        }
        let is_key = status.key_frame_requests > asked;
        asked = status.key_frame_requests;
        let frame = block_in_place(|| camera.frame(bitrate(&status), is_key))?;
        if !frame.is_empty() {
            video.send(frame, frame_time).await?;
            sent += 1;
        }
    }
    Ok(sent)
}
