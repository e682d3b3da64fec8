use super::law::NadaLaw;
use super::window::Window;
use crate::control::base_delay::BaseDelay;
use crate::control::loss_intervals::LossIntervals;
use crate::control::{Ecn, Fate, PacketFeedback, PacketReport};
use crate::units::{Instant, ReceiverClock, SenderClock, Span};

/// The calculations of NADA's receiver (RFC 8698, Sec. 4.2, 5.1), done at the sender with per-packet feedback.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    base: BaseDelay,
    metric: Metric,
    /// The last queueing delays, in no particular order.
    recent: [Span; MINIMUM_OF],
    samples: usize,
    /// Packets by departure time, on the sender's clock.
    sent: Window<Sent>,
    /// Bytes by arrival time, on the receiver's clock. For a packet without an arrival time, the time at which its
    /// feedback arrived is used instead, on the sender's clock.
    arrived: Window<u64>,
    highest_number: u64,
    round_trip: Option<Span>,
    losses: LossIntervals,
    /// Departure time of the first packet of the last loss event.
    last_loss: Option<Instant<SenderClock>>,
    /// `lost` is `p_loss` and `marked` is `p_mark`, the smoothed shares of packets lost and marked.
    lost: f64,
    marked: f64,
}

/// Which delay is used: the round-trip time or the one-way delay (RFC 8698, Sec. 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    RoundTrip,
    OneWay,
}

/// Counts of the packets that left within one bin of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    packets: u64,
    lost: u64,
    marked: u64,
    delivered_bytes: u64,
    /// The longest queueing delay of the packets that left within the bin; `None` without a sample.
    longest: Option<Span>,
}

/// The receiver's report, from which the rate is updated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Report {
    /// `x_curr`, the congestion signal, in s.
    pub(super) signal_s: f64,
    /// Whether `rmode` is 0, which means no losses, no marks and no queue within LOGWIN. False without a delay sample.
    pub(super) is_underused: bool,
    /// `r_recv`, the receiving rate, in bit/s.
    pub(super) received_bps: f64,
    /// `rtt`, the round-trip time, in s; zero before the first sample (RFC 8698, Sec. 4.3).
    pub(super) round_trip_s: f64,
}

