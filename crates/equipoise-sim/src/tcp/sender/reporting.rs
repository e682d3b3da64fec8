//! Feedback to a controller: each packet that is sent, and whether it has arrived or is lost.

use equipoise::control::{Feedback, PacketFeedback, SentPacket};
use equipoise::units::{Size, Span};

use super::Sender;
use crate::Time;
use crate::tcp::{Law, LossRecovery};

impl Sender {
    /// Size of the segments that are assumed to be on the path; each counts as a full segment. Without SACK, each
    /// duplicate acknowledgement counts as the arrival of one segment.
    pub(super) fn under_way(&self) -> Size {
        let come = if self.config.recovery == LossRecovery::NewReno { self.duplicates } else { 0 };
        let segments = self.board.pipe().saturating_sub(come);
        Size::from_bytes(segments.saturating_mul(self.config.packet.as_bytes()))
    }

    /// Reports to a controller that segment `number` was sent as a packet of `size`.
    pub(super) fn report_sent(&mut self, now: Time, number: u64, size: Size) {
        let Some(packet) = self.board.note(number, now, size) else { return };
        let in_flight = self.under_way();
        if let Law::Controller(controller) = &mut self.law {
            controller.on_sent(now.assume_clock(), &SentPacket::new(packet, size, in_flight));
        }
    }

    /// Reports to a controller which packets arrived or were lost. `in_flight` is the size of the data in flight before
    /// this feedback.
    pub(super) fn report(&mut self, now: Time, round_trip: Option<Span>, in_flight: Size) {
        let (Law::Controller(controller), Some(journal)) = (&mut self.law, self.board.journal()) else { return };
        let packets = journal.reports();
        if !packets.is_empty() {
            let mut feedback = PacketFeedback::new(packets, in_flight);
            feedback.round_trip = round_trip;
            feedback.app_limited = !self.window_limited && !self.paced;
            controller.on_feedback(now.assume_clock(), &Feedback::Packets(&feedback));
            journal.clear();
        }
    }

    /// When the controller's timer is due. If the controller does not set a later time, the timer fires only once.
    pub(super) fn controller_timer(&self) -> Option<Time> {
        let Law::Controller(controller) = &self.law else { return None };
        let due: Time = controller.next_timer()?.assume_clock();
        (self.finished.is_none() && self.timer_served.is_none_or(|served| due > served)).then_some(due)
    }

    /// Calls the controller's timer function if its timer is due.
    pub(super) fn serve_controller(&mut self, now: Time) {
        let is_due = self.controller_timer().is_some_and(|due| due <= now);
        if let Law::Controller(controller) = &mut self.law
            && is_due
        {
            self.timer_served = Some(now);
            controller.on_timer(now.assume_clock());
        }
    }
}
