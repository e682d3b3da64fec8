use super::GccForm;
use super::detector::{Detector, Gains, Usage};
use super::grouping::Grouping;
use super::kalman::Kalman;
use super::throughput::Arrival;
use super::trendline::Trendline;
use crate::units::{Instant, SenderClock, Span};

/// Derives from the arrivals of packets whether the queue of the path grows or shrinks. The arrivals are grouped. A
/// filter estimates the trend of the delay between groups, and a detector compares this trend with a threshold.
///
/// After 2 s without feedback, the state is discarded (libwebrtc, `delay_based_bwe`).
#[derive(Clone, Debug)]
pub(super) struct DelayPart {
    form: GccForm,
    grouping: Grouping,
    filter: Filter,
    detector: Detector,
    told: Option<Instant<SenderClock>>,
}

#[derive(Clone, Debug)]
enum Filter {
    Trendline(Trendline),
    Kalman(Kalman),
}

/// After this time without feedback, old delays say nothing about the path (libwebrtc, `delay_based_bwe`).
const FORGET: Span = Span::from_secs(2);

impl DelayPart {
    pub(super) fn new(form: GccForm) -> Self {
        let (filter, gains) = match form {
            GccForm::Libwebrtc => (Filter::Trendline(Trendline::default()), Gains::LIBWEBRTC),
            GccForm::Draft => (Filter::Kalman(Kalman::default()), Gains::DRAFT),
        };
        Self { form, grouping: Grouping::default(), filter, detector: Detector::new(gains), told: None }
    }

    pub(super) const fn usage(&self) -> Usage {
        self.detector.usage()
    }

    /// Processes packets in arrival order, from feedback at `now`. Returns whether the queue changed from shrinking to
    /// normal at one of these packets.
    pub(super) fn push(&mut self, now: Instant<SenderClock>, packets: &[Arrival]) -> bool {
        if self.told.is_some_and(|told| now - told > FORGET) {
            *self = Self::new(self.form);
        }
        if !packets.is_empty() {
            self.told = Some(now);
        }
        let mut has_recovered = false;
        for packet in packets {
            let before = self.usage();
            self.push_one(now, packet);
            has_recovered |= before == Usage::Under && self.usage() == Usage::Normal;
        }
        has_recovered
    }

    fn push_one(&mut self, now: Instant<SenderClock>, packet: &Arrival) {
        let Some(delta) = self.grouping.push(packet.departed, packet.arrived, now) else { return };
        let estimate = match &mut self.filter {
            Filter::Trendline(line) => line.push(delta.delay_ms(), packet.arrived),
            Filter::Kalman(kalman) => kalman.push(delta.delay_ms(), delta.arrived),
        };
        self.detector.push(estimate, delta.departed, packet.arrived);
    }
}
