use alloc::string::String;
use alloc::vec::Vec;

use super::compound::CompoundTimer;
use super::outbox::Outbox;
use super::payload::Payload;
use super::playout::{Playout, PlayoutConfig};
use super::stream::{SessionError, StreamConfig, check_cname};
use crate::measure::{Arrival, ClockMap, DelayMeter, InterarrivalJitter, LossInterval, SequenceTracker};
use crate::session::{Endpoint, Event, Ignored, Input, Output, Wake, WakeReason};
use crate::units::{Instant, ReceiverClock, SenderClock, Size, Span};
use crate::wire::rtcp::{self, ReportBlock, RtcpPacket, SenderReport};
use crate::wire::rtp::RtpPacket;
use crate::wire::{DelayOrigin, DelayReport, NtpTime, ReportRequest, is_rtcp, relay};

/// What a receiver knows of the two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// They relate like this: reports say the one-way delay.
    Known(ClockMap),
    /// Nothing: reports say the delay as the clocks show it, and what it counts from.
    Apart,
}

/// What a receiver is made of.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Its own synchronisation source, for its reports.
    pub ssrc: u32,
    /// Canonical name for SDES; at most [`StreamConfig::MAX_CNAME`] bytes.
    pub cname: String,
    /// The sender's synchronisation source, as agreed beforehand; packets of any other are foreign.
    pub sender_ssrc: u32,
    /// How the two clocks relate.
    pub clocks: Clocks,
    /// What the session carries, and how it is given out; generated payload is not.
    pub payload: Payload,
    /// How payload is given out.
    pub playout: PlayoutConfig,
    /// What the layers below take off each datagram ([`StreamConfig::overhead`]).
    pub overhead: Size,
    /// Seed of the spread of compound packets (RFC 3550, Sec. 6.3.1).
    pub seed: u64,
}

impl ReceiverConfig {
    /// A receiver of generated media over bare UDP and IPv4.
    pub fn new(ssrc: u32, cname: impl Into<String>, sender_ssrc: u32, clocks: ClockMap, seed: u64) -> Self {
        let clocks = Clocks::Known(clocks);
        let (payload, playout, overhead) = (Payload::Generated, PlayoutConfig::default(), Size::ZERO);
        Self { ssrc, cname: cname.into(), sender_ssrc, clocks, payload, playout, overhead, seed }
    }
}

/// The receiving end of a session: measures one-way delay and loss, and answers each request with a report.
///
/// Source: Waki 2013, Sec. 5.1. The packets that count are those received so far that left after the rate of the
/// interval took hold, which is when the last report reached the sender: `t + 2(r - t)`, with t the time that the
/// request carries and r - t the way of the request sent at t (Eq. 13), or, where that was lost, of this one (Eq. 14).
pub struct Receiver {
    config: ReceiverConfig,
    tracker: Option<SequenceTracker>,
    delays: DelayMeter,
    jitter: InterarrivalJitter,
    /// How the clocks relate, or are taken to: then the first delay is zero.
    map: Option<ClockMap>,
    /// By how much the last packet's delay was beyond all that can be, where it was.
    astray: Option<Span>,
    /// The newest sender report: when it left and when it came.
    last_sr: Option<SrTimes>,
    /// The newest one that was a request.
    last_request: Option<SrTimes>,
    compound: CompoundTimer<ReceiverClock>,
    playout: Playout,
    /// What is being given out.
    given: Vec<u8>,
    /// When the sender said goodbye: packets that it overtook are still waited for.
    goodbye: Option<Instant<ReceiverClock>>,
    handled: Instant<ReceiverClock>,
    ended: bool,
    outbox: Outbox,
}

#[derive(Clone, Copy, Debug)]
struct SrTimes {
    ntp: NtpTime,
    sent: Instant<SenderClock>,
    arrived: Instant<ReceiverClock>,
    way: Span,
}

/// No honest packet is further from its sending than a report can say (±128 s); clocks that disagree by more are wrong.
const PLAUSIBLE_DELAY: Span = Span::from_secs(100);
/// Two packets whose delays differ by less than this tell of the same clock step.
const SAME_STEP: Span = Span::from_secs(1);

impl Receiver {
    /// A receiver that waits for its sender.
    ///
    /// # Errors
    /// [`SessionError::Cname`] where the canonical name is too long.
    pub fn new(config: ReceiverConfig) -> Result<Self, SessionError> {
        check_cname(&config.cname)?;
        let map = if let Clocks::Known(map) = config.clocks { Some(map) } else { None };
        Ok(Self {
            compound: CompoundTimer::new(config.seed),
            playout: Playout::new(config.playout),
            given: Vec::new(),
            goodbye: None,
            config,
            tracker: None,
            delays: DelayMeter::new(),
            jitter: InterarrivalJitter::default(),
            map,
            astray: None,
            last_sr: None,
            last_request: None,
            handled: Instant::ZERO,
            ended: false,
            outbox: Outbox::default(),
        })
    }

