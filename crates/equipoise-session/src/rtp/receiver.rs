use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::compound::CompoundTimer;
use super::key_frames::KeyFrameAsker;
use super::missing::MissingPackets;
use super::outbox::Outbox;
use super::payload::Payload;
use super::playout::{PlayoutBuffer, PlayoutMeter};
use super::reception::{Answer, Clocks, Cut, Reception, Timed, Timeline};
use super::reorder::{Came, ReorderBuffer, ReorderConfig};
use super::stream::{SessionError, check_cname, check_reporting};
use crate::feedback::{Reporter, Reporting};
use crate::wire::key_frames::KeyFrameRequest;
use crate::wire::rtcp::{self, ReportBlock, RtcpPacket, SenderReport};
use crate::wire::rtp::RtpPacket;
use crate::wire::{NtpTime, is_rtcp, relay};
use crate::{DropReason, Ecn, Endpoint, Event, Input, Output, Transmit, Wake, WakeReason};
use equipoise::measure::{ClockMap, DelaySummary};
use equipoise::units::{Instant, ReceiverClock, Size, Span};

/// The configuration of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// The receiver's own synchronisation source, for its reports.
    pub ssrc: u32,
    /// Canonical name for SDES; at most [`StreamConfig::MAX_CNAME`](super::StreamConfig::MAX_CNAME) bytes.
    pub cname: String,
    /// The sender's synchronisation source, as agreed beforehand; packets from any other source are ignored.
    pub sender_ssrc: u32,
    /// How the sender's and the receiver's clocks relate.
    pub clocks: Clocks,
    /// What the session's media contains. Generated payload is not delivered to the application.
    pub payload: Payload,
    /// How received packets are put into order and delivered.
    pub reorder: ReorderConfig,
    /// Overhead per datagram in addition to the IPv4 and UDP headers
    /// ([`StreamConfig::overhead`](super::StreamConfig::overhead)).
    pub overhead: Size,
    /// Seed of the random intervals between regular RTCP compounds (RFC 3550, Sec. 6.3.1).
    pub seed: u64,
    /// How the receiver sends per-packet reports; `None` if it sends none. The receiver also answers report requests.
    pub reporting: Option<Reporting>,
    /// Whether to request the retransmission of missing packets. A packet is requested only if the retransmission can
    /// still arrive within [`ReorderConfig::hold`]. Generated media is never requested.
    pub repairs: bool,
}

impl ReceiverConfig {
    /// Creates the configuration of a receiver of generated media over UDP and IPv4 without further overhead.
    pub fn new(ssrc: u32, cname: impl Into<String>, sender_ssrc: u32, clocks: ClockMap, seed: u64) -> Self {
        let clocks = Clocks::Known(clocks);
        let (payload, reorder, overhead) = (Payload::Generated, ReorderConfig::default(), Size::ZERO);
        let (cname, reporting, repairs) = (cname.into(), None, false);
        Self { ssrc, cname, sender_ssrc, clocks, payload, reorder, overhead, seed, reporting, repairs }
    }
}

/// The receiving end of a session. It measures one-way delay and loss, and answers each request with a report.
///
/// Source: Waki 2013, Sec. 5.1. A report covers the packets received so far that were sent at the sender's current
/// rate. This rate took effect when the previous report reached the sender. The receiver estimates that the previous
/// report reached the sender at `t + 2d`. The request contains t, the time at which the previous request was sent. d is
/// the one-way delay of the previous request (Eq. 13). If the previous request was lost, d is the one-way delay of the
/// present request (Eq. 14). With [`Clocks::Apart`], the receiver estimates nothing, and the report covers the packets
/// sent after the time that the request contains.
pub struct Receiver {
    config: ReceiverConfig,
    timeline: Timeline,
    reception: Reception,
    compound: CompoundTimer<ReceiverClock>,
    reorder: ReorderBuffer,
    playout: Option<PlayoutMeter>,
    reporter: Option<Reporter>,
    key_frames: KeyFrameAsker<ReceiverClock>,
    /// The missing packets and their requests; `None` if the receiver requests no missing packets.
    missing: Option<MissingPackets>,
    /// Packets with payload in the playout buffer: the time at which the packet's playout is complete, the packet's
    /// number, and the packet's bytes.
    held: VecDeque<(Instant<ReceiverClock>, u64, Vec<u8>)>,
    /// When the sender's BYE arrived. Packets that the BYE overtook are still expected.
    goodbye: Option<Instant<ReceiverClock>>,
    handled: Instant<ReceiverClock>,
    ended: bool,
    outbox: Outbox,
}

