use alloc::vec::Vec;

use crate::units::{Instant, Rate, SenderClock, Span};

/// How the rates that flows calculate are combined into the rate of their group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Coupling {
    /// If the rate of one flow changes, the rate of the group changes by the same amount (RFC 8699, Sec. 5.3.1).
    #[default]
    Active,
    /// Like `Active`, but if one flow lowers its rate, the rate of the group falls by the same percentage. After that,
    /// new rates of all flows are ignored for two round-trip times of this flow (RFC 8699, Sec. 5.3.2).
    Conservative,
}

/// The number of a flow in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowNumber(u64);

/// The reason why a flow cannot join a group.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The priority is not a valid weight.
    #[error("a priority of {found}; it must be a number from {min} to {max}")]
    Priority {
        /// The priority that was given.
        found: f64,
        /// The lowest allowed priority.
        min: f64,
        /// The highest allowed priority.
        max: f64,
    },
    /// The group already has the maximum number of flows.
    #[error("the group already has {most} flows, the maximum")]
    Full {
        /// The maximum number of flows.
        most: usize,
    },
    /// The controller cannot continue from a rate that the group assigns.
    #[error("the controller cannot go on from a rate that its group gives it; gcc, nada, scream and equipoise can")]
    NotCoupled,
}

/// A new rate of one flow, as passed to its group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// The flow's rate before this update. It is `FSE_R(f)`, the rate that the group assigned, unless the flow's own
    /// limits prevented this rate.
    pub before: Rate,
    /// `CC_R(f)`, the rate that the flow's congestion control calculated.
    pub calculated: Rate,
    /// `DR(f)`, the rate that the application can use; `None` if the application can use any rate.
    pub desired: Option<Rate>,
    /// The flow's round-trip time; `None` if it is not known.
    pub round_trip: Option<Span>,
}

/// A group of flows that share a bottleneck and divide one common rate.
///
/// Source: RFC 8699, Sec. 5.3.1 (steps a to d) and 5.3.2 (step a).
///
/// ```text
/// S_CR ← S_CR + CC_R(f) - FSE_R(f)                      active
/// S_CR ← S_CR CC_R(f) / FSE_R(f)                        conservative, CC_R(f) < FSE_R(f)
/// FSE_R(i) = min(DR(i), P(i) L), Σ FSE_R(i) = S_CR      for all i
/// ```
///
/// `f` is the flow whose congestion control calculated a new rate, and `i` is any active flow. The first two lines use
/// the rate `FSE_R(f)` that was assigned before. The third line assigns the new rates.
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `CC_R(f)` | rate that the flow's congestion control calculated | bit/s |
/// | `FSE_R(f)` | rate that the group assigns to the flow | bit/s |
/// | `DR(f)` | rate that the flow's application can use | bit/s |
/// | `P(f)` | priority | |
/// | `S_CR` | sum of the calculated rates | bit/s |
/// | `L` | rate of a flow of priority 1 that is not limited | bit/s |
///
/// Our interpretation of the source:
/// - If the application can use any rate, `DR(f)` is infinite. If it were `CC_R(f)`, as in the RFC, a flow could never
///   get more than it calculated itself, and a joining flow would not get its share.
/// - The loop of step (c) ends when no flow is newly limited, not when two sums of rounded numbers are equal.
/// - A flow that leaves or pauses is removed from the list, and `S_CR` does not change. The other flows get the share
///   of this flow at once, because the path carried this rate. If no active flow is left, `S_CR` becomes zero.
/// - If `DR` limits all flows, a part of `S_CR` is not assigned. While this is so, a flow that raises its rate does not
///   raise `S_CR`, which would otherwise grow without bound. If a flow lowers its rate, `S_CR` is first set to the sum
///   of the assigned rates, and then reduced by the formula. Otherwise a reaction to congestion would only reduce the
///   part that is not assigned.
/// - A flow that has sent nothing for [`FlowGroup::IDLE`] is paused (the soft state of Sec. 4). With its next packet,
///   the flow joins again, at the rate of its first join.
/// - The timer of the conservative form assumes 100 ms for an unknown round-trip time.
///
/// No order of calls and no rate causes a panic, or a share that is negative or not finite.
#[derive(Clone, Debug, Default)]
pub struct FlowGroup {
    coupling: Coupling,
    flows: Vec<Member>,
    next: u64,
    /// `S_CR`, the rate that the group divides among its flows, in bit/s.
    sum_bps: f64,
    /// Time until which calculated rates are ignored (RFC 8699, Sec. 5.3.2).
    held_until: Option<Instant<SenderClock>>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    number: FlowNumber,
    priority: f64,
    /// The rate with which the flow joins, in bit/s.
    initial_bps: f64,
    /// `FSE_R(f)`, the rate that the group assigns to the flow, in bit/s.
    rate_bps: f64,
    /// `DR(f)`, the rate that the application can use, in bit/s; infinite if there is no limit.
    desired_bps: f64,
    /// Time when the flow last sent a packet; `None` while the flow is paused and before its first packet.
    sent: Option<Instant<SenderClock>>,
}

