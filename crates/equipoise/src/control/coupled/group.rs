use alloc::vec::Vec;

use crate::units::{Instant, Rate, SenderClock, Span};

/// How the rates that flows find make up the rate of their group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Coupling {
    /// Steps of the flows' rates add up (RFC 8699, Sec. 5.3.1).
    #[default]
    Active,
    /// As that, but a flow that lowers its rate lowers the group's by the same share, and no rate counts for two of its round
    /// trips after that (RFC 8699, Sec. 5.3.2).
    Conservative,
}

/// The number of a flow in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowNumber(u64);

/// Why a flow cannot join a group.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The priority is no weight.
    #[error("a priority of {found}; it has to be a number from {min} to {max}")]
    Priority {
        /// What was asked for.
        found: f64,
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// There are too many flows.
    #[error("the group has {most} flows already, which is the most")]
    Full {
        /// The most flows.
        most: usize,
    },
    /// The controller cannot go on from a rate that another calculated.
    #[error("the controller cannot go on from a rate that its group gives it; gcc, nada, scream and equipoise can")]
    NotCoupled,
}

/// A new rate of one flow, as it is told to its group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// What the flow's congestion control had before: `FSE_R(f)`, unless its own limits kept it from that.
    pub before: Rate,
    /// What it calculated: `CC_R(f)`.
    pub calculated: Rate,
    /// What the application can use: `DR(f)`; `None` without a limit.
    pub desired: Option<Rate>,
    /// The flow's round-trip time; `None` if it is not known.
    pub round_trip: Option<Span>,
}

/// Flows that share a bottleneck, and the rate that they have together.
///
/// Source: RFC 8699, Sec. 5.3.1 (steps a to d) and 5.3.2 (step a).
///
/// ```text
/// S_CR ← S_CR + CC_R(f) - FSE_R(f)                      active
/// S_CR ← S_CR CC_R(f) / FSE_R(f)                        conservative, CC_R(f) < FSE_R(f)
/// FSE_R(i) = min(DR(i), P(i) L), Σ FSE_R(i) = S_CR      for all i
/// ```
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `CC_R(f)` | rate that the flow's congestion control calculated | bit/s |
/// | `FSE_R(f)` | rate that the group gives the flow | bit/s |
/// | `DR(f)` | rate that the flow's application can use | bit/s |
/// | `P(f)` | priority | |
/// | `S_CR` | sum of the calculated rates | bit/s |
/// | `L` | rate of a flow of priority 1 that is not limited | bit/s |
///
/// Readings:
/// - `DR(f)` of a flow whose application can use any rate is infinite. The text sets it to `CC_R(f)`: then a flow could never be
///   given more than it found itself, and one that joins would not get its share.
/// - The loop of step (c) ends when no flow is newly limited, not when two sums of rounded numbers are equal.
/// - A flow that leaves or pauses is taken off the list, and `S_CR` stays: the others have its share at once. The path carried it.
/// - If all flows are limited, a part of `S_CR` is given to nobody. A rate that rises does not raise it further then, and one that
///   falls counts from what was given: otherwise the sum would grow without end, and congestion would be answered out of what
///   nobody sends.
/// - A flow that has sent nothing for [`FlowGroup::IDLE`] is paused (the soft state of Sec. 4). It joins again with its next
///   packet, at the rate that it joined with first.
/// - The timer of the conservative form takes 100 ms for a round trip that is not known.
///
/// Total: no order of calls and no rate panics or leaves a share that is negative or not finite.
#[derive(Clone, Debug, Default)]
pub struct FlowGroup {
    coupling: Coupling,
    flows: Vec<Member>,
    next: u64,
    /// `S_CR` in bit/s.
    sum_bps: f64,
    /// Until when no rate counts (Sec. 5.3.2).
    held_until: Option<Instant<SenderClock>>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    number: FlowNumber,
    priority: f64,
    /// The rate with which it joins, in bit/s.
    initial_bps: f64,
    /// `FSE_R(f)` in bit/s.
    rate_bps: f64,
    /// `DR(f)` in bit/s; infinite without a limit.
    desired_bps: f64,
    /// When it sent last; `None` while it is paused, and before its first packet.
    sent: Option<Instant<SenderClock>>,
}

