//! How a sender requests reports and processes them.

use super::Sender;
use crate::rtp::by_packet::ByPacket;
use crate::rtp::exchange::{Exchange, Told};
use crate::rtp::proof::Proof;
use crate::rtp::repeats::RepeatQueue;
use crate::wire::feedback::ArrivalFeedback;
use crate::wire::is_rtcp;
use crate::wire::nack::Nack;
use crate::wire::rtcp::{self, ReceiverReport, RtcpPacket};
use crate::{DropReason, Event};
use equipoise::control::IntervalSummary;
use equipoise::units::{Instant, SenderClock};

impl Sender {
    /// Makes a report request that is due at `now`. If the endpoint also receives media, and this sender has sent no
    /// media for two report intervals, the request is skipped, and the endpoint reports as a receiver (RFC 3550, Sec.
    /// 6.4).
    pub(super) fn take_turn(&mut self, now: Instant<SenderClock>) {
        let rests = self.shared.is_some() && !self.is_active();
        self.turns = [self.turns[1], self.packetiser.next_sequence()];
        if rests {
            self.exchange.rest(now);
            // Without media, the receiver has nothing to report. The circuit breakers must not count this time as
            // time without reports.
            self.breakers.on_heard(now);
        } else {
            self.request_or_skip(now);
        }
    }

    /// Sends a report request. While the receiver [is silent](Exchange::is_silent), skips every second request, and
    /// tells the controller with each skipped request that reports are missing. While media is stopped, skips no
    /// request.
    fn request_or_skip(&mut self, now: Instant<SenderClock>) {
        let has_stopped = self.breakers.has_stopped();
        let is_silent = self.exchange.is_silent(now) && !has_stopped;
        if self.exchange.is_unanswered(now) && self.governor.on_unanswered() {
            self.decided();
        }
        let (application, interval) = (&mut self.application, self.report_interval);
        let pacing = self.pacer.rate().as_bps_f64() / self.governor.rate().as_bps_f64().max(1.0);
        let asked = self.exchange.turn(now, has_stopped, || application.ends(now, interval, pacing));
        let Some((number, extension)) = asked else {
            self.governor.on_silence(now, Exchange::MISSING);
            self.by_packet.iter_mut().for_each(ByPacket::on_silence);
            self.outbox.event(Event::ReportsMissing);
            return self.decided();
        };
        if is_silent {
            self.governor.on_further_silence();
            self.decided();
        }
        let info = self.packetiser.sender_info(now);
        match &mut self.shared {
            Some(draft) => draft.request = Some((info, extension)),
            None => self.outbox.whole(|out| info.encode(&[], &extension, out)),
        }
        self.outbox.event(Event::ReportRequested { number });
    }

    pub(super) fn on_datagram(&mut self, now: Instant<SenderClock>, datagram: &[u8]) {
        if !is_rtcp(datagram) {
            return self.outbox.ignore(DropReason::Foreign);
        }
        let Ok(packets) = rtcp::parse_compound(datagram) else {
            return self.outbox.ignore(DropReason::Malformed);
        };
        for packet in packets {
            let taken = match packet {
                RtcpPacket::ReceiverReport(report) => self.on_report(now, &report),
                RtcpPacket::Goodbye(goodbye) => {
                    if goodbye.ssrcs().any(|ssrc| Some(ssrc) == self.exchange.receiver_ssrc()) {
                        self.end(true);
                    }
                    Ok(())
                }
                other => match ArrivalFeedback::of(&other) {
                    Some(Ok(feedback)) => self.on_feedback(now, feedback),
                    Some(Err(_)) => Err(DropReason::Malformed),
                    // The packet may be a request. All other packets, such as source descriptions, have no effect.
                    None => self.on_request(now, &other),
                },
            };
            if let Err(reason) = taken {
                self.outbox.ignore(reason);
            }
        }
    }

    /// Processes a packet that may request missing packets or a key frame.
    fn on_request(&mut self, now: Instant<SenderClock>, packet: &RtcpPacket<'_>) -> Result<(), DropReason> {
        let Some(nack) = Nack::of(packet) else { return self.on_key_frames(now, packet) };
        let nack = nack.map_err(|_| DropReason::Malformed)?;
        let receiver = self.exchange.receiver_ssrc();
        if nack.media_ssrc != self.packetiser.config().ssrc || receiver.is_some_and(|receiver| receiver != nack.ssrc) {
            return Err(DropReason::Foreign);
        }
        let repeats = self.repeats.as_mut().ok_or(DropReason::Stray)?;
        nack.numbers().take(RepeatQueue::MOST_PACKETS).for_each(|number| repeats.want(now, number));
        // If no media is queued, the pacer had nothing to send until now. The pacer must know this, or it would treat
        // the retransmission as late. `self.application` is not told, because a retransmission is not data from the
        // application.
        if repeats.is_ready() && !self.has_media() {
            self.pacer.rested_until(now);
        }
        Ok(())
    }

    /// Processes a packet that may request a key frame.
    pub(in crate::rtp) fn on_key_frames(
        &mut self,
        now: Instant<SenderClock>,
        packet: &RtcpPacket<'_>,
    ) -> Result<(), DropReason> {
        let receiver = self.exchange.receiver_ssrc();
        let ends = (self.packetiser.config().ssrc, |ssrc| receiver.is_none_or(|receiver| receiver == ssrc));
        self.key_frames.take(now, packet, ends, &mut self.outbox)
    }

    /// Processes a receiver report, or the report part of a sender report.
    pub(in crate::rtp) fn on_report(
        &mut self,
        now: Instant<SenderClock>,
        report: &ReceiverReport<'_>,
    ) -> Result<(), DropReason> {
        let our_ssrc = self.packetiser.config().ssrc;
        let told = self.exchange.on_report(now, report, our_ssrc, &mut self.outbox);
        let is_guess = told.is_err() && self.exchange.is_guessed_at();
        let told = if is_guess { Told::Contradiction } else { told? };
        self.stock.on_lost(self.exchange.take_lost());
        match told {
            Told::Nothing => {}
            Told::Alive => self.breakers.on_heard(now),
            Told::Contradiction => {
                let trip = self.breakers.on_contradiction(now);
                self.trips(trip);
            }
            Told::Interval { asked, summary, proof, round_trip } => {
                self.by_packet.iter_mut().for_each(|by_packet| by_packet.on_answer(asked));
                let trip = self.breakers.on_report(now, proof, round_trip);
                // If a clock was set, `summary` is `None`, because the measured delays say nothing about the path. In
                // this case, the rate does not change.
                if let Some(summary) = summary {
                    self.on_interval(now, summary, proof);
                }
                self.trips(trip);
                self.begin_again_if_due(now);
            }
        }
        if is_guess { Err(DropReason::Stray) } else { Ok(()) }
    }

    /// Applies the summary of an interval.
    fn on_interval(&mut self, now: Instant<SenderClock>, summary: IntervalSummary, proof: Proof) {
        if !self.exchange.receiver_cuts() {
            // The receiver does not estimate which packets were sent at the new rate. Therefore the sender restricts
            // the next interval to packets that are sent from now on.
            self.exchange.begin(now);
        }
        self.governor.on_interval(now, summary, proof);
        if self.governor.is_whole() {
            self.breakers.on_whole();
        }
        self.decided();
    }
}
