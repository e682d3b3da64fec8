use equipoise::units::{Instant, ReceiverClock, SenderClock};
use equipoise_session::{Endpoint, Input, Output, PathId, Wake, WakeReason};

use super::{Receiver, Segment, Sender};

impl Endpoint for Sender {
    type Clock = SenderClock;

    fn handle(&mut self, now: Instant<SenderClock>, input: Input<'_>) {
        let now = now.assume_clock();
        self.handled = now;
        match input {
            Input::Datagram { datagram, .. } => {
                if let Some(segment) = Segment::decode(datagram) {
                    self.on_segment(now, segment);
                }
            }
            Input::Timer => {
                if let Some(estimate) = self.config.bandwidth.as_ref().and_then(super::KnownBandwidth::take) {
                    self.on_bandwidth(now, &estimate);
                }
                self.on_timer(now);
            }
            Input::Stop => self.stop(now),
            // Inputs with payload have no effect, because `Supply` replaces the application. Inputs about paths have no
            // effect, because the sender uses only one path.
            _ => {}
        }
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        let segment = Self::poll(self, self.handled)?;
        self.encoded = segment.encode();
        Some(Output::Transmit { path: PathId::default(), transmit: self.encoded.transmit() })
    }

    fn wake(&self) -> Option<Wake<SenderClock>> {
        Self::wake(self).map(|at| Wake { at: at.assume_clock(), reason: WakeReason::Media })
    }
}

impl Endpoint for Receiver {
    type Clock = ReceiverClock;

    fn handle(&mut self, now: Instant<ReceiverClock>, input: Input<'_>) {
        let now = now.assume_clock();
        let answer = match input {
            Input::Datagram { datagram, .. } => {
                Segment::decode(datagram).and_then(|segment| self.on_segment(now, segment))
            }
            Input::Timer => self.on_timer(now),
            _ => None,
        };
        if let Some(answer) = answer {
            // No acknowledgement is overwritten: the simulator takes each of them before the next input.
            self.answer = Some(answer.encode());
        }
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        self.encoded = self.answer.take()?;
        Some(Output::Transmit { path: PathId::default(), transmit: self.encoded.transmit() })
    }

    fn wake(&self) -> Option<Wake<ReceiverClock>> {
        Self::wake(self).map(|at| Wake { at: at.assume_clock(), reason: WakeReason::Report })
    }
}
