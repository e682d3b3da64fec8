use equipoise::units::Span;
use equipoise_session::{Event, Transport};

use crate::result::{PairPeriod, PairResult, PairTransport, ReceivedSample};

/// The data recorded so far about a flow pair, for both transports together.
#[derive(Debug, Default)]
pub(super) struct PairRecord {
    result: PairResult,
}

impl PairRecord {
    pub(super) fn on_event(&mut self, at: Span, event: &Event) {
        match *event {
            Event::AduReceived { missing, .. } => {
                self.result.adus += 1;
                self.result.adus_missing += missing;
            }
            Event::Switched { to, adu, rate } => self.result.periods.push(PairPeriod {
                at_s: at.as_secs_f64(),
                transport: PairTransport::from(to),
                first_adu: adu,
                rate_bps: rate.as_bps_f64(),
            }),
            _ => {}
        }
    }

    /// Returns the results of a run of length `lasted`. `received` are the rates that were sampled at the receiver.
    pub(super) fn finish(self, warm_up: Span, lasted: Span, received: &[ReceivedSample]) -> PairResult {
        let mut result = self.result;
        let (warm_up_s, lasted_s) = (warm_up.as_secs_f64(), lasted.as_secs_f64());
        result.periods.retain(|period| period.at_s <= lasted_s);
        let starts = std::iter::once(0.0).chain(received.iter().map(|sample| sample.at_s));
        let settled = starts.zip(received).filter(|(since, _)| *since >= warm_up_s);
        let sums = settled.fold((0.0, 0.0), |(bits, seconds), (since, sample)| {
            let elapsed = sample.at_s - since;
            (bits + sample.rate_bps * elapsed, seconds + elapsed)
        });
        result.received_bps = (sums.1 > 0.0).then(|| sums.0 / sums.1);
        result
    }
}

impl From<Transport> for PairTransport {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Tcp => Self::Tcp,
            Transport::Rtp => Self::Rtp,
        }
    }
}
