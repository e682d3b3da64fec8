//! An H.264 encoder whose bitrate follows the rate that the path can carry.
//!
//! The program generates a moving test picture, encodes 25 frames per second with `OpenH264`, and sends the frames
//! through an emulated bottleneck on the loopback interface. The capacity of the bottleneck is 2.5 Mbit/s, except for
//! the middle third of the run, in which it is 0.8 Mbit/s. The program prints one line per second.
//!
//! `cargo run --release -p encoder -- [SECONDS [FILE.h264]]`; the received video is written to FILE.h264, which video
//! players can play.
#![allow(clippy::print_stdout, reason = "it talks to a person")]

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

use equipoise::control;
use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_net::media::{Incoming, MediaReceiver, MediaSender};
use equipoise_net::{Clock, Emulator, EmulatorConfig, Key, Protocol, Route, SendConfig, ServerConfig, Socket};
use equipoise_path::link::{LinkConfig, QueueLimit};
use openh264::encoder::{BitRate, Encoder, EncoderConfig, FrameRate, RateControlMode};
use openh264::formats::YUVBuffer;
use openh264::{OpenH264API, Timestamp};
use openh264_sys2::{ENCODER_OPTION_BITRATE, SBitrateInfo, SPATIAL_LAYER_ALL};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::task::block_in_place;
use tokio::time::{MissedTickBehavior, interval};

const WIDTH: usize = 640;
const HEIGHT: usize = 360;
const FRAMES_PER_SECOND: u32 = 25;
/// Maximum rate of the controller, from which the maximum bitrate of the encoder is computed.
const MOST: Rate = Rate::from_bps(3_000_000);
/// The encoder's bitrate as a share of the payload rate. Our choice: below 1, because frame sizes vary, and the encoder
/// meets its bitrate only on average.
const SHARE: f64 = 0.95;
/// Maximum time to send the waiting data at the present bitrate, in s. Above this maximum, no frame is encoded. Our
/// choice: the time of three frames.
const LATEST_S: f64 = 0.12;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u32 = arguments.next().map_or(Ok(30), |text| text.parse())?;
    let file = arguments.next();

    let key = Some(Key::generate());
    let mut receiver = MediaReceiver::bind((Ipv4Addr::LOCALHOST, 0).into(), ServerConfig::new(key.clone())).await?;
    let clock = Clock::new();
    let socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &clock)?;
    let path = bottleneck(&clock, &socket, &receiver, seconds)?;
    let entrance = path.entrance(0).ok_or("the path has no entrance")?;

    let config = SendConfig { report_interval: Span::from_millis(200), ..SendConfig::stream(entrance, key) };
    let law = control::find("ap").ok_or("no such controller")?;
    let limits = [("target", "20 ms"), ("min_rate", "300 kbit/s"), ("max_rate", &MOST.to_string())];
    let controller = law.build(&law.parse(&limits)?, config.packet_size)?;
    let sender = MediaSender::open_on(socket, config, controller).await?;
    let incoming = receiver.accept().await.ok_or("the receiver failed")?;
    let written = tokio::spawn(write(incoming, file));

    encode(&sender, seconds).await?;
    let summary = sender.close().await?;
    let (bytes, missing) = written.await??;
    println!("{} packets sent; {bytes} bytes came, {missing} packets are missing", summary.packets);
    receiver.close().await?;
    Ok(())
}

/// Generates, encodes and sends a picture 25 times per second.
async fn encode(sender: &MediaSender, seconds: u32) -> Result<(), Box<dyn Error>> {
    let (mut target, measurements) = (sender.target_rate(), sender.measurements());
    let bitrate = |rate: Rate| (sender.payload_rate(rate).as_bps_f64() * SHARE) as u32;
    let config = EncoderConfig::new()
        .rate_control_mode(RateControlMode::Bitrate)
        .bitrate(BitRate::from_bps(bitrate(MOST)))
        .max_frame_rate(FrameRate::from_hz(FRAMES_PER_SECOND as f32));
    let mut encoder = Encoder::with_api_config(OpenH264API::from_source(), config)?;
    let mut tick = interval(Duration::from_secs(1) / FRAMES_PER_SECOND);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut frame, mut bytes, mut left_out) = (Vec::new(), 0, 0);
    let mut lost = None;
    target.mark_changed();
    println!("  time   target  encoder told    gives     delay  frames left out");
    for number in 0..seconds * FRAMES_PER_SECOND {
        tick.tick().await;
        frame.clear();
        // While too much data waits to be sent, no frame is encoded, because the frame would arrive too late.
        if sender.waiting() as f64 * 8.0 <= LATEST_S * f64::from(bitrate(*target.borrow())) {
            let at = Timestamp::from_millis(u64::from(number * 1000 / FRAMES_PER_SECOND));
            block_in_place(|| encoder.encode_at(&picture(number as usize), at).map(|bits| bits.write_vec(&mut frame)))?;
        }
        bytes += frame.len();
        left_out += u32::from(frame.is_empty());
        sender.send(&frame).await?;
        // After a loss, the next frame must be a key frame, which does not depend on the lost data.
        let known = measurements.borrow().lost.filter(|lost| *lost > 0);
        if known > lost {
            encoder.force_intra_frame();
        }
        lost = lost.max(known);
        // The encoder accepts a bitrate only after its first frame.
        if target.has_changed()? {
            set_bitrate(&mut encoder, bitrate(*target.borrow_and_update()))?;
        }
        if (number + 1) % FRAMES_PER_SECOND == 0 {
            let rate = *target.borrow();
            let delay = measurements
                .borrow()
                .delay_mean
                .map_or("-".to_owned(), |mean| format!("{:.1} ms", mean.as_millis_f64()));
            let [told, gives] = [f64::from(bitrate(rate)), bytes as f64 * 8.0].map(|bps| bps / 1e6);
            let time = (number + 1) / FRAMES_PER_SECOND;
            println!(
                "{time:4} s  {:5.2} M       {told:5.2} M  {gives:5.2} M  {delay:>8}  {left_out:>4}",
                rate.as_mbps_f64()
            );
            bytes = 0;
        }
    }
    Ok(())
}

