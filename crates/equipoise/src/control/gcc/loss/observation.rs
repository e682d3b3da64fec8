use alloc::collections::VecDeque;

use crate::control::{Fate, PacketReport};
use crate::units::{Instant, SenderClock, Size, Span};

/// Minimum length of an observation. The length is the time from the last departure of the previous observation to the
/// last departure of this observation. With a larger value, the rate is steadier and reacts later (libwebrtc,
/// `loss_based_bwe_v2`).
const LENGTH: Span = Span::from_millis(250);
/// Number of observations that are kept (libwebrtc, `loss_based_bwe_v2`).
pub(super) const WINDOW: usize = 15;
/// Weight of an observation relative to the next newer one (libwebrtc, `loss_based_bwe_v2`).
const AGEING: f64 = 0.9;
/// Maximum number of lost packets that are stored in an observation. If a stored packet arrives before the observation
/// ends, it no longer counts as lost. The value is our choice, a bound on memory.
pub(super) const MOST_LOST: usize = 1024;
/// The worst observation is the one with the highest loss. If the rate of this observation is at least this multiple of
/// the median rate, the mean loss includes all observations (libwebrtc, `loss_based_bwe_v2`).
const SURGE: f64 = 2.0;
/// With more than this number of observations, the mean loss excludes the best and the worst observation (libwebrtc,
/// `loss_based_bwe_v2`).
const FEW: usize = 3;

/// The data sent in one time interval, and the part of it that was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Observation {
    /// r, the rate at which the packets left, in bit/s.
    pub bps: f64,
    /// Total size of the packets, in kB.
    pub sent_kb: f64,
    /// Size of the lost packets, in kB.
    pub lost_kb: f64,
}

impl Observation {
    fn loss(&self) -> f64 {
        if self.sent_kb > 0.0 { self.lost_kb / self.sent_kb } else { 0.0 }
    }
}

/// The last observations, and the observation in progress.
#[derive(Clone, Debug)]
pub(super) struct Observations {
    /// The complete observations, the newest at the end.
    window: VecDeque<Observation>,
    /// Weights of the observations by age, starting with the newest observation.
    weights: [f64; WINDOW],
    sent: Size,
    lost: VecDeque<(u64, Size)>,
    /// Total size of the packets that were removed from `lost` during the observation in progress, because `lost` was
    /// full. These packets count as lost even if they arrive later.
    given_up: Size,
    /// Departure time of the last packet in the newest complete observation; before there is such an observation,
    /// departure time of the first packet.
    last: Option<Instant<SenderClock>>,
}

impl Observations {
    pub(super) fn new() -> Self {
        let mut weights = [1.0; WINDOW];
        (1..WINDOW).for_each(|age| weights[age] = weights[age - 1] * AGEING);
        Self {
            window: VecDeque::with_capacity(WINDOW),
            weights,
            sent: Size::ZERO,
            lost: VecDeque::new(),
            given_up: Size::ZERO,
            last: None,
        }
    }

    /// Returns the number of complete observations.
    pub(super) fn count(&self) -> usize {
        self.window.len()
    }

    /// Returns the departure time of the last packet in the newest complete observation; before there is such an
    /// observation, the departure time of the first packet. Returns `None` before the first report.
    pub(super) const fn last(&self) -> Option<Instant<SenderClock>> {
        self.last
    }

    /// Returns the observations with their weights, the oldest observation first.
    pub(super) fn weighted(&self) -> impl Iterator<Item = (f64, &Observation)> {
        let count = self.window.len();
        self.window.iter().enumerate().map(move |(place, one)| (self.weights[count - 1 - place], one))
    }

    /// Processes reports on packets. Returns whether they complete an observation.
    pub(super) fn push(&mut self, packets: &[PacketReport]) -> bool {
        let Some(first) = packets.iter().map(|packet| packet.departed).min() else { return false };
        let Some(last) = packets.iter().map(|packet| packet.departed).max() else { return false };
        for packet in packets {
            self.count_packet(packet);
        }
        let begin = *self.last.get_or_insert(first);
        let length = last - begin;
        if length < LENGTH {
            return false;
        }
        self.last = Some(last);
        let lost: Size = self.lost.iter().map(|(_, size)| *size).sum::<Size>() + self.given_up;
        let sent = core::mem::take(&mut self.sent);
        self.given_up = Size::ZERO;
        self.lost.clear();
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(Observation {
            bps: sent.as_bits() as f64 / length.as_secs_f64(),
            sent_kb: sent.as_bytes() as f64 / 1e3,
            lost_kb: lost.min(sent).as_bytes() as f64 / 1e3,
        });
        true
    }

    fn count_packet(&mut self, packet: &PacketReport) {
        self.sent = self.sent + packet.size;
        match packet.fate {
            Fate::Arrived { .. } => self.lost.retain(|(number, _)| *number != packet.number),
            Fate::Lost => {
                if self.lost.len() == MOST_LOST
                    && let Some((_, size)) = self.lost.pop_front()
                {
                    self.given_up = self.given_up + size;
                }
                if self.lost.iter().all(|(number, _)| *number != packet.number) {
                    self.lost.push_back((packet.number, packet.size));
                }
            }
        }
    }

    /// Returns `loss`, the weighted mean loss ratio. The observation with the lowest loss ratio and the one with the
    /// highest do not count, except in two cases: there are at most three observations, or the sending rate of the
    /// observation with the highest loss ratio is at least twice the median sending rate.
    pub(super) fn average_loss(&self) -> f64 {
        let sum = |(sent, lost): (f64, f64), (weight, one): (f64, &Observation)| {
            (sent + weight * one.sent_kb, lost + weight * one.lost_kb)
        };
        let (sent, lost) = self.weighted().fold((0.0, 0.0), sum);
        if sent <= 0.0 {
            return 0.0;
        }
        let all = lost / sent;
        if self.window.len() <= FEW {
            return all;
        }
        // Of observations with an equal loss ratio, the oldest is taken, because it has the least weight.
        let worst = self.weighted().filter(|(_, one)| one.loss() > 0.0).fold(
            None,
            |worst: Option<(f64, &Observation)>, one| {
                if worst.is_none_or(|(_, worst)| one.1.loss() > worst.loss()) { Some(one) } else { worst }
            },
        );
        let best =
            self.weighted().filter(|(_, one)| one.loss() < 1.0).fold(None, |best: Option<(f64, &Observation)>, one| {
                if best.is_none_or(|(_, best)| one.1.loss() < best.loss()) { Some(one) } else { best }
            });
        if worst.is_some_and(|(_, worst)| self.median_bps() * SURGE <= worst.bps) {
            return all;
        }
        let (out_sent, out_lost) = [worst, best].into_iter().flatten().fold((0.0, 0.0), sum);
        let left = sent - out_sent;
        if left > 0.0 { ((lost - out_lost) / left).clamp(0.0, 1.0) } else { all }
    }

    fn median_bps(&self) -> f64 {
        let mut rates = [0.0; WINDOW];
        let mut count = 0;
        for one in self.window.iter().filter(|one| one.bps > 0.0) {
            rates[count] = one.bps;
            count += 1;
        }
        let rates = &mut rates[..count];
        rates.sort_unstable_by(f64::total_cmp);
        match count {
            0 => 0.0,
            _ if count.is_multiple_of(2) => f64::midpoint(rates[count / 2 - 1], rates[count / 2]),
            _ => rates[count / 2],
        }
    }
}
