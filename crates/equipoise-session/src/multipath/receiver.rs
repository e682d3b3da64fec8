use alloc::collections::BTreeMap;

use super::MAX_PATHS;
use crate::feedback::{Format, Reporter, Reporting};
use crate::rtp::compound::CompoundTimer;
use crate::rtp::key_frames::KeyFrameAsker;
use crate::rtp::outbox::Outbox;
use crate::rtp::reception::{Cut, Reception, Timed, Timeline};
use crate::rtp::reorder::{Came, ReorderBuffer};
use crate::rtp::stream::{check_cname, check_reporting};
use crate::rtp::{ReceiverConfig, SessionError};
use crate::wire::rtcp::{self, RtcpPacket, SenderReport};
use crate::wire::rtp::RtpPacket;
use crate::wire::{NtpTime, is_rtcp};
use crate::{DropReason, Ecn, Endpoint, Event, Input, Output, PathId, Transmit, Wake, WakeReason};
use equipoise::measure::{Arrival, SequenceTracker};
use equipoise::units::{Instant, ReceiverClock, SenderClock, Size, Span};

/// The receiving end of a session over several paths. It measures each path, answers requests on each path, and
/// delivers each packet once, by default in sending order.
///
/// A packet that arrives on two paths counts for both paths, but is delivered once. A missing packet may still arrive
/// on a slower path. The receiver waits for the packet for at most
/// [`ReorderConfig::hold`](crate::rtp::ReorderConfig::hold). Therefore this time should be longer than the difference
/// of the paths' delays.
///
/// With per-packet reports, each sub-flow has its own [`Reporter`]. Its reports are sent on the path on which the
/// newest packet of the sub-flow arrived.
///
/// A request asks for a report about one path. In addition to this report, the receiver sends a report about each other
/// path on which anything arrived since the last report about that path. All these reports are sent on the path of the
/// request. Therefore the sender gets reports about a path even if all reports that are sent on this path are lost.
///
/// Each request states a time. The delays in the report are those of the packets sent after this time. The sender
/// chooses the time, because only the sender knows when its rates took effect.
///
/// The receiver report in a regular RTCP compound is for other RTP tools. It covers all paths together, and contains no
/// measured jitter.
pub struct Receiver {
    config: ReceiverConfig,
    timeline: Timeline,
    subflows: BTreeMap<PathId, Subflow>,
    /// State of all paths together: the order of packets, and the data for the regular report.
    order: Option<SequenceTracker>,
    whole: Reception,
    compound: CompoundTimer<ReceiverClock>,
    reorder: ReorderBuffer,
    key_frames: KeyFrameAsker<ReceiverClock>,
    /// The path on which the last report request arrived. Regular reports and key frame requests are sent on this path.
    heard_on: PathId,
    /// When the sender's BYE arrived. Packets that the BYE overtook are still expected.
    goodbye: Option<Instant<ReceiverClock>>,
    handled: Instant<ReceiverClock>,
    ended: bool,
    outbox: Outbox,
}

#[derive(Debug)]
struct Subflow {
    reception: Reception,
    heard: Instant<ReceiverClock>,
    /// Whether anything arrived on the sub-flow since the receiver last sent a report about the sub-flow.
    is_news: bool,
    /// The per-packet reporter for the sub-flow; `None` without per-packet reports.
    reporter: Option<Reporter>,
    /// The path on which the sub-flow's newest packet arrived.
    came_by: PathId,
}

impl Subflow {
    fn new(now: Instant<ReceiverClock>, reporting: Option<Reporting>, path: PathId) -> Self {
        let (reception, reporter) = (Reception::new(), reporting.map(Reporter::new));
        Self { reception, heard: now, is_news: false, reporter, came_by: path }
    }

    const fn hears(&mut self, now: Instant<ReceiverClock>) {
        (self.heard, self.is_news) = (now, true);
    }
}

/// If there are already [`MAX_PATHS`] sub-flows, a new one replaces a sub-flow on which nothing arrived for longer than
/// this. Our choice: a path on which nothing arrives for so long usually does not recover.
const FORGOTTEN: Span = Span::from_secs(60);