/// Changes the bitrate of a running encoder.
fn set_bitrate(encoder: &mut Encoder, bps: u32) -> Result<(), Box<dyn Error>> {
    let mut bitrate = SBitrateInfo { iLayer: SPATIAL_LAYER_ALL, iBitrate: i32::try_from(bps)? };
    // SAFETY: the encoder exists, and no other code uses it during the call. For this option the encoder reads one
    // `SBitrateInfo` and keeps no pointer to it. (The safe interface of the crate can only set the initial bitrate.)
    let refused = unsafe { encoder.raw_api().set_option(ENCODER_OPTION_BITRATE, (&raw mut bitrate).cast()) };
    if refused == 0 { Ok(()) } else { Err(format!("the encoder refuses {bps} bit/s").into()) }
}

/// Returns picture `number`: a moving texture, a bright bar that crosses the texture, and noise, which needs a high
/// bitrate.
fn picture(number: usize) -> YUVBuffer {
    let mut grain = number as u32;
    let mut yuv = vec![128; WIDTH * HEIGHT * 3 / 2];
    for (at, luma) in yuv.iter_mut().take(WIDTH * HEIGHT).enumerate() {
        let (x, y) = (at % WIDTH + 3 * number, at / WIDTH + number);
        let texture = ((x / 12).wrapping_mul(2_654_435_761) ^ (y / 12).wrapping_mul(40_503)) >> 5;
        let is_bar = (at % WIDTH).abs_diff(number * 5 % WIDTH) < 20;
        grain = grain.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *luma = if is_bar { 220 } else { 48 + (texture % 80) as u8 + (x / 16 % 64) as u8 } + (grain >> 28) as u8;
    }
    YUVBuffer::from_vec(yuv, WIDTH, HEIGHT)
}

/// Starts an emulated path with 10 ms of propagation delay. Its capacity is lower in the middle third of the run.
fn bottleneck(clock: &Clock, from: &Socket, to: &MediaReceiver, seconds: u32) -> Result<Emulator, Box<dyn Error>> {
    let (wide, narrow) = (Rate::from_bps(2_500_000), Rate::from_bps(800_000));
    let third = Span::from_millis(i64::from(seconds) * 1000 / 3);
    let link = |rate| LinkConfig {
        rate,
        propagation_delay: Span::from_millis(10),
        queue: QueueLimit::Bytes(Size::from_bytes(64_000)),
    };
    let forward = link(Schedule::new(wide, vec![(third, narrow), (third + third, wide)]));
    let links = vec![forward.into(), link(Schedule::constant(wide)).into()];
    let (sender, receiver) = (from.address(), to.local_address());
    let route = Route { forward: vec![0], backward: vec![1], protocol: Protocol::Udp, sender, receiver };
    Ok(Emulator::start(clock, EmulatorConfig::new(clock.now(), links, vec![route]))?)
}

/// Writes the received data to `file`, if there is one. Returns the number of bytes received and the number of missing
/// packets.
async fn write(mut incoming: Incoming, file: Option<String>) -> std::io::Result<(usize, u64)> {
    let mut file = if let Some(path) = file { Some(File::create(path).await?) } else { None };
    let (mut bytes, mut missing) = (0, 0);
    while let Some(received) = incoming.recv().await {
        bytes += received.payload.len();
        missing += received.missing;
        if let Some(file) = &mut file {
            file.write_all(&received.payload).await?;
        }
    }
    if let Some(file) = &mut file {
        file.flush().await?;
    }
    Ok((bytes, missing))
}