/// Assumed round-trip time of a flow whose round-trip time is unknown.
const USUAL_ROUND_TRIP: Span = Span::from_millis(100);

impl FlowGroup {
    /// Maximum number of flows in a group.
    pub const MOST_FLOWS: usize = 256;
    /// The lowest and highest priority. RFC 8699, Sec. 5.2 requires a number above zero, and maps WebRTC's four levels
    /// to 1, 2, 4 and 8.
    pub const PRIORITIES: (f64, f64) = (0.01, 100.0);
    /// A flow that sends nothing for longer than this is paused. The value is our choice: longer than the gaps between
    /// frames, and longer than a sender with a full window waits for acknowledgements.
    pub const IDLE: Span = Span::from_secs(1);

    /// Creates a group without flows.
    pub const fn new(coupling: Coupling) -> Self {
        Self { coupling, flows: Vec::new(), next: 0, sum_bps: 0.0, held_until: None }
    }

    /// Adds a flow, which uses its own `initial` rate until it gets a share. The flow is active from its first packet
    /// on.
    ///
    /// # Errors
    /// [`GroupError::Priority`] if the priority is out of range, and [`GroupError::Full`] if the group is full.
    pub fn register(&mut self, priority: f64, initial: Rate) -> Result<FlowNumber, GroupError> {
        let (min, max) = Self::PRIORITIES;
        if !(min..=max).contains(&priority) {
            return Err(GroupError::Priority { found: priority, min, max });
        }
        if self.flows.len() >= Self::MOST_FLOWS {
            return Err(GroupError::Full { most: Self::MOST_FLOWS });
        }
        let (number, initial_bps) = (FlowNumber(self.next), initial.as_bps_f64());
        self.next += 1;
        let (rate_bps, desired_bps, sent) = (initial_bps, f64::INFINITY, None);
        self.flows.push(Member { number, priority, initial_bps, rate_bps, desired_bps, sent });
        Ok(number)
    }

    /// Removes a flow, and divides its share among the other flows.
    pub fn deregister(&mut self, flow: FlowNumber) {
        self.flows.retain(|member| member.number != flow);
        self.distribute();
    }

    /// Records that a flow sends a packet at `now`, which makes the flow active. Ignored for a flow that was removed.
    pub fn on_sent(&mut self, now: Instant<SenderClock>, flow: FlowNumber) {
        let Some(member) = self.flows.iter_mut().find(|member| member.number == flow) else { return };
        let joins = member.sent.is_none();
        member.sent = Some(member.sent.map_or(now, |before| before.max(now)));
        if joins {
            (member.rate_bps, member.desired_bps) = (member.initial_bps, f64::INFINITY);
            self.sum_bps += member.initial_bps;
        }
        if self.pause(now) || joins {
            self.distribute();
        }
    }

    /// Applies a rate that a flow's congestion control calculated, and returns the flow's new share. Returns `None` for
    /// a flow that was removed, is paused, or has not sent a packet yet.
    pub fn update(&mut self, now: Instant<SenderClock>, flow: FlowNumber, update: Update) -> Option<Rate> {
        let member = self.flows.iter_mut().find(|member| member.number == flow && member.sent.is_some())?;
        member.desired_bps = update.desired.map_or(f64::INFINITY, Rate::as_bps_f64);
        self.pause(now);
        self.add(now, &update);
        self.distribute();
        self.share(flow)
    }

