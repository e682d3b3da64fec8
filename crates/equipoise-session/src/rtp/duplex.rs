use core::marker::PhantomData;

use super::compound::CompoundTimer;
use super::outbox::Outbox;
use super::payload::Payload;
use super::receiver::{Answered, Receiver, ReceiverConfig};
use super::reception::Clocks;
use super::reorder::ReorderConfig;
use super::sender::{Draft, Sender, SenderConfig};
use super::stream::{SessionError, StreamConfig};
use crate::wire::rtcp::{self, ReceiverReport, ReportBlock, RtcpPacket, SenderInfo, SenderReport};
use crate::wire::{JointExtension, is_rtcp};
use crate::{DropReason, Ecn, Endpoint, Event, Input, Output, Transmit, Wake, WakeReason};
use equipoise::control::BoxedController;
use equipoise::random::stream_seed;
use equipoise::units::{Instant, Rate, SenderClock};

/// The configuration of an endpoint that sends and receives media, except for its controller.
#[derive(Clone, Debug)]
pub struct DuplexConfig {
    /// The configuration of the sending role. Its synchronisation source and canonical name are those of the whole
    /// endpoint. [`SenderConfig::reports_playout`] is ignored, because the peer has no playout buffer.
    pub sending: SenderConfig,
    /// The peer's synchronisation source, as agreed beforehand; packets from any other source are foreign.
    pub peer: u32,
    /// The relation of the peer's clock to this endpoint's clock, for the delays of received media.
    pub clocks: Clocks,
    /// What the received media contains. Generated payload is not delivered to the application.
    pub receives: Payload,
    /// How received packets are put into order and delivered.
    pub reorder: ReorderConfig,
}

impl DuplexConfig {
    /// Creates the configuration of an endpoint that sends as in `sending`, and receives generated media from `peer`.
    pub fn new(sending: SenderConfig, peer: u32, clocks: Clocks) -> Self {
        Self { sending, peer, clocks, receives: Payload::Generated, reorder: ReorderConfig::default() }
    }

    /// Returns the configuration of the receiving role.
    fn receiving(&self) -> ReceiverConfig {
        let StreamConfig { ssrc, overhead, ref cname, .. } = self.sending.stream;
        ReceiverConfig {
            ssrc,
            cname: cname.clone(),
            sender_ssrc: self.peer,
            clocks: self.clocks,
            payload: self.receives,
            reorder: self.reorder,
            overhead,
            seed: stream_seed(self.sending.seed, RECEIVING_STREAM),
            reporting: None,
            repairs: false,
        }
    }
}

/// The number of the random stream from which the receiving role's seed is drawn. The sending role uses streams with
/// other numbers.
const RECEIVING_STREAM: u64 = 2;

/// An endpoint that both sends and receives media: a [`Sender`] and a [`Receiver`] with one synchronisation source.
///
/// Source: RFC 3550, Sec. 6.4. If an endpoint has sent media since its second-last report, its next report is a sender
/// report (SR). Otherwise, its next report is a receiver report (RR). An SR has a report block if the endpoint received
/// media. Each direction has its own controller and report interval, as in Waki 2013, Sec. 5.1. The [`Sender`] and the
/// [`Receiver`] check arriving packets as in a one-way session. A request is answered at once. A request and an answer
/// that are due at the same time share a datagram.
///
/// Our readings: an endpoint that has sent no media for two report intervals requests no report, and its circuit
/// breaker does not count that time. An answer always has a report block; any other report has a block if media arrived
/// since the last block. After [`Input::Stop`], the endpoint sends nothing, but accepts media from the peer until the
/// peer's BYE. The endpoint then needs a wake-up only to deliver such media.
///
/// `C` is this endpoint's clock, both for sending and for receiving.
pub struct Duplex<C> {
    sender: Sender,
    receiver: Receiver,
    peer: u32,
    start: Instant<SenderClock>,
    compound: CompoundTimer<SenderClock>,
    /// Whether any packet from the peer has arrived.
    is_heard: bool,
    /// The answer to the peer's request, until it is sent.
    answer: Option<Answered>,
    /// Number of media packets that had arrived when the last report block was written.
    blocked: u32,
    phase: Phase,
    outbox: Outbox,
    clock: PhantomData<C>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// The peer sent a BYE; packets that the BYE overtook may still arrive.
    PeerLeft,
    /// This endpoint sent a BYE; packets in flight to it may still arrive.
    Left,
    Over,
}