impl Receiver {
    /// Creates a receiver that waits for its sender.
    ///
    /// # Errors
    /// [`SessionError::Cname`] if the canonical name is too long; [`SessionError::FeedbackInterval`] if the interval of
    /// per-packet reports is too short or too long; [`SessionError::TransportWide`] for transport-wide feedback,
    /// because packets have sequence numbers for each sub-flow, but no transport-wide numbers.
    pub fn new(config: ReceiverConfig) -> Result<Self, SessionError> {
        check_cname(&config.cname)?;
        check_reporting(config.reporting)?;
        if config.reporting.is_some_and(|reporting| reporting.format == Format::TransportWide) {
            return Err(SessionError::TransportWide);
        }
        Ok(Self {
            timeline: Timeline::new(config.clocks),
            subflows: BTreeMap::new(),
            order: None,
            whole: Reception::new(),
            compound: CompoundTimer::new(config.seed),
            reorder: ReorderBuffer::new(config.reorder),
            key_frames: KeyFrameAsker::new(),
            heard_on: PathId::default(),
            goodbye: None,
            handled: Instant::ZERO,
            ended: false,
            outbox: Outbox::default(),
            config,
        })
    }

    /// Returns the synchronisation source of this receiver's reports.
    pub const fn ssrc(&self) -> u32 {
        self.config.ssrc
    }

    fn on_datagram(&mut self, now: Instant<ReceiverClock>, path: PathId, datagram: &[u8], ecn: Ecn) {
        self.outbox.about(Some(path));
        if is_rtcp(datagram) {
            self.on_rtcp(now, path, datagram);
        } else if let Err(reason) = self.on_media(now, path, datagram, ecn) {
            self.outbox.ignore(reason);
        }
    }

    fn on_media(
        &mut self,
        now: Instant<ReceiverClock>,
        path: PathId,
        datagram: &[u8],
        ecn: Ecn,
    ) -> Result<(), DropReason> {
        let RtpPacket { header, payload } = RtpPacket::parse(datagram).map_err(|_| DropReason::Malformed)?;
        if header.ssrc != self.config.sender_ssrc {
            return Err(DropReason::Foreign);
        }
        // Packets of this session carry their sending time and sub-flow; a packet without them is foreign.
        let (ntp, place) = header.send_time.zip(header.subflow).ok_or(DropReason::Foreign)?;
        let Timed { sent, delay, .. } = self.timed(now, ntp)?;
        let id = PathId(place.id);
        let subflow = self.subflow(now, id)?;
        let (number, follows) = subflow.reception.count(place.sequence, sent)?;
        subflow.hears(now);
        subflow.came_by = path;
        if let Some(reporter) = &mut subflow.reporter {
            if !follows {
                reporter.begin_anew();
            }
            reporter.on_arrival(now, (number, None), ecn);
        }
        subflow.reception.measure(place.sequence, ntp, (sent, delay));
        subflow.reception.count_mark(ecn);
        self.outbox.about(Some(id));
        let sequence = self.ordered(header.sequence, sent, follows)?;
        let size = Size::from_bytes(datagram.len() as u64) + Size::IPV4_UDP + self.config.overhead;
        self.outbox.event(Event::MediaReceived { sequence, sent, delay, size, ecn });
        self.reorder.play(now, self.config.payload, Came { sequence, payload, datagram })
    }

    /// Returns the session's sequence number of a packet, extended beyond 16 bits. The packet was sent at `sent`.
    /// `follows` states whether the packet's number in its sub-flow continues the earlier numbers.
    fn ordered(&mut self, sequence: u16, sent: Instant<SenderClock>, follows: bool) -> Result<u64, DropReason> {
        let Some(order) = &mut self.order else {
            return Ok(self.order.insert(SequenceTracker::of_paths(sequence, sent)).highest());
        };
        let far = (sequence.wrapping_sub(order.highest() as u16) as i16).unsigned_abs();
        if !follows && u64::from(far) >= SequenceTracker::WINDOW {
            // This packet is the first sign, on any path, that the sender restarted.
            self.reorder.begin_anew();
            return Ok(order.restart(sequence));
        }
        match order.push(sequence, sent) {
            Arrival::New(sequence) => Ok(sequence),
            Arrival::Restarted(sequence) => {
                self.reorder.begin_anew();
                Ok(sequence)
            }
            Arrival::Duplicate => Err(DropReason::Duplicate),
        }
    }

