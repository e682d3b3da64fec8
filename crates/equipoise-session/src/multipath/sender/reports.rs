//! Reports and other RTCP packets, as processed by a sender over several paths.

use super::super::law::Law;
use super::super::path::Path;
use super::super::total::Control;
use super::Sender;
use crate::rtp::exchange::Told;
use crate::rtp::proof::Proof;
use crate::wire::feedback::ArrivalFeedback;
use crate::wire::is_rtcp;
use crate::wire::rtcp::{self, ReceiverReport, RtcpPacket};
use crate::{DropReason, Event, PathId};
use equipoise::units::{Instant, SenderClock, Span};

impl Sender {
    pub(super) fn on_datagram(&mut self, now: Instant<SenderClock>, id: PathId, datagram: &[u8]) {
        if !is_rtcp(datagram) {
            return self.outbox.ignore(DropReason::Foreign);
        }
        let Ok(packets) = rtcp::parse_compound(datagram) else {
            return self.outbox.ignore(DropReason::Malformed);
        };
        for packet in packets {
            match packet {
                RtcpPacket::Subflows(reports) => {
                    for (number, packet) in reports.packets() {
                        // A report about one path counts even if it arrived on another path.
                        if let Err(reason) = self.on_subflow(now, PathId(number), &packet) {
                            self.outbox.ignore(reason);
                        }
                    }
                }
                RtcpPacket::ReceiverReport(report) => {
                    // The receiver report of a regular compound covers all paths together. Here it is applied to the
                    // path on which it arrived.
                    if let Err(reason) = self.on_report(now, id, &report) {
                        self.outbox.ignore(reason);
                    }
                }
                RtcpPacket::Goodbye(goodbye) => {
                    let known = |ssrc| self.paths.up().any(|path| path.exchange.receiver_ssrc() == Some(ssrc));
                    if goodbye.ssrcs().any(known) {
                        return self.end(true);
                    }
                }
                other => {
                    let Self { key_frames, paths, packetiser, outbox, .. } = self;
                    let known = || paths.up().filter_map(|path| path.exchange.receiver_ssrc());
                    let is_peer = |ssrc| known().next().is_none() || known().any(|known| known == ssrc);
                    // A key frame request concerns the encoder, whichever path brought the request.
                    outbox.about(None);
                    let taken = key_frames.take(now, &other, (packetiser.config().ssrc, is_peer), outbox);
                    outbox.about(Some(id));
                    if let Err(reason) = taken {
                        outbox.ignore(reason);
                    }
                }
            }
        }
    }

    /// Processes an RTCP packet about the sub-flow of path `id`.
    fn on_subflow(&mut self, now: Instant<SenderClock>, id: PathId, packet: &RtcpPacket<'_>) -> Result<(), DropReason> {
        if let RtcpPacket::ReceiverReport(report) = packet {
            return self.on_report(now, id, report);
        }
        let Some(feedback) = ArrivalFeedback::of(packet) else { return Ok(()) };
        let feedback = feedback.map_err(|_| DropReason::Malformed)?;
        let waited = self.application.waited_by(now);
        let path = self.paths.find_mut(id).ok_or(DropReason::Stray)?;
        self.outbox.about(Some(id));
        path.on_feedback(now, &feedback, waited, &mut |event| self.outbox.event(event))
    }

    /// Handles reports about path `id` that contradict what was sent. If another path is alive, stops the media on path
    /// `id`. Otherwise, stops the media of the whole session.
    fn on_contradiction(&mut self, now: Instant<SenderClock>, id: PathId, others_live: bool) {
        let Some(path) = self.paths.find_mut(id).filter(|_| others_live) else {
            let trip = self.breakers.on_contradiction(now);
            return self.trips(now, trip);
        };
        if let Some(event) = path.on_contradiction(now) {
            self.outbox.event(event);
            if let Some(governor) = self.control.pooled_mut() {
                governor.give_up(path.share());
            }
            self.split(now, false);
        }
    }

    fn on_report(
        &mut self,
        now: Instant<SenderClock>,
        id: PathId,
        report: &ReceiverReport<'_>,
    ) -> Result<(), DropReason> {
        let our_ssrc = self.packetiser.config().ssrc;
        let others_live = self.paths.alive().any(|path| path.id() != id);
        let Some(path) = self.paths.find_mut(id) else {
            return Err(DropReason::Stray);
        };
        let was_alive = path.is_alive();
        self.outbox.about(Some(id));
        let told = path.exchange.on_report(now, report, our_ssrc, &mut self.outbox);
        let is_guess = told.is_err() && path.exchange.is_guessed_at();
        match if is_guess { Told::Contradiction } else { told? } {
            Told::Nothing => return Ok(()),
            Told::Contradiction => {
                self.on_contradiction(now, id, others_live);
                return if is_guess { Err(DropReason::Stray) } else { Ok(()) };
            }
            Told::Alive => {}
            Told::Interval { asked, summary, proof, round_trip } => {
                if let Some(governor) = self.control.pooled_mut().filter(|_| proof.arrived > 0) {
                    governor.on_arrival();
                }
                if let Some(event) = path.on_proof(now, proof, round_trip, others_live) {
                    self.outbox.event(event);
                    if let (Event::CircuitBroken(_), Some(governor)) = (event, self.control.pooled_mut()) {
                        governor.give_up(path.share());
                    }
                }
                if let Some(law) = path.law_mut() {
                    law.on_answer(now, asked, summary, proof);
                }
                if let Some(interval) = summary {
                    path.on_interval(asked, &interval, proof, self.closing);
                }
                if self.breakers.has_stopped() {
                    let _ = self.breakers.on_report(now, Proof::default(), Span::ZERO);
                }
            }
        }
        path.on_heard(now);
        let is_alive = path.is_alive();
        if is_alive && !was_alive {
            path.comes_back(now, self.control.laws());
        }
        self.outbox.about(None);
        self.breakers.on_heard(now);
        let begins_again = self.breakers.begins_again(now);
        if begins_again {
            match &mut self.control {
                Control::Pooled(governor) => governor.begin_again(),
                Control::PerPath(_) => self.paths.up_mut().filter_map(Path::law_mut).for_each(Law::begin_again),
            }
            self.outbox.event(Event::CircuitClosed);
            self.paths.up_mut().for_each(|path| path.pacer.rested_until(now));
        }
        if is_alive != was_alive || begins_again {
            self.split(now, false);
        }
        Ok(())
    }
}