    /// Returns `FSE_R(f)`, the rate assigned to a flow; `None` for a flow that was removed, is paused, or has not sent
    /// a packet yet.
    pub fn share(&self, flow: FlowNumber) -> Option<Rate> {
        let member = self.active().find(|member| member.number == flow)?;
        Rate::from_bps_f64(libm::round(member.rate_bps))
    }

    /// Returns `S_CR`, the rate that the group divides among its flows.
    pub fn sum(&self) -> Rate {
        Rate::from_bps_f64(libm::round(self.sum_bps)).unwrap_or(Rate::ZERO)
    }

    /// Returns the active flow that was registered first.
    pub fn first(&self) -> Option<FlowNumber> {
        self.active().next().map(|member| member.number)
    }

    fn active(&self) -> impl Iterator<Item = &Member> {
        self.flows.iter().filter(|member| member.sent.is_some())
    }

    /// Pauses flows that have sent nothing for longer than [`Self::IDLE`]. Returns whether it paused a flow.
    fn pause(&mut self, now: Instant<SenderClock>) -> bool {
        let is_idle = |sent: &mut Instant<SenderClock>| now - *sent > Self::IDLE;
        let mut any = false;
        for member in &mut self.flows {
            any |= member.sent.take_if(is_idle).is_some();
        }
        any
    }

    /// Step (a) of RFC 8699, Sec. 5.3: updates `S_CR`, the rate that the group divides among its flows.
    fn add(&mut self, now: Instant<SenderClock>, update: &Update) {
        if self.coupling == Coupling::Conservative && self.held_until.is_some_and(|until| now < until) {
            return;
        }
        let (before, calculated) = (update.before.as_bps_f64(), update.calculated.as_bps_f64());
        let given = self.active().fold(0.0, |sum, member| sum + member.rate_bps);
        let is_left_over = self.active().all(|member| member.rate_bps >= member.desired_bps);
        if calculated >= before {
            if !is_left_over {
                self.sum_bps += calculated - before;
            }
            return;
        }
        self.sum_bps = self.sum_bps.min(given);
        match self.coupling {
            Coupling::Active => self.sum_bps = (self.sum_bps + calculated - before).max(0.0),
            Coupling::Conservative => {
                self.sum_bps *= calculated / before;
                self.held_until = Some(now + update.round_trip.unwrap_or(USUAL_ROUND_TRIP) * 2);
            }
        }
    }

    /// Steps (b) and (c) of RFC 8699, Sec. 5.3.1: divides `S_CR` among the flows in proportion to their priorities, so
    /// that no share exceeds the flow's desired rate.
    fn distribute(&mut self) {
        let mut left_bps = self.sum_bps;
        let mut priorities = self.active().fold(0.0, |sum, member| sum + member.priority);
        if priorities <= 0.0 {
            (self.sum_bps, self.held_until) = (0.0, None);
            return;
        }
        self.flows.iter_mut().for_each(|member| member.rate_bps = f64::NAN);
        // Each pass, except the last, limits at least one more flow to its desired rate.
        for _ in 0..=self.flows.len() {
            let level = if priorities > 0.0 { left_bps / priorities } else { 0.0 };
            let mut is_done = true;
            let open = self.flows.iter_mut().filter(|member| member.sent.is_some() && member.rate_bps.is_nan());
            for member in open {
                if member.desired_bps <= level * member.priority {
                    member.rate_bps = member.desired_bps;
                    left_bps -= member.desired_bps;
                    priorities -= member.priority;
                    is_done = false;
                }
            }
            if is_done {
                break;
            }
        }
        let level = (left_bps / priorities).max(0.0);
        for member in self.flows.iter_mut().filter(|member| member.rate_bps.is_nan()) {
            member.rate_bps = if member.sent.is_some() { level * member.priority } else { member.initial_bps };
        }
    }
}
