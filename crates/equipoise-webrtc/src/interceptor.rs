use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant as HostInstant};

use equipoise::control::{Needs, QueuedFrame};
use equipoise::pace::{Pacer, Readiness};
use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_session::feedback::Format;
use equipoise_session::guest::{Guest, MediaShare, Reports};
use equipoise_session::rtp::SessionError;
use equipoise_session::wire::feedback::ArrivalFeedback;
use equipoise_session::wire::rtcp::parse_compound;
use rtc::interceptor::{Attribute, Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc::rtcp;
use rtc::rtcp::payload_feedbacks::full_intra_request::FullIntraRequest;
use rtc::rtcp::payload_feedbacks::picture_loss_indication::PictureLossIndication;
use rtc::rtp;
use rtc::sansio::Protocol;
use rtc::sdp::extmap::TRANSPORT_CC_URI;
use rtc::shared::error::Error as StackError;
use rtc::shared::marshal::MarshalSize as _;

use crate::config::Config;
use crate::monitor::Monitor;

/// The control loop as an interceptor: paces and records outgoing packets, and passes feedback to a controller.
///
/// [`install`](crate::install) installs it at [`Slot::CongestionControl`](rtc::interceptor::Slot), as the last
/// interceptor before the network, so that every outgoing packet passes it, including retransmissions. RTCP is never
/// delayed. Packets keep their order, so their transport-wide sequence numbers, which are already set, stay in order.
pub struct CongestionControl {
    guest: Guest,
    pacer: Pacer<SenderClock>,
    pacing: f64,
    overhead: Size,
    reports: Reports,
    format: Format,
    streams: BTreeMap<u32, LocalStream>,
    queue: Queue,
    resends: Resends,
    share: MediaShare,
    monitor: Monitor,
    clock: HostClock,
    read: VecDeque<TaggedPacket>,
    written: VecDeque<TaggedPacket>,
    key_frame_requests: u64,
}

/// A stream that this endpoint sends.
#[derive(Clone, Copy, Debug)]
struct LocalStream {
    /// Identifier of the header extension with the transport-wide sequence number, if it was negotiated.
    extension: Option<u8>,
    carries: Carries,
}

/// What a stream contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carries {
    Video,
    /// Retransmissions of another stream (RFC 4588).
    Retransmissions,
    /// Forward error correction of another stream.
    Correction,
    /// Audio.
    Audio,
}

impl CongestionControl {
    /// Creates congestion control that starts at `now`. Returns it together with a monitor of its state.
    ///
    /// # Errors
    /// [`SessionError`] if the controller needs more than per-packet feedback or sets no rate.
    pub fn new(config: Config, now: HostInstant) -> Result<(Self, Monitor), SessionError> {
        let clock = HostClock(now);
        let intervals = config.intervals();
        let guest = Guest::new(config.controller, Needs::PACKETS, intervals, clock.time(now))?;
        let monitor = Monitor::new(guest.rate());
        let control = Self {
            pacer: Pacer::new(guest.pace(config.pacing)),
            guest,
            pacing: config.pacing.max(1.0),
            overhead: config.overhead,
            reports: Reports::new(config.format),
            format: config.format,
            streams: BTreeMap::new(),
            queue: Queue::default(),
            resends: Resends::default(),
            share: MediaShare::default(),
            monitor: monitor.clone(),
            clock,
            read: VecDeque::new(),
            written: VecDeque::new(),
            key_frame_requests: 0,
        };
        Ok((control, monitor))
    }