impl<C> Duplex<C> {
    /// Creates an endpoint that sends at the controller's rate from `config.sending.start` on, and answers requests
    /// even before this time.
    ///
    /// # Errors
    /// [`SessionError`] if RTP cannot carry the configuration, if both endpoints have the same synchronisation source,
    /// if the report interval is too short, if per-packet reports are configured, if the controller needs feedback that
    /// the session does not provide, or if the controller does not decide on a rate.
    pub fn new(config: DuplexConfig, controller: BoxedController) -> Result<Self, SessionError> {
        let found = config.sending.stream.ssrc;
        if found == config.peer {
            return Err(SessionError::Source { found });
        }
        let receiver = Receiver::new(config.receiving())?;
        let (peer, start) = (config.peer, config.sending.start);
        if config.sending.reporting.is_some() {
            return Err(SessionError::ByPacket);
        }
        let sending = SenderConfig { reports_playout: false, ..config.sending };
        let (sender, compound) = Sender::new(sending, controller)?.into_half();
        Ok(Self {
            sender,
            receiver,
            peer,
            start,
            compound,
            is_heard: false,
            answer: None,
            blocked: 0,
            phase: Phase::Open,
            outbox: Outbox::default(),
            clock: PhantomData,
        })
    }

    /// Replaces the controller of the sending role. The new controller starts at its own initial rate.
    ///
    /// # Errors
    /// The same errors as [`Sender::set_controller`].
    pub fn set_controller(&mut self, controller: BoxedController) -> Result<(), SessionError> {
        self.sender.set_controller(controller)
    }

    /// Returns the current rate of the media that this endpoint sends.
    pub const fn rate(&self) -> Rate {
        self.sender.rate()
    }

    /// Whether a circuit breaker has stopped the media that this endpoint sends (RFC 8083, Sec. 4).
    pub const fn is_circuit_broken(&self) -> bool {
        self.sender.is_circuit_broken()
    }

    fn on_datagram(&mut self, now: Instant<SenderClock>, datagram: &[u8], ecn: Ecn) {
        if is_rtcp(datagram) {
            return self.on_rtcp(now, datagram);
        }
        match self.receiver.on_media(now.assume_clock(), datagram, ecn) {
            Ok(()) => self.is_heard = true,
            Err(reason) => self.outbox.ignore(reason),
        }
    }

    fn on_rtcp(&mut self, now: Instant<SenderClock>, datagram: &[u8]) {
        let Ok(packets) = rtcp::parse_compound(datagram) else {
            return self.outbox.ignore(DropReason::Malformed);
        };
        for packet in packets {
            let taken = match packet {
                RtcpPacket::SenderReport(report) => self.on_sender_report(now, &report),
                RtcpPacket::ReceiverReport(report) => self.on_receiver_report(now, &report),
                RtcpPacket::Goodbye(goodbye) => {
                    if goodbye.ssrcs().any(|ssrc| ssrc == self.peer) {
                        self.on_goodbye(now);
                    }
                    Ok(())
                }
                other if self.phase == Phase::Open => self.sender.on_key_frames(now, &other),
                _ => Ok(()),
            };
            if let Err(reason) = taken {
                self.outbox.ignore(reason);
            }
        }
    }

    /// Processes a sender report of the peer. The receiving role answers the request in the report. The sending role
    /// applies the report block. An error in the request does not affect the report block, and vice versa.
    fn on_sender_report(&mut self, now: Instant<SenderClock>, report: &SenderReport<'_>) -> Result<(), DropReason> {
        let joint = self.part(report.ssrc, report.extension)?;
        if self.phase != Phase::Open {
            return Ok(());
        }
        let mut asked = *report;
        asked.extension = joint.request;
        let answer = self.receiver.answer(now.assume_clock(), &asked).map(|answer| {
            if let Some(answer) = answer {
                self.answer = Some(answer);
            }
        });
        let applied = self.sender.on_report(now, &report.reception(joint.report));
        answer.and(applied)
    }

