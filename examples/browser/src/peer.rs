//! This program's WebRTC peer connection, which uses webrtc-rs and a congestion control of Equipoise.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use equipoise_webrtc::{Config, Monitor, install};
use rtc::media::Sample;
use rtc::media_stream::MediaStreamTrack;
use rtc::peer_connection::configuration::interceptor_registry::{
    Registry, configure_rtcp_reports, register_default_interceptors,
};
use rtc::peer_connection::configuration::media_engine::{MIME_TYPE_H264, MIME_TYPE_RTX, MIME_TYPE_VP8, MediaEngine};
use rtc::peer_connection::sdp::RTCSessionDescription;
use rtc::peer_connection::transport::RTCIceCandidateInit;
use rtc::rtp_transceiver::rtp_sender::{
    RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters, RTCRtpRtxParameters,
    RtpCodecKind,
};
use tokio::sync::watch;
use tokio::time::timeout;
use webrtc::media_stream::track_local::TrackLocal;
use webrtc::media_stream::track_local::static_sample::TrackLocalStaticSample;
use webrtc::media_stream::track_remote::TrackRemote;
use webrtc::peer_connection::{
    PeerConnection, PeerConnectionBuilder, PeerConnectionEventHandler, RTCIceGatheringState, RTCPeerConnectionState,
};
use webrtc::rtp_transceiver::RtpSender;
use webrtc::runtime::default_runtime;

/// The H.264 format that browsers accept: constrained baseline profile and level 3.1. The remote peer may send another
/// level, and a frame may be split into several packets (RFC 6184, Sec. 8.1).
const H264_FORMAT: &str = "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f";
const SSRC: u32 = 0x00EC_0123;
const RTX_SSRC: u32 = SSRC + 1;
/// Maximum time until the two peers are connected.
const CONNECTING: Duration = Duration::from_secs(20);

pub(crate) struct Peer {
    connection: Box<dyn PeerConnection>,
    pub(crate) monitor: Monitor,
    events: watch::Receiver<Progress>,
}

/// Which steps of setting up a connection are complete.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    gathered: bool,
    connected: bool,
}

struct Handler(watch::Sender<Progress>);

#[async_trait::async_trait]
impl PeerConnectionEventHandler for Handler {
    async fn on_ice_gathering_state_change(&self, state: RTCIceGatheringState) {
        if state == RTCIceGatheringState::Complete {
            self.0.send_modify(|progress| progress.gathered = true);
        }
    }

    async fn on_connection_state_change(&self, state: RTCPeerConnectionState) {
        self.0.send_modify(|progress| progress.connected = state == RTCPeerConnectionState::Connected);
    }

    async fn on_track(&self, track: Arc<dyn TrackRemote>) {
        // Received media is discarded, because the emulated path records the media packets.
        tokio::spawn(async move { while track.poll().await.is_some() {} });
    }
}

impl Peer {
    /// Creates a peer on a free port of the loopback interface with the congestion control of `config`. `sends` says
    /// whether the peer sends video; otherwise it receives.
    pub(crate) async fn new(config: Config, sends: bool) -> Result<Self, Box<dyn Error>> {
        let mut media_engine = MediaEngine::default();
        for codec in [h264(), rtx(103, 102), vp8(), rtx(97, 96)] {
            media_engine.register_codec(codec, RtpCodecKind::Video)?;
        }
        let (registry, monitor) = install(Registry::new(), &mut media_engine, config)?;
        let registry = if sends {
            register_default_interceptors(registry, &mut media_engine)?
        } else {
            // The receiver sends no NACKs. webrtc-rs would repeat a NACK every 0.1 s, even if the round-trip time is
            // longer. The sender would then retransmit a packet several times and fill the path.
            configure_rtcp_reports(registry)
        };
        let (progress, events) = watch::channel(Progress::default());
        let connection = PeerConnectionBuilder::new()
            .with_media_engine(media_engine)
            .with_interceptor_registry(registry)
            .with_handler(Arc::new(Handler(progress)))
            .with_runtime(default_runtime().ok_or("webrtc has no runtime")?)
            .with_udp_addrs(vec!["127.0.0.1:0"])
            .build();
        Ok(Self { connection: Box::new(Box::pin(connection).await?), monitor, events })
    }

    /// Adds an H.264 track to send.
    pub(crate) async fn add_video(&self) -> Result<Video, Box<dyn Error>> {
        let codec = h264().rtp_codec;
        let rtp_coding_parameters = RTCRtpCodingParameters {
            ssrc: Some(SSRC),
            rtx: Some(RTCRtpRtxParameters { ssrc: RTX_SSRC }),
            ..Default::default()
        };
        let encoding = RTCRtpEncodingParameters { rtp_coding_parameters, codec, ..Default::default() };
        let [stream, track, label] = ["stream", "track", "video"].map(str::to_owned);
        let track = MediaStreamTrack::new(stream, track, label, RtpCodecKind::Video, vec![encoding]);
        let track = Arc::new(TrackLocalStaticSample::new(Instant::now(), track)?);
        let sender = self.connection.add_track(Arc::clone(&track) as Arc<dyn TrackLocal>).await?;
        Ok(Video { track, sender })
    }