/// A round trip that is not known.
const USUAL_ROUND_TRIP: Span = Span::from_millis(100);

impl FlowGroup {
    /// The most flows of a group.
    pub const MOST_FLOWS: usize = 256;
    /// The least and the greatest priority. RFC 8699, Sec. 5.2 asks for a number above zero, and maps WebRTC's four levels to 1, 2, 4
    /// and 8.
    pub const PRIORITIES: (f64, f64) = (0.01, 100.0);
    /// A flow that sends nothing for so long is paused. Ours: longer than the pauses of frames and of a full window.
    pub const IDLE: Span = Span::from_secs(1);

    /// An empty group.
    pub const fn new(coupling: Coupling) -> Self {
        Self { coupling, flows: Vec::new(), next: 0, sum_bps: 0.0, held_until: None }
    }

    /// A flow joins, and has `initial` of its own until it is told of its share. It counts from its first packet on.
    ///
    /// # Errors
    /// [`GroupError::Priority`] and [`GroupError::Full`].
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

    /// A flow stops: its share is the others'.
    pub fn deregister(&mut self, flow: FlowNumber) {
        self.flows.retain(|member| member.number != flow);
        self.distribute();
    }

    /// A flow sends a packet at `now`: it is active from then on. Nothing happens for a flow that has left.
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

    /// A flow's congestion control has calculated a rate; the flow's share after that. `None` for a flow that has left or is paused.
    pub fn update(&mut self, now: Instant<SenderClock>, flow: FlowNumber, update: Update) -> Option<Rate> {
        let member = self.flows.iter_mut().find(|member| member.number == flow && member.sent.is_some())?;
        member.desired_bps = update.desired.map_or(f64::INFINITY, Rate::as_bps_f64);
        self.pause(now);
        self.add(now, &update);
        self.distribute();
        self.share(flow)
    }

    /// The rate that a flow is given: `FSE_R(f)`. `None` for a flow that has left or is paused.
    pub fn share(&self, flow: FlowNumber) -> Option<Rate> {
        let member = self.active().find(|member| member.number == flow)?;
        Rate::from_bps_f64(libm::round(member.rate_bps))
    }

    /// The rate that the flows have together: `S_CR`.
    pub fn sum(&self) -> Rate {
        Rate::from_bps_f64(libm::round(self.sum_bps)).unwrap_or(Rate::ZERO)
    }

    /// The flow that joined first among those that send.
    pub fn first(&self) -> Option<FlowNumber> {
        self.active().next().map(|member| member.number)
    }

    fn active(&self) -> impl Iterator<Item = &Member> {
        self.flows.iter().filter(|member| member.sent.is_some())
    }

    /// Takes flows off the list that have long sent nothing; whether there are some.
    fn pause(&mut self, now: Instant<SenderClock>) -> bool {
        let is_idle = |sent: &mut Instant<SenderClock>| now - *sent > Self::IDLE;
        let mut any = false;
        for member in &mut self.flows {
            any |= member.sent.take_if(is_idle).is_some();
        }
        any
    }

    /// Step (a).
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

    /// Steps (b) and (c): shares by priority, none above what its flow desires.
    fn distribute(&mut self) {
        let mut left_bps = self.sum_bps;
        let mut priorities = self.active().fold(0.0, |sum, member| sum + member.priority);
        if priorities <= 0.0 {
            (self.sum_bps, self.held_until) = (0.0, None);
            return;
        }
        self.flows.iter_mut().for_each(|member| member.rate_bps = f64::NAN);
        // Each turn but the last limits one flow at least.
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
