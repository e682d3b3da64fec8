//! Live video to a real browser over an emulated bottleneck, which steps through 1, 2.5, 0.6 and 1 Mbit/s.
//!
//! A camera of ours is encoded as H.264, sent by webrtc-rs under a rate controller of Equipoise, and decoded by headless Chromium,
//! whose `getStats` tells how that went; or, with `--from chromium`, Chromium sends under its own congestion control and this end
//! receives, on the same path.
//!
//! `(cd examples/browser/js && npm ci) && cargo run --release -p browser`
#![allow(clippy::print_stdout, reason = "it talks to a person")]

mod chromium;
mod encoder;
mod path;
mod peer;
mod report;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use equipoise::control::find;
use equipoise::units::Span;
use equipoise_net::{Clock, Time};
use equipoise_webrtc::{Config, Format};
use rtc::peer_connection::sdp::RTCSessionDescription;
use serde_json::{Value, json};
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
    #[arg(long, value_enum, default_value_t = From::Us)]
    from: From,
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
enum From {
    Us,
    Chromium,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Feedback {
    /// Transport-wide, as browsers offer it.
    Twcc,
    /// RFC 8888, which takes a field trial of Chromium.
    Rfc8888,
}

/// The field trial by which Chromium offers RFC 8888.
const RFC_8888_TRIAL: &str = "--force-fieldtrials=WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/";
/// The most that either sends.
const MOST_BPS: u32 = 5_000_000;
/// Share of the media's rate that the encoder is told. Ours: it keeps to its rate on average, and frames differ.
const SHARE: f64 = 0.95;
/// How long the pacer may have to send for; while more waits, no frame is encoded. Ours: three frames.
const LATEST_S: f64 = 0.12;

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not PARAMETER=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let report = run(&arguments).await?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}

async fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let mut flags = Vec::new();
    let mut given: Vec<_> = arguments.given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    for (name, value) in [("min_rate", "100 kbit/s"), ("max_rate", "5 Mbit/s")] {
        if find(&arguments.controller).is_some_and(|law| law.parameters.iter().any(|known| known.name == name))
            && arguments.given.iter().all(|(given, _)| given != name)
        {
            given.push((name, value));
        }
    }
    let mut config = Config::named(&arguments.controller, &given)?;
    if arguments.feedback == Feedback::Rfc8888 {
        config.format = Format::CongestionFeedback;
        flags.push(RFC_8888_TRIAL);
    }
    let mut peer = Peer::new(config).await?;
    let mut chromium = Chromium::start(&arguments.chromium, &flags).await?;
    let clock = Clock::new();
    let phase = Span::from_secs(i64::from(arguments.phase));
    let (path, begin, video) = match arguments.from {
        From::Us => {
            let video = peer.add_video().await?;
            let (path, begin) = send_to(&mut chromium, &mut peer, &clock, phase).await?;
            (path, begin, Some(video))
        }
        From::Chromium => {
            let (path, begin) = receive_from(&mut chromium, &mut peer, &clock, phase).await?;
            (path, begin, None)
        }
    };
    peer.connected().await?;
    let seconds = u64::from(arguments.phase) * STEPS_BPS.len() as u64;
    let end = begin + Span::from_secs(seconds.cast_signed());
    let mut log = Vec::new();
    let told = async {
        let mut found = Value::Null;
        while clock.now() < end {
            sleep(Duration::from_secs(1)).await;
            found = chromium.call("stats", Value::Null).await?;
            log.push(Second::new(clock.now() - begin, &peer.monitor.status(), &found));
            if !arguments.json {
                println!("{}", log[log.len() - 1]);
            }
        }
        Ok::<_, Box<dyn Error>>(found)
    };
    let (sent, last) = match &video {
        Some(video) => {
            let (sent, last) = tokio::join!(film(video, &peer, &clock, end), told);
            (sent?, last?)
        }
        None => (0, told.await?),
    };
    let through = path.stop(begin, phase)?;
    let version = chromium.version.clone();
    chromium.close().await?;
    let counts = peer.monitor.status().counts;
    peer.close().await?;
    Ok(Report::new(version, sent, &last, through, counts, log))
}

/// Brings both together, where this end sends. Gives the path, and when its phases began.
async fn send_to(
    chromium: &mut Chromium,
    peer: &mut Peer,
    clock: &Clock,
    phase: Span,
) -> Result<(Path, Time), Box<dyn Error>> {
    let offer = peer.offer().await?;
    let (ours, bare) = take_addresses(&offer.sdp);
    let answer = chromium.call("answer", json!({"type": "offer", "sdp": bare})).await?;
    let (theirs, bare) = take_addresses(answer["sdp"].as_str().unwrap_or_default());
    let begin = clock.now();
    let path = Path::new(clock, begin, phase, (one_of(&ours)?, one_of(&theirs)?))?;
    let (entrance, exit) = path.ends()?;
    peer.accept(RTCSessionDescription::answer(bare)?).await?;
    peer.add_candidate(entrance).await?;
    chromium.call("candidate", json!({"candidate": candidate(exit), "sdpMid": "0"})).await?;
    Ok((path, begin))
}

/// Brings both together, where Chromium sends.
async fn receive_from(
    chromium: &mut Chromium,
    peer: &mut Peer,
    clock: &Clock,
    phase: Span,
) -> Result<(Path, Time), Box<dyn Error>> {
    let offer = chromium.call("offer", MOST_BPS).await?;
    let (theirs, bare) = take_addresses(offer["sdp"].as_str().unwrap_or_default());
    let answer = peer.answer(RTCSessionDescription::offer(bare)?).await?;
    let (ours, bare) = take_addresses(&answer.sdp);
    let begin = clock.now();
    let path = Path::new(clock, begin, phase, (one_of(&theirs)?, one_of(&ours)?))?;
    let (entrance, exit) = path.ends()?;
    chromium.call("accept", json!({"type": "answer", "sdp": bare})).await?;
    chromium.call("candidate", json!({"candidate": candidate(entrance), "sdpMid": "0"})).await?;
    peer.add_candidate(exit).await?;
    Ok((path, begin))
}

/// Where a peer is to be reached on the loopback: a page that may not see the host's interfaces listens on all of them.
fn one_of(addresses: &[SocketAddr]) -> Result<SocketAddr, String> {
    let known = addresses.iter().find(|address| address.is_ipv4());
    let known = known.ok_or_else(|| format!("no address of UDP over IPv4 among {addresses:?}"))?;
    Ok((Ipv4Addr::LOCALHOST, known.port()).into())
}

/// Films until `end`, as fast as congestion control lets the encoder. Gives how many frames were sent.
async fn film(video: &Video, peer: &Peer, clock: &Clock, end: Time) -> Result<u64, Box<dyn Error>> {
    let bitrate = |status: &equipoise_webrtc::Status| (status.media_rate.as_bps_f64() * SHARE) as u32;
    let mut camera = Camera::new(bitrate(&peer.monitor.status()))?;
    let frame_time = Duration::from_secs(1) / FRAMES_PER_SECOND;
    let mut tick = interval(frame_time);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut sent, mut asked) = (0, 0);
    while clock.now() < end {
        tick.tick().await;
        let status = peer.monitor.status();
        // What would leave late is of no use.
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