    /// Sends the packets that are due. If the queue is empty after this, informs the controller of the idle time.
    fn release(&mut self, now: Instant<SenderClock>) {
        while !self.queue.is_empty() && !self.is_window_full() && self.pacer.poll(now) == Readiness::Now {
            let Some(Waiting { mut message, size, .. }) = self.queue.pop() else { break };
            message.now = self.clock.host(now);
            self.pacer.on_departure(now, size);
            if let Packet::Rtp(packet) = &message.message.packet {
                if message.message.has(&Attribute::Retransmission) {
                    self.resends.on_sent(self.original(packet), now);
                    self.share.take(0, size);
                } else {
                    let stream = self.streams.get(&packet.header.ssrc);
                    let is_media = stream.is_none_or(|stream| stream.carries != Carries::Correction);
                    self.share.take(if is_media { packet.payload.len() as u64 } else { 0 }, size);
                }
                if let Some(sequence) = self.sequence(packet)
                    && let Some(sent) = self.reports.on_sent(now, packet.header.ssrc, sequence, size)
                {
                    self.guest.on_sent(now, sent);
                }
            }
            self.written.push_back(message);
            self.keep_pace();
        }
        if self.queue.is_empty()
            && let Readiness::At(due) = self.pacer.poll(now)
        {
            self.guest.on_idle(due);
        } else if self.queue.is_empty() {
            self.guest.on_idle(now);
        }
    }

    /// Returns the sequence number that identifies this packet in the receiver's feedback; `None` if the receiver gives
    /// no feedback on the packet.
    fn sequence(&self, packet: &rtp::Packet) -> Option<u16> {
        let stream = self.streams.get(&packet.header.ssrc)?;
        match self.format {
            Format::CongestionFeedback => Some(packet.header.sequence_number),
            Format::TransportWide => {
                let number = packet.header.get_extension(stream.extension?)?;
                Some(u16::from_be_bytes([*number.first()?, *number.get(1)?]))
            }
        }
    }

    fn is_window_full(&self) -> bool {
        // Even with a window of zero, one packet may be in flight. Otherwise no packet would be sent, and no feedback
        // would arrive.
        self.guest.window().is_some_and(|window| self.reports.in_flight() >= window.max(Size::from_bytes(1)))
    }

    fn keep_pace(&mut self) {
        self.pacer.set_rate(self.guest.pace(self.pacing));
    }

    /// Returns the stream and timestamp of a video frame, if this packet is the frame's last packet; otherwise `None`.
    fn ended_frame(&self, packet: &rtp::Packet) -> Option<(u32, u32)> {
        let (ssrc, is_last) = (packet.header.ssrc, packet.header.marker);
        let is_video = self.streams.get(&ssrc).is_some_and(|stream| stream.carries == Carries::Video);
        (is_last && is_video).then_some((ssrc, packet.header.timestamp))
    }

    /// Returns the SSRC of the retransmission `packet`, and the sequence number of the original packet.
    fn original(&self, packet: &rtp::Packet) -> (u32, u16) {
        let ssrc = packet.header.ssrc;
        let is_wrapped = self.streams.get(&ssrc).is_some_and(|stream| stream.carries == Carries::Retransmissions);
        match packet.payload.get(..2) {
            // The payload begins with the sequence number of the original packet (RFC 4588, Sec. 4).
            Some(&[high, low]) if is_wrapped => (ssrc, u16::from_be_bytes([high, low])),
            _ => (ssrc, packet.header.sequence_number),
        }
    }

    /// Handles received RTCP packets: passes feedback to the controller, and counts key frame requests.
    fn on_rtcp(&mut self, now: Instant<SenderClock>, packets: &[Box<dyn rtcp::Packet>]) {
        for packet in packets {
            let any = packet.as_any();
            if any.is::<PictureLossIndication>() || any.is::<FullIntraRequest>() {
                self.key_frame_requests += 1;
                continue;
            }
            // The packet is encoded again, so that Equipoise's parser can read it. The WebRTC stack's own list of
            // acknowledged packets lacks the timestamp of an RFC 8888 report.
            let Ok(bytes) = packet.marshal() else { continue };
            let Ok(compound) = parse_compound(&bytes) else { continue };
            for feedback in compound.filter_map(|packet| ArrivalFeedback::of(&packet)?.ok()) {
                let news = self.reports.on_feedback(now, feedback);
                let pacing = self.pacer.rate().as_bps_f64() / self.guest.rate().as_bps_f64().max(1.0);
                self.guest.on_feedback(now, &news.feedback(), pacing);
                self.decided();
            }
        }
    }