    /// Returns the sub-flow with this number. If there is none, creates it.
    fn subflow(&mut self, now: Instant<ReceiverClock>, id: PathId) -> Result<&mut Subflow, DropReason> {
        if !self.subflows.contains_key(&id) && self.subflows.len() >= MAX_PATHS {
            let silent = self.subflows.iter().filter(|(_, subflow)| now - subflow.heard > FORGOTTEN);
            let oldest = silent.min_by_key(|(_, subflow)| subflow.heard).map(|(id, _)| *id).ok_or(DropReason::Full)?;
            self.subflows.remove(&oldest);
        }
        let reporting = self.config.reporting;
        Ok(self.subflows.entry(id).or_insert_with(|| Subflow::new(now, reporting, id)))
    }

    fn timed(&mut self, now: Instant<ReceiverClock>, ntp: NtpTime) -> Result<Timed, DropReason> {
        let timed = self.timeline.time(now, ntp)?;
        if timed.anew {
            self.subflows.values_mut().for_each(|subflow| subflow.reception.forget());
        }
        Ok(timed)
    }

    fn on_rtcp(&mut self, now: Instant<ReceiverClock>, path: PathId, datagram: &[u8]) {
        let Ok(packets) = rtcp::parse_compound(datagram) else {
            return self.outbox.ignore(DropReason::Malformed);
        };
        for packet in packets {
            let taken = match packet {
                RtcpPacket::Subflows(reports) => reports.packets().try_for_each(|(id, packet)| match packet {
                    RtcpPacket::SenderReport(report) => self.on_request(now, path, PathId(id), &report),
                    _ => Ok(()),
                }),
                RtcpPacket::SenderReport(report) => self.on_plain_report(now, &report),
                RtcpPacket::Goodbye(goodbye) if goodbye.ssrcs().any(|ssrc| ssrc == self.config.sender_ssrc) => {
                    self.goodbye.get_or_insert(now);
                    Ok(())
                }
                _ => Ok(()),
            };
            if let Err(reason) = taken {
                self.outbox.ignore(reason);
            }
        }
    }

    /// Answers a request about the sub-flow `id`. The request arrived on `path`, and the answer is sent on `path`.
    fn on_request(
        &mut self,
        now: Instant<ReceiverClock>,
        path: PathId,
        id: PathId,
        report: &SenderReport<'_>,
    ) -> Result<(), DropReason> {
        let (ssrc, sender_ssrc) = (self.config.ssrc, self.config.sender_ssrc);
        if report.ssrc != sender_ssrc {
            return Err(DropReason::Foreign);
        }
        let timed = self.timed(now, report.ntp)?;
        self.subflow(now, id)?.hears(now);
        let Some(subflow) = self.subflows.get_mut(&id) else { return Ok(()) };
        let answer = subflow.reception.on_sender_report(now, report, timed, (&self.timeline, Cut::AsAsked))?;
        self.heard_on = path;
        if self.compound.due().is_none() {
            self.compound.restart(now);
        }
        if let Some(answer) = answer {
            let extension = answer.report.to_bytes();
            self.outbox.whole(|out| {
                rtcp::encode_subflow(ssrc, sender_ssrc, id.0, out, |out| {
                    rtcp::encode_receiver_report(ssrc, &[answer.block], &extension, out);
                });
            });
            self.outbox.about(Some(id));
            self.outbox.event(Event::ReportSent { delay: answer.report.delay });
            self.outbox.about(Some(path));
            self.tell_of_others(now, id);
        }
        Ok(())
    }

    /// After a requested report about sub-flow `answered`, sends a report about each other sub-flow on which anything
    /// arrived since the last report about it. So the sender does not consider a path dead while media arrives on the
    /// path, even if report requests or reports on the path are lost.
    fn tell_of_others(&mut self, now: Instant<ReceiverClock>, answered: PathId) {
        let (ssrc, sender_ssrc) = (self.config.ssrc, self.config.sender_ssrc);
        for (id, subflow) in &mut self.subflows {
            let is_news = core::mem::take(&mut subflow.is_news);
            if is_news && *id != answered {
                let block = subflow.reception.regular_block(sender_ssrc, now);
                self.outbox.whole(|out| {
                    rtcp::encode_subflow(ssrc, sender_ssrc, id.0, out, |out| {
                        rtcp::encode_receiver_report(ssrc, &[block], &[], out);
                    });
                });
            }
        }
    }