    /// The source of its reports.
    pub const fn ssrc(&self) -> u32 {
        self.config.ssrc
    }

    fn on_datagram(&mut self, now: Instant<ReceiverClock>, datagram: &[u8]) {
        if is_rtcp(datagram) {
            self.on_rtcp(now, datagram);
        } else if let Err(reason) = self.on_media(now, datagram) {
            self.outbox.ignore(reason);
        }
    }

    fn on_media(&mut self, now: Instant<ReceiverClock>, datagram: &[u8]) -> Result<(), Ignored> {
        let RtpPacket { header, payload } = RtpPacket::parse(datagram).map_err(|_| Ignored::Malformed)?;
        if header.ssrc != self.config.sender_ssrc {
            return Err(Ignored::Foreign);
        }
        // Packets of this session carry their sending time; one that does not is not of this session.
        let ntp = header.send_time.ok_or(Ignored::Foreign)?;
        let (sent, delay) = self.timed(now, ntp)?;
        let arrival = match &mut self.tracker {
            Some(tracker) => tracker.push(header.sequence),
            empty => {
                *empty = Some(SequenceTracker::new(header.sequence));
                Arrival::Restarted(u64::from(header.sequence) + (1 << 16))
            }
        };
        let sequence = match arrival {
            Arrival::New(sequence) | Arrival::Restarted(sequence) => sequence,
            Arrival::Duplicate => return Err(Ignored::Duplicate),
            Arrival::Invalid => return Err(Ignored::Implausible),
        };
        self.delays.push(sent, delay);
        self.jitter.push(delay);
        let size = Size::from_bytes(datagram.len() as u64) + Size::IPV4_UDP + self.config.overhead;
        self.outbox.event(Event::MediaReceived { sequence, sent, delay, size });
        self.play_out(now, sequence, payload, datagram)
    }

    fn play_out(
        &mut self,
        now: Instant<ReceiverClock>,
        sequence: u64,
        payload: &[u8],
        datagram: &[u8],
    ) -> Result<(), Ignored> {
        let in_time = match self.config.payload {
            Payload::Generated => return Ok(()),
            Payload::Stream => self.playout.push(now, sequence, |out| out.extend_from_slice(payload)),
            Payload::Rtp => self.playout.push(now, sequence, |out| {
                // It parsed as RTP, so it can be taken apart.
                let _ = relay::unstamp(datagram, out);
            }),
        };
        if in_time { Ok(()) } else { Err(Ignored::Late) }
    }

    /// Ends the session, once nothing more can come.
    fn end_if_due(&mut self, now: Instant<ReceiverClock>) {
        if self.goodbye.is_some_and(|said| now - said >= self.linger()) {
            self.playout.flush();
            self.ended = true;
            self.outbox.event(Event::Ended { by_peer: true });
        }
    }

    /// How long packets may come behind a goodbye.
    fn linger(&self) -> Span {
        if self.config.payload == Payload::Generated { Span::ZERO } else { self.config.playout.hold }
    }

    /// When a packet left by its own account, and how long it took.
    fn timed(&mut self, now: Instant<ReceiverClock>, ntp: NtpTime) -> Result<(Instant<SenderClock>, Span), Ignored> {
        let shown = now.assume_clock() - ntp.to_instant_near(now.assume_clock());
        let map = *self.map.get_or_insert(ClockMap::receiver_ahead(shown));
        let sent = ntp.to_instant_near(map.to_sender(now));
        let delay = map.one_way_delay(sent, now);
        if delay.abs() <= PLAUSIBLE_DELAY {
            self.astray = None;
            return Ok((sent, delay));
        }
        let agrees = self.astray.replace(delay).is_some_and(|last| (delay - last).abs() < SAME_STEP);
        if agrees && self.config.clocks == Clocks::Apart {
            // Two packets in a row say so: a clock was set, by minutes or more.
            self.map = Some(ClockMap::receiver_ahead(shown));
            self.delays.clear();
            self.astray = None;
            return Ok((ntp.to_instant_near(now.assume_clock()), Span::ZERO));
        }
        Err(Ignored::Implausible)
    }

    fn on_rtcp(&mut self, now: Instant<ReceiverClock>, datagram: &[u8]) {
        let Ok(packets) = rtcp::parse_compound(datagram) else {
            return self.outbox.ignore(Ignored::Malformed);
        };
        for packet in packets {
            match packet {
                RtcpPacket::SenderReport(report) => {
                    if let Err(reason) = self.on_sender_report(now, &report) {
                        self.outbox.ignore(reason);
                    }
                }
                RtcpPacket::Goodbye(goodbye) if goodbye.ssrcs().any(|ssrc| ssrc == self.config.sender_ssrc) => {
                    self.goodbye.get_or_insert(now);
                }
                _ => {}
            }
        }
    }