    /// Paces at the controller's present rate, and updates the monitor.
    fn decided(&mut self) {
        self.keep_pace();
        let (rate, guest) = (self.guest.rate(), &self.guest);
        let media_rate = self.share.of(rate);
        let (counts, key_frame_requests) = (self.reports.counts(), self.key_frame_requests);
        self.monitor.update(|status| {
            (status.rate, status.media_rate, status.counts) = (rate, media_rate, counts);
            status.key_frame_requests = key_frame_requests;
            status.round_trip = (counts.reports > 0).then(|| guest.round_trip());
            (status.snapshot, status.beliefs) = (guest.snapshot(), guest.beliefs());
        });
    }

    fn say_what_waits(&self) {
        let (waiting, key_frame_requests) = (self.queue.size, self.key_frame_requests);
        self.monitor.update(|status| (status.waiting, status.key_frame_requests) = (waiting, key_frame_requests));
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for CongestionControl {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = StackError;
    type Time = HostInstant;

    fn handle_read(&mut self, message: TaggedPacket) -> Result<(), StackError> {
        if let Packet::Rtcp(packets) = &message.message.packet {
            let now = self.clock.time(message.now);
            self.on_rtcp(now, packets);
            self.release(now);
            self.say_what_waits();
        }
        self.read.push_back(message);
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        self.read.pop_front()
    }

    fn handle_write(&mut self, message: TaggedPacket) -> Result<(), StackError> {
        let now = self.clock.time(message.now);
        let Packet::Rtp(packet) = &message.message.packet else {
            self.written.push_back(message);
            return Ok(());
        };
        if self.queue.is_full() {
            return Ok(());
        }
        let size = Size::from_bytes(packet.marshal_size() as u64) + self.overhead;
        if self.queue.is_empty() {
            self.pacer.rested_until(now);
        }
        if message.message.has(&Attribute::Retransmission) {
            let original = self.original(packet);
            if !self.resends.may(original, now, self.guest.round_trip()) {
                return Ok(());
            }
            self.queue.push(Waiting { message, size, since: now });
        } else {
            let frame = self.ended_frame(packet);
            self.queue.push(Waiting { message, size, since: now });
            if let Some((ssrc, timestamp)) = frame {
                self.guest.on_frame(now, &self.queue.frame(now, ssrc, timestamp));
            }
        }
        self.decided();
        self.release(now);
        self.say_what_waits();
        Ok(())
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.written.pop_front()
    }

    fn handle_timeout(&mut self, now: HostInstant) -> Result<(), StackError> {
        let now = self.clock.time(now);
        if self.guest.next_timer().is_some_and(|at| at <= now) {
            if self.guest.on_timer(now) {
                self.reports.on_silence();
            }
            self.decided();
        }
        self.release(now);
        self.say_what_waits();
        Ok(())
    }

    fn poll_timeout(&mut self) -> Option<HostInstant> {
        let media = match self.queue.front().map(|first| self.pacer.poll(first.since)) {
            Some(Readiness::At(due)) if !self.is_window_full() => Some(due),
            Some(Readiness::Now) if !self.is_window_full() => self.queue.front().map(|first| first.since),
            _ => None,
        };
        [media, self.guest.next_timer()].into_iter().flatten().min().map(|at| self.clock.host(at))
    }
}

impl Interceptor for CongestionControl {
    fn bind_local_stream(&mut self, info: &StreamInfo) {
        let extension = info.rtp_header_extensions.iter().find(|extension| extension.uri == TRANSPORT_CC_URI);
        let extension = extension.and_then(|extension| u8::try_from(extension.id).ok());
        let is_video = info.mime_type.to_ascii_lowercase().starts_with("video/");
        let carries = if is_video { Carries::Video } else { Carries::Audio };
        let streams = [
            (Some(info.ssrc), carries),
            (info.ssrc_rtx, Carries::Retransmissions),
            (info.ssrc_fec, Carries::Correction),
        ];
        for (ssrc, carries) in streams {
            if let Some(ssrc) = ssrc {
                self.streams.insert(ssrc, LocalStream { extension, carries });
            }
        }
    }

    fn unbind_local_stream(&mut self, info: &StreamInfo) {
        for ssrc in [Some(info.ssrc), info.ssrc_rtx, info.ssrc_fec].into_iter().flatten() {
            self.streams.remove(&ssrc);
            self.reports.forget(ssrc);
        }
    }

    fn bind_remote_stream(&mut self, _info: &StreamInfo) {}

    fn unbind_remote_stream(&mut self, _info: &StreamInfo) {}
}

/// Converts between the host's time and the controller's time. Congestion control starts at [`EPOCH`](Self::EPOCH).
#[derive(Clone, Copy, Debug)]
struct HostClock(HostInstant);

impl HostClock {
    /// The controller's time when congestion control starts, in nanoseconds: about 36 years. A receiver's timestamps
    /// wrap, so they may seem to be days before the start. With this value, no time is negative.
    const EPOCH: u64 = 1 << 60;

    fn time(self, now: HostInstant) -> Instant<SenderClock> {
        let since = u64::try_from(now.saturating_duration_since(self.0).as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(Self::EPOCH.saturating_add(since))
    }

    fn host(self, at: Instant<SenderClock>) -> HostInstant {
        self.0.checked_add(Duration::from_nanos(at.as_nanos().saturating_sub(Self::EPOCH))).unwrap_or(self.0)
    }
}

/// Packets that wait for the pacer, oldest first.
#[derive(Default)]
struct Queue {
    packets: VecDeque<Waiting>,
    size: Size,
}

struct Waiting {
    message: TaggedPacket,
    /// Size of the IP packet.
    size: Size,
    since: Instant<SenderClock>,
}

impl Queue {
    /// Maximum number of waiting packets: about one second at 50 Mbit/s. If the queue is full, new packets of the
    /// application are dropped.
    const MOST: usize = 4096;

    fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    fn front(&self) -> Option<&Waiting> {
        self.packets.front()
    }

    fn is_full(&self) -> bool {
        self.packets.len() >= Self::MOST
    }

    fn push(&mut self, waiting: Waiting) {
        self.size = self.size + waiting.size;
        self.packets.push_back(waiting);
    }

    fn pop(&mut self) -> Option<Waiting> {
        let first = self.packets.pop_front()?;
        self.size = self.size - first.size;
        Some(first)
    }

    /// Returns the description of the frame that was just queued. `ssrc` and `timestamp` identify the frame. The
    /// description includes the amount of data queued before the frame.
    fn frame(&self, now: Instant<SenderClock>, ssrc: u32, timestamp: u32) -> QueuedFrame {
        let is_of = |it: &&Waiting| match &it.message.message.packet {
            Packet::Rtp(packet) => packet.header.ssrc == ssrc && packet.header.timestamp == timestamp,
            _ => false,
        };
        let own = self.packets.iter().rev().take_while(is_of);
        let (count, size) = own.fold((0, Size::ZERO), |(count, size), it| (count + 1, size + it.size));
        let before = self.packets.len() - count;
        let waited = self.packets.front().filter(|_| before > 0).map_or(Span::ZERO, |first| now - first.since);
        QueuedFrame::new(size, self.size - size, waited)
    }
}

/// Packets whose retransmission waits in the queue, or was sent in the last round trip.
///
/// A receiver repeats its request once per round trip or sooner, even while the first retransmission still waits in the
/// queue. If each request were answered, a slow path would be filled with duplicates. Without retransmission streams
/// (RFC 4588), all retransmissions of a packet have the same sequence number. In this case, the receiver's SRTP
/// discards duplicates as replays, and the feedback does not report the duplicates.
#[derive(Debug, Default)]
struct Resends {
    /// Time at which each packet was last retransmitted, by stream and sequence number; `None` while the retransmission
    /// waits.
    packets: BTreeMap<(u32, u16), Option<Instant<SenderClock>>>,
}

impl Resends {
    /// Returns whether a packet may be queued for retransmission. If so, records it as waiting.
    fn may(&mut self, original: (u32, u16), now: Instant<SenderClock>, round_trip: Span) -> bool {
        self.packets.retain(|_, left| left.is_none_or(|left| now - left < round_trip));
        let is_new = !self.packets.contains_key(&original);
        if is_new {
            self.packets.insert(original, None);
        }
        is_new
    }

    fn on_sent(&mut self, original: (u32, u16), now: Instant<SenderClock>) {
        self.packets.insert(original, Some(now));
    }
}