    /// Sends the per-packet reports that are due by `now`, each on the path on which the newest packet of its sub-flow
    /// arrived.
    fn report_packets(&mut self, now: Instant<ReceiverClock>) {
        let (ssrc, sender_ssrc) = (self.config.ssrc, self.config.sender_ssrc);
        for (id, subflow) in &mut self.subflows {
            let Some(reporter) = &mut subflow.reporter else { continue };
            self.outbox.about(Some(subflow.came_by));
            let room = Transmit::MAX_HEAD - rtcp::SUBFLOW_HEAD;
            let written = reporter.report(now, (ssrc, sender_ssrc), room, |write| {
                self.outbox.whole(|out| rtcp::encode_subflow(ssrc, sender_ssrc, id.0, out, |out| write(out)));
            });
            debug_assert!(written.is_ok(), "a report has room for many packets");
        }
    }

    /// Processes the sender report in a regular RTCP compound. This report covers all paths together.
    fn on_plain_report(&mut self, now: Instant<ReceiverClock>, report: &SenderReport<'_>) -> Result<(), DropReason> {
        if report.ssrc != self.config.sender_ssrc || !report.extension.is_empty() {
            return Err(DropReason::Foreign);
        }
        let timed = self.timed(now, report.ntp)?;
        self.whole.on_sender_report(now, report, timed, (&self.timeline, Cut::AsAsked)).map(|_| ())
    }

    /// Sends an RTCP compound that any RTP tool understands: RR, SDES with CNAME and, if `goodbye` is true, BYE.
    fn send_compound(&mut self, now: Instant<ReceiverClock>, goodbye: bool) {
        let config = &self.config;
        let mut block = self.whole.regular_block(config.sender_ssrc, now);
        if let Some(mut order) = self.order.clone() {
            let loss = order.report();
            block.cumulative_lost = loss.cumulative_lost;
            block.extended_highest = loss.extended_highest;
        }
        self.outbox.about(Some(self.heard_on));
        self.outbox.whole(|out| {
            rtcp::encode_receiver_report(config.ssrc, &[block], &[], out);
            rtcp::encode_cname(config.ssrc, &config.cname, out);
            if goodbye {
                rtcp::encode_goodbye(config.ssrc, out);
            }
        });
    }

    /// Ends the session once the wait for packets overtaken by the sender's BYE is over.
    fn end_if_due(&mut self, now: Instant<ReceiverClock>) {
        if self.goodbye.is_some_and(|said| now - said >= self.config.reorder.hold) {
            self.end(true);
        }
    }

    fn end(&mut self, by_peer: bool) {
        self.reorder.flush();
        self.ended = true;
        self.outbox.about(None);
        self.outbox.event(Event::Ended { by_peer });
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
            Input::Datagram { path, datagram, ecn } => self.on_datagram(now, path, datagram, ecn),
            Input::KeyFrame(request) if self.goodbye.is_none() => self.key_frames.want(request),
            Input::Stop => {
                self.send_compound(now, true);
                return self.end(false);
            }
            // `Path` and `Unreachable` are ignored, because the receiver learns the state of a path from arriving
            // packets. `KeyFrame` is ignored after the sender's BYE.
            Input::Timer | Input::Path { .. } | Input::Unreachable { .. } | Input::KeyFrame(_) => {}
            Input::Payload { .. } => {
                self.outbox.about(None);
                self.outbox.ignore(DropReason::Stray);
            }
        }
        self.reorder.release(self.handled);
        self.end_if_due(self.handled);
        if !self.ended {
            self.outbox.about(Some(self.heard_on));
            let sources = (self.config.ssrc, self.config.sender_ssrc);
            self.key_frames.ask(self.handled, sources, &mut self.outbox);
        }
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
        let goodbye = self.goodbye.map(|said| said + self.config.reorder.hold);
        let reports = self.subflows.values().filter_map(|subflow| subflow.reporter.as_ref()?.due()).min();
        let dues = [self.compound.due(), reports, self.reorder.due(), goodbye, self.key_frames.due()];
        let at = dues.into_iter().flatten().min();
        // [`Endpoint::wake`] must return a time that is later than the last `now`.
        let at = at.filter(|_| !self.ended)?.max(self.handled + Span::from_nanos(1));
        Some(Wake { at, reason: WakeReason::Report })
    }
}