    /// Returns an SDP offer with all candidate addresses of this peer.
    pub(crate) async fn offer(&mut self) -> Result<String, Box<dyn Error>> {
        let offer = self.connection.create_offer(None).await?;
        self.describe(offer).await
    }

    /// Applies an SDP offer, and returns the SDP answer.
    pub(crate) async fn answer(&mut self, sdp: String) -> Result<String, Box<dyn Error>> {
        self.connection.set_remote_description(RTCSessionDescription::offer(sdp)?).await?;
        let answer = self.connection.create_answer(None).await?;
        self.describe(answer).await
    }

    /// Applies the SDP answer to the offer that this peer created.
    pub(crate) async fn accept(&self, sdp: String) -> Result<(), Box<dyn Error>> {
        Ok(self.connection.set_remote_description(RTCSessionDescription::answer(sdp)?).await?)
    }

    /// Adds a candidate address of the remote peer.
    pub(crate) async fn add_candidate(&self, candidate: String) -> Result<(), Box<dyn Error>> {
        let candidate = RTCIceCandidateInit { candidate, sdp_mid: Some("0".to_owned()), ..Default::default() };
        Ok(self.connection.add_ice_candidate(candidate).await?)
    }

    /// Waits until the peers are connected, so that media can be sent.
    pub(crate) async fn connected(&mut self) -> Result<(), Box<dyn Error>> {
        let wait = self.events.wait_for(|progress| progress.connected);
        timeout(CONNECTING, wait).await.map_err(|_| "the peers do not come together")??;
        Ok(())
    }

    pub(crate) async fn close(self) -> Result<(), Box<dyn Error>> {
        Ok(self.connection.close().await?)
    }

    async fn describe(&mut self, local: RTCSessionDescription) -> Result<String, Box<dyn Error>> {
        self.connection.set_local_description(local).await?;
        self.events.wait_for(|progress| progress.gathered).await?;
        Ok(self.connection.local_description().await.ok_or("there is no local description")?.sdp)
    }
}

/// The video track that this peer sends.
pub(crate) struct Video {
    track: Arc<TrackLocalStaticSample>,
    sender: Arc<dyn RtpSender>,
}

impl Video {
    /// Sends an encoded frame, which is shown for `duration`.
    pub(crate) async fn send(&self, frame: Vec<u8>, duration: Duration) -> Result<(), Box<dyn Error>> {
        let parameters = self.sender.get_parameters().await?;
        let codec = parameters.rtp_parameters.codecs.first().ok_or("no codec was agreed on")?;
        let sample = Sample { data: frame.into(), duration, ..Sample::new(Instant::now()) };
        Ok(self.track.sample_writer(SSRC, codec.payload_type).write_sample(&sample).await?)
    }
}

fn h264() -> RTCRtpCodecParameters {
    codec(MIME_TYPE_H264, H264_FORMAT, 102)
}

fn vp8() -> RTCRtpCodecParameters {
    codec(MIME_TYPE_VP8, "", 96)
}

/// Returns the codec for retransmissions. Packets with payload type `payload_type` carry retransmissions of the packets
/// with payload type `of` (RFC 4588, Sec. 8.6).
fn rtx(payload_type: u8, of: u8) -> RTCRtpCodecParameters {
    codec(MIME_TYPE_RTX, &format!("apt={of}"), payload_type)
}

fn codec(mime_type: &str, format: &str, payload_type: u8) -> RTCRtpCodecParameters {
    let rtp_codec = RTCRtpCodec {
        mime_type: mime_type.to_owned(),
        clock_rate: 90_000,
        channels: 0,
        sdp_fmtp_line: format.to_owned(),
        rtcp_feedback: Vec::new(),
    };
    RTCRtpCodecParameters { rtp_codec, payload_type }
}

/// Returns the SDP text of a host candidate with this address (RFC 8839, Sec. 5.1).
pub(crate) fn candidate(address: SocketAddr) -> String {
    format!("candidate:1 1 udp 2130706431 {} {} typ host", address.ip(), address.port())
}

/// Removes all candidate addresses from an SDP description. Returns the UDP addresses and the remaining description.
pub(crate) fn take_addresses(sdp: &str) -> (Vec<SocketAddr>, String) {
    let is_candidate = |line: &&str| line.starts_with("a=candidate:") || line.starts_with("a=end-of-candidates");
    let address = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let is_udp = words.get(2).is_some_and(|word| word.eq_ignore_ascii_case("udp"));
        Some(SocketAddr::new(words.get(4)?.parse().ok()?, words.get(5)?.parse().ok()?)).filter(|_| is_udp)
    };
    let addresses = sdp.lines().filter(is_candidate).filter_map(address).collect();
    let rest = sdp.lines().filter(|line| !is_candidate(line)).map(|line| format!("{line}\r\n")).collect();
    (addresses, rest)
}