    fn on_receiver_report(&mut self, now: Instant<SenderClock>, report: &ReceiverReport<'_>) -> Result<(), DropReason> {
        let joint = self.part(report.ssrc, report.extension)?;
        if !joint.request.is_empty() {
            // A request in an RR is malformed: only an endpoint that sends media may request a report, and such an
            // endpoint sends SRs.
            return Err(DropReason::Malformed);
        }
        if self.phase == Phase::Open { self.sender.on_report(now, report) } else { Ok(()) }
    }

    /// Splits the extension of an SR or RR from `ssrc` into its two parts: a report for the sending role, and a request
    /// for the receiving role.
    fn part<'a>(&mut self, ssrc: u32, extension: &'a [u8]) -> Result<JointExtension<'a>, DropReason> {
        if ssrc != self.peer {
            return Err(DropReason::Foreign);
        }
        let joint = JointExtension::parse(extension).map_err(|_| DropReason::Malformed)?;
        self.is_heard = true;
        Ok(joint)
    }

    /// Processes the peer's BYE, which ends both directions.
    fn on_goodbye(&mut self, now: Instant<SenderClock>) {
        match self.phase {
            Phase::Open => {
                self.sender.fall_silent();
                self.receiver.on_goodbye(now.assume_clock());
                self.phase = Phase::PeerLeft;
            }
            Phase::Left => self.phase = Phase::Over,
            Phase::PeerLeft | Phase::Over => {}
        }
    }

    fn stop(&mut self, now: Instant<SenderClock>) {
        self.send_compound(now, true);
        self.sender.fall_silent();
        self.receiver.give_out();
        self.outbox.event(Event::Ended { by_peer: false });
        self.phase = if self.phase == Phase::Open { Phase::Left } else { Phase::Over };
    }

    /// Performs everything that is due at `now`.
    fn run(&mut self, now: Instant<SenderClock>) {
        self.receiver.tend(now.assume_clock());
        if self.receiver.has_ended() {
            self.phase = Phase::Over;
        }
        if self.phase != Phase::Open {
            return;
        }
        self.sender.run(now);
        self.report(now);
        if self.compound.due().is_none() && (self.is_heard || now >= self.start) {
            self.compound.restart(now);
        }
        if self.compound.fires(now) {
            self.send_compound(now, false);
        }
    }

    /// Sends the pending request, if any, and the pending answer, if any. Sends both in one datagram if they fit.
    fn report(&mut self, now: Instant<SenderClock>) {
        let (Draft { request }, answer) = (self.sender.take_draft(), self.answer.take());
        let Some(answer) = answer else {
            if let Some((info, extension)) = request {
                let block = self.fresh_block(now);
                self.write(Some(info), block, &[&extension]);
            }
            return;
        };
        let block = Some(answer.block);
        self.blocked = self.receiver.arrived();
        match request {
            Some((info, asked)) if Self::joint_len(answer.extension.len(), asked.len()) <= Transmit::MAX_HEAD => {
                self.write(Some(info), block, &[&answer.extension, &asked]);
            }
            request => {
                // The request and the answer do not fit into one datagram, or there is only an answer. If both are
                // sent, both are SRs with the same time. The peer would take a request in the second SR for a
                // duplicate, so the request is sent first.
                if let Some((info, asked)) = request {
                    self.write(Some(info), None, &[&asked]);
                }
                let info = self.sender_info(now);
                self.write(info, block, &[&answer.extension]);
            }
        }
        self.outbox.event(Event::ReportSent { delay: answer.delay });
    }

    /// Returns the length, in bytes, of an SR with one report block and both extensions.
    const fn joint_len(answer: usize, request: usize) -> usize {
        /// Length in bytes of the header, the sender information and one report block (RFC 3550, Sec. 6.4.1).
        const PLAIN: usize = 28 + 24;
        PLAIN + answer + request
    }

    /// Sends an RTCP compound that any RTP tool understands: SR or RR, SDES with CNAME and, if `goodbye` is true, BYE.
    fn send_compound(&mut self, now: Instant<SenderClock>, goodbye: bool) {
        let (info, block) = (self.sender_info(now), self.fresh_block(now));
        let StreamConfig { ssrc, ref cname, .. } = *self.sender.packetiser().config();
        self.outbox.whole(|out| {
            encode_report(ssrc, info, block.as_slice(), &[], out);
            rtcp::encode_cname(ssrc, cname, out);
            if goodbye {
                rtcp::encode_goodbye(ssrc, out);
            }
        });
    }

    /// Returns the sender information of this endpoint; `None` if its sending role is not [active](Sender::is_active).
    fn sender_info(&self, now: Instant<SenderClock>) -> Option<SenderInfo> {
        self.sender.is_active().then(|| self.sender.packetiser().sender_info(now))
    }

    /// Returns a report block on the peer's media, if any media arrived since the last block.
    fn fresh_block(&mut self, now: Instant<SenderClock>) -> Option<ReportBlock> {
        let before = core::mem::replace(&mut self.blocked, self.receiver.arrived());
        (before != self.blocked).then(|| self.receiver.regular_block(now.assume_clock()))
    }

    fn write(&mut self, info: Option<SenderInfo>, block: Option<ReportBlock>, extension: &[&[u8]]) {
        let ssrc = self.receiver.ssrc();
        self.outbox.whole(|out| encode_report(ssrc, info, block.as_slice(), extension, out));
    }
}