/// The queueing delay is the minimum of this many samples, so that a short spike does not count as congestion. With
/// more samples, the reaction is later (RFC 8698, Sec. 5.1.1).
const MINIMUM_OF: usize = 15;
/// QEPS: a queueing delay of at least this shows that a queue is building up, and prevents the accelerated ramp-up.
/// With a larger value, even a longer queue of other flows does not prevent the ramp-up (RFC 8698, Table 2).
const QEPS: Span = Span::from_millis(10);
/// ALPHA, weight of a new loss or marking ratio. With a larger value, the smoothed ratio reacts faster and is noisier
/// (RFC 8698, Table 2).
const ALPHA: f64 = 0.1;
/// MULTILOSS: the number of mean loss intervals for which a loss is remembered (RFC 8698, Table 2).
const MULTILOSS: f64 = 7.0;
/// While the round-trip time is unknown, losses within this time are one loss event. Our choice: NADA's feedback
/// interval DELTA (RFC 8698, Table 2).
const UNKNOWN_ROUND_TRIP: Span = Span::from_millis(100);

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            base: BaseDelay::new(),
            metric: Metric::RoundTrip,
            recent: [Span::ZERO; MINIMUM_OF],
            samples: 0,
            sent: Window::new(),
            arrived: Window::new(),
            highest_number: 0,
            round_trip: None,
            losses: LossIntervals::new(),
            last_loss: None,
            lost: 0.0,
            marked: 0.0,
        }
    }

    /// Processes feedback that arrived at `now`.
    pub(super) fn push(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) {
        self.round_trip = feedback.round_trip.filter(|sample| *sample > Span::ZERO).or(self.round_trip);
        for packet in feedback.packets {
            self.push_packet(now, packet);
        }
        let newest = feedback.packets.iter().rfind(|packet| packet.fate != Fate::Lost);
        if self.metric == Metric::RoundTrip
            && let (Some(packet), Some(round_trip)) = (newest, feedback.round_trip)
        {
            self.push_delay(now, packet.departed, round_trip);
        }
    }

    fn push_packet(&mut self, now: Instant<SenderClock>, packet: &PacketReport) {
        if packet.number > self.highest_number && self.sent.is_before(packet.departed.as_nanos()) {
            // A later packet number with a much earlier departure shows that the sender's clock was set back.
            self.sent = Window::new();
        }
        self.highest_number = self.highest_number.max(packet.number);
        let bytes = packet.size.as_bytes();
        if let Some(bin) = self.sent.bin(packet.departed.as_nanos()) {
            bin.packets += 1;
            match packet.fate {
                Fate::Lost => bin.lost += 1,
                Fate::Arrived { ecn, .. } => {
                    bin.delivered_bytes = bin.delivered_bytes.saturating_add(bytes);
                    bin.marked += u64::from(ecn == Ecn::Ce);
                }
            }
        }
        match packet.fate {
            Fate::Lost => self.count_loss(packet.departed),
            Fate::Arrived { at, .. } => {
                self.losses.grow(1.0);
                self.push_arrival(at.unwrap_or(now.assume_clock()), bytes);
                if let Some(at) = at {
                    self.trust_arrivals();
                    self.push_delay(now, packet.departed, at.assume_clock() - packet.departed);
                }
            }
        }
    }

    /// Uses one-way delays from now on, because the feedback has arrival times. Discards the delays that were measured
    /// as round-trip times.
    fn trust_arrivals(&mut self) {
        if self.metric == Metric::OneWay {
            return;
        }
        self.metric = Metric::OneWay;
        self.base = BaseDelay::new();
        self.samples = 0;
        self.sent.bins_mut().for_each(|bin| bin.longest = None);
    }

    fn push_arrival(&mut self, at: Instant<ReceiverClock>, bytes: u64) {
        if self.arrived.is_before(at.as_nanos()) {
            // The receiver's clock was set back.
            self.arrived = Window::new();
        }
        if let Some(bin) = self.arrived.bin(at.as_nanos()) {
            *bin = bin.saturating_add(bytes);
        }
    }

    fn push_delay(&mut self, now: Instant<SenderClock>, departed: Instant<SenderClock>, shown: Span) {
        // RFC 8698, Sec. 4.2: d_base = min(d_base, d_fwd), d_queue = d_fwd - d_base.
        let queueing = self.base.queueing(now, shown);
        self.recent[self.samples % MINIMUM_OF] = queueing;
        // The count goes back by `MINIMUM_OF`, so that it never overflows and the index into `recent` continues.
        self.samples = if self.samples + 1 == 2 * MINIMUM_OF { MINIMUM_OF } else { self.samples + 1 };
        if let Some(bin) = self.sent.bin(departed.as_nanos()) {
            bin.longest = bin.longest.max(Some(queueing));
        }
    }

    /// Counts a lost packet. Losses within a round trip are one loss event (RFC 5348, Sec. 5.2).
    fn count_loss(&mut self, departed: Instant<SenderClock>) {
        let apart = self.round_trip.unwrap_or(UNKNOWN_ROUND_TRIP);
        if self.last_loss.is_some_and(|last| (departed - last).abs() < apart) {
            self.losses.grow(1.0);
            return;
        }
        if self.last_loss.replace(departed).is_some() {
            self.losses.close();
        } else {
            // The packets before the first loss are not an interval between two losses.
            self.losses.replace_open(0.0);
        }
        self.losses.grow(1.0);
    }

    /// Updates the smoothed ratios and returns the receiver's report. Returns `None` while no delay is known and no
    /// packet was lost within LOGWIN.
    pub(super) fn report(&mut self, law: &NadaLaw) -> Option<Report> {
        let mut total = Sent::default();
        for bin in self.sent.bins() {
            total.packets += bin.packets;
            total.lost += bin.lost;
            total.marked += bin.marked;
            total.delivered_bytes = total.delivered_bytes.saturating_add(bin.delivered_bytes);
            total.longest = total.longest.max(bin.longest);
        }
        if self.samples == 0 && total.lost == 0 {
            return None;
        }
        // RFC 8698, Eq. 10. A window without packets leaves the ratios unchanged.
        if total.packets > 0 {
            let packets = total.packets as f64;
            self.lost = ALPHA * (total.lost as f64 / packets) + (1.0 - ALPHA) * self.lost;
            self.marked = ALPHA * (total.marked as f64 / packets) + (1.0 - ALPHA) * self.marked;
        }
        let known = &self.recent[..self.samples.min(MINIMUM_OF)];
        let queueing_s = known.iter().min().copied().unwrap_or(Span::ZERO).as_secs_f64();
        let delay_s = warped_while_losing(law, queueing_s, &self.losses);
        let by_departure = total.delivered_bytes as f64 * 8.0 / self.sent.span_s();
        let by_arrival = self.arrived.bins().fold(0.0, |sum, bytes| sum + *bytes as f64) * 8.0 / self.arrived.span_s();
        Some(Report {
            signal_s: law.signal(delay_s, self.marked, self.lost),
            is_underused: total.lost + total.marked == 0 && total.longest.is_some_and(|longest| longest < QEPS),
            received_bps: by_departure.min(by_arrival),
            round_trip_s: self.round_trip.map_or(0.0, Span::as_secs_f64),
        })
    }
}

/// Returns the queueing delay for the congestion signal, in s (RFC 8698, Sec. 4.2). `loss_int` is the mean number of
/// packets between loss events. For `MULTILOSS * loss_int` packets after a loss event, a long delay counts as a shorter
/// one ([`NadaLaw::warped`]). Over the next `loss_int` packets, the result returns linearly to the measured delay,
/// `queueing_s`. Before the second loss event, returns `queueing_s`.
pub(super) fn warped_while_losing(law: &NadaLaw, queueing_s: f64, losses: &LossIntervals) -> f64 {
    let Some(loss_int) = losses.mean_closed() else { return queueing_s };
    let loss_exp = MULTILOSS * loss_int;
    let restored = ((losses.open() - loss_exp) / loss_int).clamp(0.0, 1.0);
    restored * queueing_s + (1.0 - restored) * law.warped(queueing_s)
}