    fn on_sender_report(&mut self, now: Instant<ReceiverClock>, report: &SenderReport<'_>) -> Result<(), Ignored> {
        if report.ssrc != self.config.sender_ssrc {
            return Err(Ignored::Foreign);
        }
        let (sent, way) = self.timed(now, report.ntp)?;
        if let Some(last) = &self.last_sr {
            if last.ntp == report.ntp {
                // A compound may go out at the very moment of a request; a request comes once.
                return if report.extension.is_empty() { Ok(()) } else { Err(Ignored::Duplicate) };
            }
            if sent < last.sent {
                return Err(Ignored::Late);
            }
        }
        let times = SrTimes { ntp: report.ntp, sent, arrived: now, way };
        if self.last_sr.replace(times).is_none() {
            self.compound.restart(now);
        }
        if report.extension.is_empty() {
            return Ok(());
        }
        let request = ReportRequest::parse(report.extension).map_err(|_| Ignored::Malformed)?;
        self.answer(request, times);
        Ok(())
    }

    fn answer(&mut self, request: ReportRequest, times: SrTimes) {
        // Eq. 13 where the request that the interval began with did arrive, Eq. 14 otherwise.
        let previous = self.last_request.filter(|previous| previous.ntp.middle() == request.interval_start);
        let way = previous.map_or(times.way, |previous| previous.way).max(Span::ZERO);
        let interval_start = NtpTime::from_middle_near(request.interval_start, times.ntp).to_instant_near(times.sent);
        let cut = match self.config.clocks {
            Clocks::Known(_) => interval_start + way + way,
            // The sender knows when its rate took hold.
            Clocks::Apart => interval_start,
        };
        let (delay, least) = (self.delays.summary_after(cut), self.delays.least_after(cut));
        // The next request will carry this one's time or a later one.
        self.delays.forget_until(times.sent);
        self.last_request = Some(times);
        let origin = match (self.config.clocks, self.map) {
            (Clocks::Apart, Some(map)) => Some(DelayOrigin { origin: map.ahead(), least }),
            _ => None,
        };
        let extension = DelayReport { delay, origin }.to_bytes();
        let loss = self.tracker.as_mut().map(SequenceTracker::report);
        let block = self.report_block(times.arrived, loss);
        let ssrc = self.config.ssrc;
        self.outbox.whole(|out| rtcp::encode_receiver_report(ssrc, &[block], &extension, out));
        self.outbox.event(Event::ReportSent { delay });
    }

    fn report_block(&self, now: Instant<ReceiverClock>, loss: Option<LossInterval>) -> ReportBlock {
        let loss = loss.unwrap_or(LossInterval { fraction_lost: 0, cumulative_lost: 0, extended_highest: 0 });
        let held = self.last_sr.map_or(Span::ZERO, |sr| now - sr.arrived).max(Span::ZERO);
        ReportBlock {
            ssrc: self.config.sender_ssrc,
            fraction_lost: loss.fraction_lost,
            cumulative_lost: loss.cumulative_lost,
            extended_highest: loss.extended_highest,
            jitter: (self.jitter.as_secs_f64() * f64::from(StreamConfig::MEDIA_CLOCK_HZ)) as u32,
            last_sr: self.last_sr.map_or(0, |sr| sr.ntp.middle()),
            delay_since_last_sr: (held.as_secs_f64() * 65_536.0) as u32,
        }
    }

    /// A compound that any RTP tool understands: RR, SDES with CNAME, and BYE at the end.
    fn send_compound(&mut self, now: Instant<ReceiverClock>, goodbye: bool) {
        // The losses since the last answer belong to the next one: this block is made from a copy.
        let loss = self.tracker.clone().map(|mut tracker| tracker.report());
        let block = self.report_block(now, loss);
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
            Input::Datagram(datagram) => self.on_datagram(now, datagram),
            Input::Stop => {
                self.send_compound(now, true);
                self.playout.flush();
                self.ended = true;
                self.outbox.event(Event::Ended { by_peer: false });
            }
            Input::Timer | Input::PathLoad(_) => {}
            Input::Payload(_) => self.outbox.ignore(Ignored::Stray),
        }
        self.playout.release(self.handled);
        self.end_if_due(self.handled);
        if !self.ended && self.compound.fires(self.handled) {
            self.send_compound(self.handled, false);
        }
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        if let Some((missing, payload)) = self.playout.pop() {
            let before = core::mem::replace(&mut self.given, payload);
            self.playout.recycle(before);
            return Some(Output::Payload { missing, payload: &self.given });
        }
        self.outbox.poll()
    }

    fn wake(&self) -> Option<Wake<ReceiverClock>> {
        let goodbye = self.goodbye.map(|said| said + self.linger());
        let at = [self.compound.due(), self.playout.due(), goodbye].into_iter().flatten().min();
        // Once `poll` has given all, it lies ahead.
        let at = at.filter(|_| !self.ended)?.max(self.handled + Span::from_nanos(1));
        Some(Wake { at, reason: WakeReason::Report })
    }
}