/// The answer to a request, ready to send.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) block: ReportBlock,
    /// The delay statistics in the answer.
    pub(super) delay: Option<DelaySummary>,
    pub(super) extension: Vec<u8>,
}

impl Receiver {
    /// Creates a receiver that waits for its sender.
    ///
    /// # Errors
    /// [`SessionError::Cname`] if the canonical name is too long, and [`SessionError::FeedbackInterval`] if the
    /// interval of per-packet reports is too short or too long.
    pub fn new(config: ReceiverConfig) -> Result<Self, SessionError> {
        check_cname(&config.cname)?;
        check_reporting(config.reporting)?;
        Ok(Self {
            compound: CompoundTimer::new(config.seed),
            reorder: ReorderBuffer::new(config.reorder),
            playout: None,
            reporter: config.reporting.map(Reporter::new),
            key_frames: KeyFrameAsker::new(),
            missing: (config.repairs && config.payload != Payload::Generated)
                .then(|| MissingPackets::new(config.reorder.hold)),
            held: VecDeque::new(),
            goodbye: None,
            timeline: Timeline::new(config.clocks),
            reception: Reception::new(),
            config,
            handled: Instant::ZERO,
            ended: false,
            outbox: Outbox::default(),
        })
    }

    /// Adds a playout buffer. Packets are delivered when their playout is complete. Packets that arrive while the
    /// buffer is full are discarded. Reports include the buffer's state.
    #[must_use]
    pub fn with_playout_buffer(self, playout: Box<dyn PlayoutBuffer>) -> Self {
        Self { playout: Some(PlayoutMeter::new(playout)), ..self }
    }

    /// Returns the synchronisation source of this receiver's reports.
    pub const fn ssrc(&self) -> u32 {
        self.config.ssrc
    }

    fn on_datagram(&mut self, now: Instant<ReceiverClock>, datagram: &[u8], ecn: Ecn) {
        if is_rtcp(datagram) {
            self.on_rtcp(now, datagram);
        } else if let Err(reason) = self.on_media(now, datagram, ecn) {
            self.outbox.ignore(reason);
        }
    }

    /// Processes a datagram that is not RTCP.
    pub(super) fn on_media(
        &mut self,
        now: Instant<ReceiverClock>,
        datagram: &[u8],
        ecn: Ecn,
    ) -> Result<(), DropReason> {
        let RtpPacket { header, payload } = RtpPacket::parse(datagram).map_err(|_| DropReason::Malformed)?;
        if header.ssrc != self.config.sender_ssrc {
            return Err(DropReason::Foreign);
        }
        if self.missing.is_some() && relay::is_repetition(datagram) {
            return self.on_repetition(now, header.sequence, (payload, datagram));
        }
        // Packets of this session carry their sending time; a packet without it is foreign.
        let ntp = header.send_time.ok_or(DropReason::Foreign)?;
        let Timed { sent, delay, .. } = self.timed(now, ntp)?;
        let (sequence, follows) = self.reception.count(header.sequence, sent)?;
        if !follows {
            self.reorder.begin_anew();
            self.reporter.iter_mut().for_each(Reporter::begin_anew);
            self.missing.iter_mut().for_each(MissingPackets::begin_anew);
        }
        self.missing.iter_mut().for_each(|missing| missing.on_packet(now, sequence));
        if let Some(reporter) = &mut self.reporter {
            reporter.on_arrival(now, (sequence, header.transport_sequence), ecn);
        }
        self.reception.measure(header.sequence, ntp, (sent, delay));
        self.reception.count_mark(ecn);
        let size = Size::from_bytes(datagram.len() as u64) + Size::IPV4_UDP + self.config.overhead;
        self.reception.pair_up(sequence, sent, now, size);
        self.outbox.event(Event::MediaReceived { sequence, sent, delay, size, ecn });
        let served = match &mut self.playout {
            None => now,
            Some(playout) => {
                let Some(served) = playout.on_packet(now, size) else {
                    self.outbox.event(Event::Discarded { sequence });
                    return Ok(());
                };
                self.outbox.event(Event::Buffered { sequence, wait: served - now });
                served
            }
        };
        if served > now && self.config.payload != Payload::Generated {
            self.held.push_back((served, sequence, datagram.to_vec()));
            return Ok(());
        }
        self.reorder.play(now, self.config.payload, Came { sequence, payload, datagram })
    }

