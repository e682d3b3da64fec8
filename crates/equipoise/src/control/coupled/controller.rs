use alloc::sync::Arc;
use core::fmt;

use super::demand::Demand;
use super::group::{FlowGroup, FlowNumber, GroupError, Update};
use crate::control::{
    Allowance, Beliefs, BoxedController, Controller, Feedback, Needs, Probe, QueuedFrame, Reason, SentPacket, Snapshot,
};
use crate::units::{Instant, Rate, SenderClock, Span};

/// A flow group that several controllers share, behind a lock that the caller provides. This crate itself has no locks.
pub trait SharedGroup: Send + Sync + fmt::Debug {
    /// Calls `act` with exclusive access to the group.
    fn with(&self, act: &mut dyn FnMut(&mut FlowGroup));
}

/// A congestion controller whose flow receives a share of the rate of a flow group.
///
/// Before the inner controller processes a sent packet, a report or a timer, its rate is set to the flow's current
/// share. If the controller then calculates a new rate, this rate is passed to the group at once. The other flows use
/// their new shares from their next packet, report or timer on. Source: RFC 8699, Sec. 5.3, 6.1, App. A.
///
/// Only the first active flow of the group sends probes. One prober is enough, because a probe measures the capacity
/// that all flows of the group share.
#[derive(Debug)]
pub struct Coupled {
    controller: BoxedController,
    group: Arc<dyn SharedGroup>,
    flow: FlowNumber,
    demand: Demand,
    /// The share of the group's rate that was last applied to the inner controller.
    given: Option<Rate>,
    round_trip: Option<Span>,
    /// Whether the rate of this flow changed only because of updates of other flows. The value is determined at each
    /// packet, report or timer of this flow.
    is_others: bool,
    /// Whether the flow is the first active flow of the group.
    is_first: bool,
    /// The desired rate that was last passed to the group.
    desired: Option<Rate>,
}

impl Coupled {
    /// Adds `controller` to `group` with a priority. The flow contributes the controller's start rate to the rate of
    /// the group.
    ///
    /// # Errors
    /// [`GroupError`] if the controller cannot be coupled, the priority is out of range, or the group is full.
    pub fn new(controller: BoxedController, group: Arc<dyn SharedGroup>, priority: f64) -> Result<Self, GroupError> {
        let initial = controller.calculated_rate().ok_or(GroupError::NotCoupled)?;
        let mut registered = Err(GroupError::NotCoupled);
        group.with(&mut |group| registered = group.register(priority, initial));
        Ok(Self {
            controller,
            group,
            flow: registered?,
            demand: Demand::new(),
            given: None,
            round_trip: None,
            is_others: false,
            is_first: false,
            desired: None,
        })
    }

    fn rate(&self) -> Rate {
        self.controller.calculated_rate().unwrap_or(Rate::ZERO)
    }

    /// Sets the inner controller's rate to the flow's share, unless this share was already applied.
    fn take(&mut self, now: Instant<SenderClock>, share: Option<Rate>) {
        if let Some(share) = share.filter(|share| self.given != Some(*share)) {
            self.given = Some(share);
            if share != self.rate() {
                self.controller.set_calculated_rate(now, share);
            }
        }
    }

    /// Sets the inner controller's rate to the flow's share and calls `act`. If the calculated or the desired rate has
    /// changed, passes both to the group and applies the new share.
    fn act(&mut self, now: Instant<SenderClock>, act: impl FnOnce(&mut BoxedController)) {
        let (flow, mut share) = (self.flow, None);
        self.group.with(&mut |group| share = group.share(flow));
        self.is_others = share.is_some() && self.given.is_some() && share != self.given;
        self.take(now, share);
        let before = self.rate();
        act(&mut self.controller);
        let calculated = self.rate();
        let desired = self.demand.desired();
        if (before, self.desired) == (calculated, desired) {
            return;
        }
        self.desired = desired;
        let update = Update { before, calculated, desired, round_trip: self.round_trip };
        self.group.with(&mut |group| share = group.update(now, flow, update));
        self.is_others &= before == calculated;
        self.take(now, share);
    }
}

impl Drop for Coupled {
    fn drop(&mut self) {
        let flow = self.flow;
        self.group.with(&mut |group| group.deregister(flow));
    }
}

impl Controller for Coupled {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        if let Feedback::Packets(packets) = feedback {
            self.round_trip = packets.round_trip.or(self.round_trip);
            self.demand.on_feedback(now, packets.app_limited);
        }
        self.act(now, |controller| controller.on_feedback(now, feedback));
    }

    fn allowance(&self) -> Allowance {
        self.controller.allowance()
    }

    fn needs(&self) -> Needs {
        self.controller.needs()
    }

    fn on_sent(&mut self, now: Instant<SenderClock>, packet: &SentPacket) {
        self.demand.on_sent(now, packet.size);
        let (flow, mut is_first) = (self.flow, false);
        self.group.with(&mut |group| {
            group.on_sent(now, flow);
            is_first = group.first() == Some(flow);
        });
        self.is_first = is_first;
        self.act(now, |controller| controller.on_sent(now, packet));
    }

    fn on_frame(&mut self, now: Instant<SenderClock>, frame: &QueuedFrame) {
        self.controller.on_frame(now, frame);
    }

    fn on_timer(&mut self, now: Instant<SenderClock>) {
        self.act(now, |controller| controller.on_timer(now));
    }

    fn next_timer(&self) -> Option<Instant<SenderClock>> {
        self.controller.next_timer()
    }

    fn wanted_probe(&self) -> Option<Probe> {
        self.controller.wanted_probe().filter(|_| self.is_first)
    }

    fn lowest_rate(&self) -> Rate {
        self.controller.lowest_rate()
    }

    fn is_held_to_proof(&self) -> bool {
        self.controller.is_held_to_proof()
    }

    fn snapshot(&self) -> Snapshot {
        let snapshot = self.controller.snapshot();
        if self.is_others { Snapshot { reason: Some(Reason::Other("coupled")), ..snapshot } } else { snapshot }
    }

    fn beliefs(&self) -> Option<Beliefs> {
        self.controller.beliefs()
    }

    fn target_delay(&self) -> Option<Span> {
        self.controller.target_delay()
    }

    fn calculated_rate(&self) -> Option<Rate> {
        self.controller.calculated_rate()
    }

    fn set_calculated_rate(&mut self, now: Instant<SenderClock>, rate: Rate) {
        self.controller.set_calculated_rate(now, rate);
    }
}
