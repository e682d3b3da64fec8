//! The payload of a sender: zeros, a stream of bytes, or RTP packets from another program.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use equipoise_net::PayloadSender;
use equipoise_session::rtp::Payload;

use super::args::Send;
use super::rtcp::{Encoder, ToEncoder, is_rtp};
use crate::error::{CliError, RealError};

/// Interval at which a thread that waits for packets checks whether it must stop.
const TICK: Duration = Duration::from_millis(20);

/// Counters of the packets that other programs send to this sender.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// Number of packets that were dropped because the queue was full.
    pub(super) dropped: AtomicU64,
    /// Number of packets that arrived at the encoder's port and were dropped because their SSRC is not the encoder's
    /// SSRC.
    pub(super) foreign: AtomicU64,
    /// Number of audio packets that were queued for sending, and their number of bytes.
    pub(super) audio_packets: AtomicU64,
    pub(super) audio_bytes: AtomicU64,
}

/// The source of the payload that the session sends.
pub(super) enum Input {
    Zeros,
    Bytes(Box<dyn Read + std::marker::Send>),
    Packets(Relay),
}

impl Input {
    /// Opens the input that `options` request. Returns `None` if `stop` is set before the first packet arrives.
    pub(super) fn of(options: &Send, stop: &AtomicBool) -> Result<Option<Self>, CliError> {
        if let Some(local) = options.rtp {
            return Ok(Relay::listen(local, options, stop)?.map(Self::Packets));
        }
        Ok(Some(options.file.as_deref().map(open).transpose()?.map_or(Self::Zeros, Self::Bytes)))
    }

    pub(super) const fn payload(&self) -> Payload {
        match self {
            Self::Zeros => Payload::Generated,
            Self::Bytes(_) => Payload::Stream,
            Self::Packets(_) => Payload::Rtp,
        }
    }

    /// Returns the SSRC of the RTP packets; `None` if the payload is not RTP.
    pub(super) const fn ssrc(&self) -> Option<u32> {
        if let Self::Packets(relay) = self { Some(relay.ssrc) } else { None }
    }

    /// Returns the encoder to which key-frame requests are sent; `None` if the payload is not RTP.
    pub(super) fn encoder(&self) -> Result<Option<ToEncoder>, CliError> {
        let Self::Packets(relay) = self else { return Ok(None) };
        let to = ToEncoder::new(&relay.socket, relay.encoder.clone());
        let failed = |source| RealError::Input { what: "the RTP socket".to_owned(), source };
        Ok(Some(to.map_err(failed)?))
    }

    /// Starts separate threads that pass the payload to the session. Zeros need no thread.
    pub(super) fn feed(self, payloads: PayloadSender, stop: &Arc<AtomicBool>, given: &Arc<Given>) {
        match self {
            Self::Zeros => drop(payloads),
            Self::Bytes(bytes) => feed(bytes, payloads),
            Self::Packets(relay) => relay.forward(payloads, stop, given),
        }
    }
}

fn open(path: &Path) -> Result<Box<dyn Read + std::marker::Send>, CliError> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let failed = |source| RealError::Input { what: path.display().to_string(), source };
    Ok(Box::new(File::open(path).map_err(failed)?))
}

/// Reads `input` on a separate thread, as fast as the session accepts the bytes.
fn feed(mut input: Box<dyn Read + std::marker::Send>, payloads: PayloadSender) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    if payloads.push(&buffer[..length]).is_err() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // The session still sends the data that was read before the error.
                    let _ = writeln!(anstream::stderr(), "error: cannot continue reading: {error}");
                    break;
                }
            }
        }
    });
}

/// Receives another program's RTP packets at a local port and, if requested, its audio packets at a second port.
pub(super) struct Relay {
    socket: UdpSocket,
    audio: Option<UdpSocket>,
    /// The SSRC of the first RTP packet. The session uses the same SSRC.
    ssrc: u32,
    first: Vec<u8>,
    encoder: Encoder,
}

