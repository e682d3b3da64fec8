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

/// What an end that sends and receives media is made of, in addition to its controller.
#[derive(Clone, Debug)]
pub struct DuplexConfig {
    /// What it sends; the source number and the canonical name are those of the whole end. Its peer has no playout buffer.
    pub sending: SenderConfig,
    /// The peer's synchronisation source, as agreed beforehand; packets of any other are foreign.
    pub peer: u32,
    /// How the peer's clock and this end's relate, for the delays of what it receives.
    pub clocks: Clocks,
    /// What the media that it receives carry, and how payload is given out; generated payload is not.
    pub receives: Payload,
    /// How payload is given out.
    pub reorder: ReorderConfig,
}

impl DuplexConfig {
    /// An end that sends this and receives generated media of `peer`.
    pub fn new(sending: SenderConfig, peer: u32, clocks: Clocks) -> Self {
        Self { sending, peer, clocks, receives: Payload::Generated, reorder: ReorderConfig::default() }
    }

    /// What its receiving half is made of.
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

/// The stream of a seed that the receiving half draws from; the sending one draws from the seed and its stream 1.
const RECEIVING_STREAM: u64 = 2;

/// An end of a session that sends media and receives them: a [`Sender`] and a [`Receiver`] with one source number.
///
/// Source: RFC 3550, Sec. 6.4: an end that has sent since its last report or the one before reports as a sender, with a block on
/// what it received (SR), and another one as a receiver (RR). Each direction has a controller and report interval of its own, after
/// Waki 2013, Sec. 5.1, and each half keeps its guards. A request is answered at once; what an end asks and answers at one moment is
/// one datagram.
///
/// Readings: an end that has sent nothing for two turns asks for no report, and its circuit breaker does not count that time. A block
/// stands in an answer, and in any other report if media came since the last block. After [`Input::Stop`] media that is under way to
/// this end is taken until the peer says goodbye, too; nothing is sent, and no wake-up is needed for it.
///
/// `C` is the clock of this end, which it sends and receives by.
pub struct Duplex<C> {
    sender: Sender,
    receiver: Receiver,
    peer: u32,
    start: Instant<SenderClock>,
    compound: CompoundTimer<SenderClock>,
    /// Something of the peer has come.
    is_heard: bool,
    /// What is to be answered at this moment.
    answer: Option<Answered>,
    /// Packets that had come when the last block was written.
    blocked: u32,
    phase: Phase,
    outbox: Outbox,
    clock: PhantomData<C>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// The peer said goodbye; what it overtook may be waited for.
    PeerLeft,
    /// This end said goodbye; what is under way may come.
    Left,
    Over,
}

impl<C> Duplex<C> {
    /// An end that sends from `config.sending.start` on at the controller's rate, and answers from the beginning.
    ///
    /// # Errors
    /// [`SessionError`] if RTP cannot carry what it sends, or if the two ends would have one source number.
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

    /// Another controller takes over what this end sends, at its own rate.
    ///
    /// # Errors
    /// As [`Sender::set_controller`].
    pub fn set_controller(&mut self, controller: BoxedController) -> Result<(), SessionError> {
        self.sender.set_controller(controller)
    }

    /// The rate that the media that this end sends may have now.
    pub const fn rate(&self) -> Rate {
        self.sender.rate()
    }

    /// Whether a circuit breaker has stopped the media that this end sends (RFC 8083, Sec. 4).
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

    /// Each half takes its part, whatever the other one makes of its own.
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
            // Only who sends has something to ask.
            return Err(DropReason::Malformed);
        }
        if self.phase == Phase::Open { self.sender.on_report(now, report) } else { Ok(()) }
    }

    /// Takes the extension of a report by `ssrc` apart.
    fn part<'a>(&mut self, ssrc: u32, extension: &'a [u8]) -> Result<JointExtension<'a>, DropReason> {
        if ssrc != self.peer {
            return Err(DropReason::Foreign);
        }
        let joint = JointExtension::parse(extension).map_err(|_| DropReason::Malformed)?;
        self.is_heard = true;
        Ok(joint)
    }

    /// The peer leaves, and with it both directions end.
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

    /// Does what is due at `now`.
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

    /// Asks and answers, in one datagram if that is short enough.
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
                // The request first: behind a report of the same moment it would be taken for a copy.
                if let Some((info, asked)) = request {
                    self.write(Some(info), None, &[&asked]);
                }
                let info = self.sender_info(now);
                self.write(info, block, &[&answer.extension]);
            }
        }
        self.outbox.event(Event::ReportSent { delay: answer.delay });
    }

    /// Length of an SR with a block and both extensions, in bytes.
    const fn joint_len(answer: usize, request: usize) -> usize {
        /// Header and sender's information, and a block (RFC 3550, Sec. 6.4.1).
        const PLAIN: usize = 28 + 24;
        PLAIN + answer + request
    }

    /// A compound that any RTP tool understands: SR or RR, SDES with CNAME, and BYE at the end.
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

    /// What is to be said of what this end sends; `None` if it is no sender at present.
    fn sender_info(&self, now: Instant<SenderClock>) -> Option<SenderInfo> {
        self.sender.is_active().then(|| self.sender.packetiser().sender_info(now))
    }

    /// A block on the peer's media, if some came since the last one.
    fn fresh_block(&mut self, now: Instant<SenderClock>) -> Option<ReportBlock> {
        let before = core::mem::replace(&mut self.blocked, self.receiver.arrived());
        (before != self.blocked).then(|| self.receiver.regular_block(now.assume_clock()))
    }

    fn write(&mut self, info: Option<SenderInfo>, block: Option<ReportBlock>, extension: &[&[u8]]) {
        let ssrc = self.receiver.ssrc();
        self.outbox.whole(|out| encode_report(ssrc, info, block.as_slice(), extension, out));
    }
}

/// Appends the report of `ssrc`: an SR with this information, or an RR without any.
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
        // Reports stand before media of the same moment, as they tell of what left before.
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
        // Of two at one moment the first: media wants punctuality.
        [sending, receiving, regular].into_iter().flatten().min_by_key(|wake| wake.at)
    }

    fn room(&self) -> usize {
        self.sender.room()
    }

    fn waiting(&self) -> usize {
        self.sender.waiting()
    }
}