/// Appends a report of `ssrc` to `out`: an SR if there is sender information, otherwise an RR.
fn encode_report(
    ssrc: u32,
    info: Option<SenderInfo>,
    blocks: &[ReportBlock],
    extension: &[&[u8]],
    out: &mut alloc::vec::Vec<u8>,
) {
    let extension = extension.concat();
    match info {
        Some(info) => info.encode(blocks, &extension, out),
        None => rtcp::encode_receiver_report(ssrc, blocks, &extension, out),
    }
}

impl<C> Endpoint for Duplex<C> {
    type Clock = C;

    fn handle(&mut self, now: Instant<C>, input: Input<'_>) {
        if self.phase == Phase::Over || matches!(input, Input::Path { .. }) {
            return;
        }
        let now = self.sender.come_to(now.assume_clock());
        match input {
            Input::Datagram { datagram, ecn, .. } => self.on_datagram(now, datagram, ecn),
            Input::Payload { payload, .. } if self.phase == Phase::Open => {
                if let Err(reason) = self.sender.on_payload(now, payload) {
                    self.outbox.ignore(reason);
                }
            }
            Input::Payload { .. } => self.outbox.ignore(DropReason::Stray),
            Input::Stop if self.phase != Phase::Left => self.stop(now),
            Input::Unreachable { .. } => self.sender.on_unreachable(),
            Input::KeyFrame(request) if self.phase == Phase::Open => self.receiver.want_key_frame(request),
            Input::KeyFrame(_) | Input::Stop | Input::Timer | Input::Path { .. } => {}
        }
        self.run(now);
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        if self.receiver.has_output() {
            return self.receiver.poll();
        }
        // If a request and media are due at the same time, the request is made first, so its packet count does not
        // include this media. Therefore the request must be sent before this media.
        if !self.outbox.is_empty() {
            return self.outbox.poll();
        }
        self.sender.poll()
    }

    fn wake(&self) -> Option<Wake<C>> {
        if self.phase == Phase::Over {
            return None;
        }
        let regular = self.compound.due().filter(|_| self.phase == Phase::Open);
        let regular = regular.map(|at| Wake { at: at.assume_clock(), reason: WakeReason::Report });
        let sending = self.sender.wake().map(|Wake { at, reason }| Wake { at: at.assume_clock(), reason });
        let receiving = self.receiver.wake().map(|Wake { at, reason }| Wake { at: at.assume_clock(), reason });
        // If several wake-ups have the same time, `min_by_key` returns the first of them. The sender's wake-up is first
        // in the array, so that the driver treats media as urgent.
        [sending, receiving, regular].into_iter().flatten().min_by_key(|wake| wake.at)
    }

    fn room(&self) -> usize {
        self.sender.room()
    }

    fn waiting(&self) -> usize {
        self.sender.waiting()
    }
}