    /// Processes a retransmitted packet: delivers it in place of the missing packet. No measurement includes it.
    fn on_repetition(
        &mut self,
        now: Instant<ReceiverClock>,
        number: u16,
        (payload, datagram): (&[u8], &[u8]),
    ) -> Result<(), DropReason> {
        let sequence = self.missing.as_mut().and_then(|missing| missing.on_repetition(now, number));
        let sequence = sequence.ok_or(DropReason::Late)?;
        self.reorder.play(now, self.config.payload, Came { sequence, payload, datagram })?;
        self.outbox.event(Event::MediaRepaired { sequence });
        Ok(())
    }

    /// Sends the per-packet report that is due by `now`, if any.
    fn report_packets(&mut self, now: Instant<ReceiverClock>) {
        let Self { reporter: Some(reporter), config, outbox, .. } = self else { return };
        let sources = (config.ssrc, config.sender_ssrc);
        let written = reporter.report(now, sources, Transmit::MAX_HEAD, |write| outbox.whole(write));
        debug_assert!(written.is_ok(), "a report has room for many packets");
    }

    /// Delivers the packets whose time in the playout buffer has ended by `now`.
    fn release_held(&mut self, now: Instant<ReceiverClock>) {
        while self.held.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((at, sequence, datagram)) = self.held.pop_front() else { return };
            // Parsing cannot fail, because the packet was already parsed when it arrived.
            let Ok(RtpPacket { payload, .. }) = RtpPacket::parse(&datagram) else { continue };
            if let Err(reason) =
                self.reorder.play(at, self.config.payload, Came { sequence, payload, datagram: &datagram })
            {
                self.outbox.ignore(reason);
            }
        }
    }

    /// Ends the session if, after the sender's BYE, no further packets are expected and the playout buffer is empty.
    fn end_if_due(&mut self, now: Instant<ReceiverClock>) {
        if self.held.is_empty() && self.goodbye.is_some_and(|said| now - said >= self.linger()) {
            self.reorder.flush();
            self.ended = true;
            self.outbox.event(Event::Ended { by_peer: true });
        }
    }

    /// Returns how long packets may still arrive after the sender's BYE.
    fn linger(&self) -> Span {
        if self.config.payload == Payload::Generated { Span::ZERO } else { self.config.reorder.hold }
    }

    fn timed(&mut self, now: Instant<ReceiverClock>, ntp: NtpTime) -> Result<Timed, DropReason> {
        let timed = self.timeline.time(now, ntp)?;
        if timed.anew {
            self.reception.forget();
        }
        Ok(timed)
    }

    fn on_rtcp(&mut self, now: Instant<ReceiverClock>, datagram: &[u8]) {
        let Ok(packets) = rtcp::parse_compound(datagram) else {
            return self.outbox.ignore(DropReason::Malformed);
        };
        for packet in packets {
            match packet {
                RtcpPacket::SenderReport(report) => {
                    if let Err(reason) = self.on_sender_report(now, &report) {
                        self.outbox.ignore(reason);
                    }
                }
                RtcpPacket::Goodbye(goodbye) if goodbye.ssrcs().any(|ssrc| ssrc == self.config.sender_ssrc) => {
                    self.on_goodbye(now);
                }
                _ => {}
            }
        }
    }

    fn on_sender_report(&mut self, now: Instant<ReceiverClock>, report: &SenderReport<'_>) -> Result<(), DropReason> {
        let is_first = !self.reception.has_report();
        let answer = self.answer(now, report);
        if is_first && self.reception.has_report() {
            self.compound.restart(now);
        }
        if let Some(Answered { block, delay, extension }) = answer? {
            let ssrc = self.config.ssrc;
            self.outbox.whole(|out| rtcp::encode_receiver_report(ssrc, &[block], &extension, out));
            self.outbox.event(Event::ReportSent { delay });
        }
        Ok(())
    }

    /// Processes a sender report. If the report contains a request, returns the answer.
    pub(super) fn answer(
        &mut self,
        now: Instant<ReceiverClock>,
        report: &SenderReport<'_>,
    ) -> Result<Option<Answered>, DropReason> {
        if report.ssrc != self.config.sender_ssrc {
            return Err(DropReason::Foreign);
        }
        let timed = self.timed(now, report.ntp)?;
        let cut = if matches!(self.config.clocks, Clocks::Known(_)) { Cut::ByWay } else { Cut::AsAsked };
        let answer = self.reception.on_sender_report(now, report, timed, (&self.timeline, cut))?;
        Ok(answer.map(|Answer { block, mut report }| {
            report.playout = self.playout.as_mut().map(|playout| playout.report(now));
            Answered { block, delay: report.delay, extension: report.to_bytes() }
        }))
    }

    /// Returns a report block for a regular report.
    pub(super) fn regular_block(&self, now: Instant<ReceiverClock>) -> ReportBlock {
        self.reception.regular_block(self.config.sender_ssrc, now)
    }

    /// Returns the number of packets that arrived, each counted once, modulo 2³².
    pub(super) const fn arrived(&self) -> u32 {
        self.reception.arrived()
    }

    /// Whether an output is pending.
    pub(super) fn has_output(&self) -> bool {
        self.reorder.is_ready() || !self.outbox.is_empty()
    }

    /// Releases all buffered payload for delivery.
    pub(super) fn give_out(&mut self) {
        self.release_held(Instant::MAX);
        self.reorder.flush();
    }

    /// Whether the session has ended.
    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Records that the sender's BYE arrived at `now`.
    pub(super) fn on_goodbye(&mut self, now: Instant<ReceiverClock>) {
        self.goodbye.get_or_insert(now);
    }

    /// Performs everything that is due at `now`, except for reports.
    pub(super) fn tend(&mut self, now: Instant<ReceiverClock>) {
        self.handled = self.handled.max(now);
        self.release_held(self.handled);
        self.reorder.release(self.handled);
        self.end_if_due(self.handled);
        if !self.ended {
            let sources = (self.config.ssrc, self.config.sender_ssrc);
            self.key_frames.ask(self.handled, sources, &mut self.outbox);
            if let (Some(missing), None) = (&mut self.missing, self.goodbye) {
                missing.ask(self.handled, sources, &mut self.outbox);
            }
        }
    }

    /// Records a key frame request of the application. After the sender's BYE, requests are ignored.
    pub(super) fn want_key_frame(&mut self, request: KeyFrameRequest) {
        if self.goodbye.is_none() {
            self.key_frames.want(request);
        }
    }

    /// Sends an RTCP compound that any RTP tool understands: RR, SDES with CNAME and, if `goodbye` is true, BYE.
    fn send_compound(&mut self, now: Instant<ReceiverClock>, goodbye: bool) {
        let block = self.regular_block(now);
        let config = &self.config;
        self.outbox.whole(|out| {
            rtcp::encode_receiver_report(config.ssrc, &[block], &[], out);
            rtcp::encode_cname(config.ssrc, &config.cname, out);
            if goodbye {
                rtcp::encode_goodbye(config.ssrc, out);
            }
        });
    }
}