impl Relay {
    /// Opens the ports and waits for the first RTP packet. Returns `None` if `stop` is set before a packet arrives.
    fn listen(local: SocketAddr, options: &Send, stop: &AtomicBool) -> Result<Option<Self>, CliError> {
        let socket = bind(local)?;
        let audio = options.audio.map(bind).transpose()?;
        let mut buffer = vec![0; 65_536];
        while !stop.load(Ordering::Relaxed) {
            match socket.recv_from(&mut buffer) {
                // Other datagrams, such as the program's RTCP packets, are ignored.
                Ok((length, from)) if is_rtp(&buffer[..length]) => {
                    let ssrc = source_of(&buffer[..length]);
                    let encoder = Encoder::new(from, ssrc, options.rtcp);
                    return Ok(Some(Self { socket, ssrc, first: buffer[..length].to_vec(), encoder, audio }));
                }
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(source) => return Err(RealError::Input { what: format!("RTP at {local}"), source }.into()),
            }
        }
        Ok(None)
    }

    /// Forwards packets on separate threads. Packets that do not fit into the queue are dropped and counted, because
    /// late media are useless.
    fn forward(self, payloads: PayloadSender, stop: &Arc<AtomicBool>, given: &Arc<Given>) {
        let Self { socket, audio, ssrc, first, encoder } = self;
        if let Some(audio) = audio {
            let (payloads, stop, given) = (payloads.clone(), stop.clone(), given.clone());
            thread::spawn(move || forward_audio(&audio, ssrc, &payloads, &stop, &given));
        }
        let (stop, given) = (stop.clone(), given.clone());
        thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            let mut next = payloads.try_push(&first);
            while let (Ok(taken), false) = (next, stop.load(Ordering::Relaxed)) {
                given.dropped.fetch_add(u64::from(!taken), Ordering::Relaxed);
                next = match socket.recv_from(&mut buffer) {
                    Ok((length, from)) if is_rtp(&buffer[..length]) => {
                        let packet = &mut buffer[..length];
                        if encoder.accepts(Instant::now(), from, source_of(packet)) {
                            // If the encoder restarts with another SSRC, the session keeps its own SSRC. The decoder
                            // then sees a jump of the sequence number and of the timestamp, but no unknown source.
                            packet[8..12].copy_from_slice(&ssrc.to_be_bytes());
                            payloads.try_push(packet)
                        } else {
                            given.foreign.fetch_add(1, Ordering::Relaxed);
                            Ok(true)
                        }
                    }
                    _ => Ok(true),
                };
            }
        });
    }
}

/// Maximum number of audio packets that are discarded when the session opens: 5000 packets of 20 ms are 100 s of audio.
const MOST_LATE: usize = 5000;

/// Forwards the RTP packets that arrive at the audio port `socket`, except those with the SSRC `video`.
fn forward_audio(socket: &UdpSocket, video: u32, payloads: &PayloadSender, stop: &AtomicBool, given: &Given) {
    let mut buffer = vec![0; 65_536];
    // Packets that arrived before the session opened are too late and are discarded. The number of discarded packets is
    // limited, because packets may keep arriving.
    let is_late = |_: &usize| socket.recv(&mut buffer).is_ok();
    if socket.set_nonblocking(true).is_ok() {
        let _ = (0..MOST_LATE).take_while(is_late).count();
        let _ = socket.set_nonblocking(false);
    }
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, _)) = socket.recv_from(&mut buffer) else { continue };
        if !is_rtp(&buffer[..length]) || buffer[8..12] == video.to_be_bytes() {
            continue;
        }
        match payloads.try_push(&buffer[..length]) {
            Ok(true) => {
                given.audio_packets.fetch_add(1, Ordering::Relaxed);
                given.audio_bytes.fetch_add(length as u64, Ordering::Relaxed);
            }
            Ok(false) => _ = given.dropped.fetch_add(1, Ordering::Relaxed),
            Err(_) => break,
        }
    }
}

/// Opens the socket that receives the packets of another program.
fn bind(local: SocketAddr) -> Result<UdpSocket, RealError> {
    let open = || {
        let socket = UdpSocket::bind(local)?;
        socket.set_read_timeout(Some(TICK))?;
        Ok(socket)
    };
    open().map_err(|source| RealError::Input { what: format!("RTP at {local}"), source })
}

/// Returns the SSRC of an RTP packet.
fn source_of(packet: &[u8]) -> u32 {
    u32::from_be_bytes([packet[8], packet[9], packet[10], packet[11]])
}
