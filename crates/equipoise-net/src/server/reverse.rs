//! Sessions in which the server sends media that the peer requested.

use std::net::SocketAddr;

use equipoise::control::{self, Allowance, BoxedController, Cbr, Controller, Feedback, Snapshot};
use equipoise::units::{Instant, Rate, SenderClock};
use equipoise_session::feedback::Reporting;
use equipoise_session::rtp::{Delays, Sender, SenderConfig, StreamConfig};

use super::live::{Half, Live};
use super::{SessionObserver, State};
use crate::Time;
use crate::secure::{Refusal, Wanted, random};
use crate::send::{PAYLOAD_TYPE, SendConfig};

/// The name of the control law for the server's media. This law needs no settings for a particular path.
const LAW: &str = "equipoise";

impl<V: SessionObserver> State<V> {
    /// Creates the sender of a session, within the limit of the server's total rate.
    pub(super) fn sending(
        &self,
        now: Time,
        to: SocketAddr,
        ssrc: u32,
        (wanted, reporting): (&Wanted, Option<Reporting>),
    ) -> Result<Half, Refusal> {
        let most = self.grant(wanted)?;
        let overhead = SendConfig::overhead_to(to, self.config.key.is_some());
        let stream = StreamConfig {
            overhead,
            ..StreamConfig::new(ssrc, PAYLOAD_TYPE, wanted.packet_size(), self.config.cname.clone())
        };
        let start = now.assume_clock();
        let base = SenderConfig::new(stream, wanted.report_interval(), start, u64::from_be_bytes(random()));
        let config = SenderConfig { delays: Delays::Queueing, ecn: wanted.ecn(), reporting, ..base };
        let controller = controller(wanted, most).ok_or(Refusal::Impossible)?;
        let sender = Sender::new(config, controller).map_err(|_| Refusal::Impossible)?;
        Ok(Half::Sends(Box::new(sender), most))
    }

    /// The maximum rate of a new session: the requested maximum rate, or the unused part of the server's total limit if
    /// that is lower.
    fn grant(&self, wanted: &Wanted) -> Result<Rate, Refusal> {
        let limit = self.config.reverse_limit;
        if limit == Rate::ZERO {
            return Err(Refusal::SendsNothing);
        }
        let granted: u64 = self.live.values().map(|Live { half, .. }| half.granted().as_bps()).sum();
        let left = Rate::from_bps(limit.as_bps().saturating_sub(granted));
        if left < wanted.min() { Err(Refusal::SendsEnough) } else { Ok(left.min(wanted.max())) }
    }
}

/// A constant rate that is reduced if no feedback arrives. [`Cbr`] would continue for many seconds after its receiver
/// has disappeared. A sender may use [`Cbr`] in its own session, but a peer must not be able to make a server use
/// [`Cbr`].
#[derive(Debug)]
struct Steady(Cbr);

impl Controller for Steady {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, _feedback: &Feedback<'_>) {}

    fn allowance(&self) -> Allowance {
        self.0.allowance()
    }

    /// Returns a hundredth of the constant rate. This share is our choice: a report allows up to twice the delivery
    /// rate that it shows, so the rate can rise from a hundredth to the full rate within seven reports (2⁷ is 128).
    fn lowest_rate(&self) -> Rate {
        self.0.allowance().rate.map_or(Rate::ZERO, |rate| Rate::from_bps((rate.as_bps() / 100).max(1)))
    }

    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }
}

/// Creates the controller for a session with the maximum rate `most`; `None` if the control law does not accept the
/// requested rates.
fn controller(wanted: &Wanted, most: Rate) -> Option<BoxedController> {
    if wanted.is_constant() {
        return Some(Box::new(Steady(Cbr::new(wanted.max()))));
    }
    let law = control::find(LAW)?;
    let [min, max] = [wanted.min(), most].map(|rate| rate.to_string());
    let start = wanted.start().map(|start| start.min(most).to_string());
    let mut given = vec![("min_rate", min.as_str()), ("max_rate", &max)];
    given.extend(start.as_deref().map(|start| ("initial_rate", start)));
    law.build(&law.parse(&given).ok()?, wanted.packet_size()).ok()
}