impl Endpoint for Receiver {
    type Clock = ReceiverClock;

    fn handle(&mut self, now: Instant<ReceiverClock>, input: Input<'_>) {
        if self.ended {
            return;
        }
        self.handled = self.handled.max(now);
        match input {
            Input::Datagram { datagram, ecn, .. } => self.on_datagram(now, datagram, ecn),
            Input::Stop => {
                self.send_compound(now, true);
                self.give_out();
                self.ended = true;
                self.outbox.event(Event::Ended { by_peer: false });
            }
            Input::KeyFrame(request) => self.want_key_frame(request),
            Input::Timer | Input::Path { .. } | Input::Unreachable { .. } => {}
            Input::Payload { payload: _, .. } => self.outbox.ignore(DropReason::Stray),
        }
        self.tend(now);
        if !self.ended {
            self.report_packets(self.handled);
        }
        if !self.ended && self.compound.fires(self.handled) {
            self.send_compound(self.handled, false);
        }
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        if let Some((missing, payload)) = self.reorder.pop() {
            return Some(Output::Payload { missing, payload });
        }
        self.outbox.poll()
    }

    fn wake(&self) -> Option<Wake<ReceiverClock>> {
        let goodbye = self.goodbye.map(|said| said + self.linger());
        let served = self.held.front().map(|(at, ..)| *at);
        let report = self.reporter.as_ref().and_then(Reporter::due);
        let missing = self.missing.as_ref().filter(|_| goodbye.is_none()).and_then(MissingPackets::due);
        let wanted = [self.key_frames.due(), missing].into_iter().flatten().min();
        let at = [self.compound.due(), report, self.reorder.due(), goodbye, served, wanted].into_iter().flatten().min();
        // Everything that was due up to `handled` has been done, so the wake-up time must be later than `handled`.
        let at = at.filter(|_| !self.ended)?.max(self.handled + Span::from_nanos(1));
        Some(Wake { at, reason: WakeReason::Report })
    }
}
