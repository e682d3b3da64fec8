//! Random impairments of packets on a path: loss, jitter, reordering.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::FromStr;

use rand_core::Rng as _;
use rand_distr::{Distribution as _, StandardNormal};
use rand_pcg::Pcg64Mcg;

use equipoise::random::generator;
use equipoise::units::{Schedule, Share, Span, UnitError};

/// Which packets are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// No packet.
    #[default]
    None,
    /// Each packet independently with the same probability.
    Random(Share),
    /// In bursts.
    Burst(GilbertElliott),
}

impl Loss {
    /// The share of packets that are lost in the long run.
    ///
    /// For bursts, it is the mean of the losses in both states (Elliott 1963). The weights are the shares of packets in
    /// each state: `r / (p + r)` in the good one and `p / (p + r)` in the bad one. If no state is ever left, it is the
    /// loss in the good state, in which a path starts.
    pub fn mean_share(self) -> Share {
        match self {
            Self::None => Share::NONE,
            Self::Random(share) => share,
            Self::Burst(GilbertElliott { to_bad, to_good, loss_in_good, loss_in_bad }) => {
                let (p, r) = (to_bad.as_fraction(), to_good.as_fraction());
                let bad = if p + r > 0.0 { p / (p + r) } else { 0.0 };
                let mean = loss_in_good.as_fraction() * (1.0 - bad) + loss_in_bad.as_fraction() * bad;
                Share::from_fraction(mean).unwrap_or(Share::ALL)
            }
        }
    }
}

/// Loss in bursts: a good and a bad state, each with its own loss probability, and a probability to change state after
/// every packet.
///
/// Source: Gilbert 1960, with the good state's loss of Elliott 1963. In the long run a share `p / (p + r)` of the
/// packets is in the bad state, on average `1 / r` packets at a time. The path starts in the good state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// p: probability to enter the bad state after a packet in the good state.
    pub to_bad: Share,
    /// r: probability to return to the good state after a packet in the bad state.
    pub to_good: Share,
    /// Probability of loss in the good state; 0 in Gilbert's model.
    pub loss_in_good: Share,
    /// Probability of loss in the bad state; 1 for bursts without gaps.
    pub loss_in_bad: Share,
}

impl GilbertElliott {
    /// Bursts in which all packets are lost, without losses between bursts.
    pub const fn bursts(to_bad: Share, to_good: Share) -> Self {
        Self { to_bad, to_good, loss_in_good: Share::NONE, loss_in_bad: Share::ALL }
    }
}

/// Reads `"1% 25%"`, p and r of bursts in which all packets are lost, or `"1% 25% 0.1% 80%"`, p, r and the losses in
/// the good and in the bad state.
impl FromStr for GilbertElliott {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let no_number =
            || UnitError::NoNumber { text: text.to_string(), kind: "loss in bursts, by p and r", example: "1% 25%" };
        let shares: String = text.replace(" %", "%");
        let shares: Vec<Share> = shares.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        match *shares.as_slice() {
            [to_bad, to_good] => Ok(Self::bursts(to_bad, to_good)),
            [to_bad, to_good, loss_in_good, loss_in_bad] => Ok(Self { to_bad, to_good, loss_in_good, loss_in_bad }),
            _ => Err(no_number()),
        }
    }
}

/// How much the propagation delay varies from packet to packet.
///
/// A packet that would overtake the previous one arrives together with it: jitter alone does not reorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// No variation.
    #[default]
    None,
    /// Uniform, by at most this in either direction.
    Uniform(Span),
    /// Normal, with this standard deviation; negative delays become zero.
    Normal(Span),
    /// Only longer delays: half-normal with this standard deviation, truncated at three standard deviations. A packet
    /// arrives after the previous one by at least the previous packet's service time at the bottleneck (RFC 8868, Sec.
    /// 4.5.2 and 4.5.3).
    HalfNormal(Span),
}

/// Reads `"2 ms"`, uniform by at most that, `"2 ms normal"` or `"5 ms half-normal"`.
impl FromStr for Jitter {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim_end();
        match (text.strip_suffix("half-normal"), text.strip_suffix("normal")) {
            (Some(deviation), _) => deviation.parse().map(Self::HalfNormal),
            (None, Some(deviation)) => deviation.parse().map(Self::Normal),
            (None, None) => text.parse().map(Self::Uniform),
        }
    }
}

/// Number of standard deviations at which half-normal jitter is truncated (`N_STD`; RFC 8868, Sec. 4.5.3).
pub(super) const MOST_DEVIATIONS: f64 = 3.0;

/// Reorders a share of the packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Probability for each packet.
    pub share: Share,
    /// How much later than other packets a reordered packet arrives; if negative, how much earlier, by at most the
    /// delay.
    pub by: Span,
}

/// Random numbers from one seed for one purpose.
///
/// Every purpose has its own stream, so that the fate of the n-th packet depends only on the seed and on n, and not on
/// other impairments.
#[derive(Clone, Debug)]
pub(super) struct Chance(Pcg64Mcg);

impl Chance {
    /// The numbers of `stream` from `seed`.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Self(generator(seed, stream.wrapping_mul(2)))
    }

    /// A random 64-bit number.
    pub(super) fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform from 0 up to, but not including, 1.
    pub(super) fn even(&mut self) -> f64 {
        // The upper 53 bits, the precision of a 64-bit float.
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `share`.
    pub(super) fn happens(&mut self, share: Share) -> bool {
        self.even() < share.as_fraction()
    }

    /// A random deviation from the propagation delay.
    pub(super) fn jitter(&mut self, jitter: Jitter) -> Span {
        let (factor, span) = match jitter {
            Jitter::None => return Span::ZERO,
            Jitter::Uniform(most) => (2.0 * self.even() - 1.0, most),
            Jitter::Normal(deviation) => (StandardNormal.sample(&mut self.0), deviation),
            Jitter::HalfNormal(deviation) => {
                let sample: f64 = StandardNormal.sample(&mut self.0);
                (sample.abs().min(MOST_DEVIATIONS), deviation)
            }
        };
        Span::from_nanos(libm::round(factor * span.as_nanos() as f64) as i64)
    }
}

/// Decides for each packet whether it is lost.
#[derive(Clone, Debug)]
pub(super) struct LossProcess {
    loss: Schedule<Loss>,
    bad: bool,
    chance: Chance,
}

impl LossProcess {
    pub(super) fn new(loss: Schedule<Loss>, chance: Chance) -> Self {
        Self { loss, bad: false, chance }
    }

    /// Whether the next packet, which arrives `elapsed` after the origin, is lost.
    pub(super) fn next(&mut self, elapsed: Span) -> bool {
        match self.loss.at(elapsed) {
            Loss::None => false,
            Loss::Random(share) => self.chance.happens(share),
            Loss::Burst(model) => {
                let (loss, change) =
                    if self.bad { (model.loss_in_bad, model.to_good) } else { (model.loss_in_good, model.to_bad) };
                let lost = self.chance.happens(loss);
                self.bad ^= self.chance.happens(change);
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(fraction: f64) -> Share {
        Share::from_fraction(fraction).expect("a share")
    }

    const PACKETS: usize = 1_000_000;

    fn losses(loss: Loss) -> Vec<bool> {
        let mut process = LossProcess::new(loss.into(), Chance::new(1, 0));
        (0..PACKETS).map(|_| process.next(Span::ZERO)).collect()
    }

    fn share_of(losses: &[bool]) -> f64 {
        losses.iter().filter(|lost| **lost).count() as f64 / losses.len() as f64
    }

    /// The mean number of consecutive losses.
    fn mean_burst(losses: &[bool]) -> f64 {
        let begins = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count() + usize::from(losses[0]);
        losses.iter().filter(|lost| **lost).count() as f64 / begins as f64
    }

    #[test]
    fn random_loss_has_its_share_and_no_memory() {
        let losses = losses(Loss::Random(share(0.02)));
        // Standard error 0.000 14; the mean run of a memoryless loss is 1 / (1 - 0.02).
        assert!((share_of(&losses) - 0.02).abs() < 0.0006, "{}", share_of(&losses));
        assert!((mean_burst(&losses) - 1.0 / 0.98).abs() < 0.005, "{}", mean_burst(&losses));
    }

    #[test]
    fn bursts_have_the_stationary_share_and_the_mean_length_of_the_model() {
        let losses = losses(Loss::Burst(GilbertElliott::bursts(share(0.005), share(0.25))));
        // p / (p + r) and 1 / r (Gilbert 1960); the standard errors are about 0.000 35 and 0.05.
        assert!((share_of(&losses) - 0.005 / 0.255).abs() < 0.0014, "{}", share_of(&losses));
        assert!((mean_burst(&losses) - 4.0).abs() < 0.2, "{}", mean_burst(&losses));
    }

    #[test]
    fn both_states_may_lose_a_part() {
        let model = GilbertElliott {
            to_bad: share(0.01),
            to_good: share(0.1),
            loss_in_good: share(0.001),
            loss_in_bad: share(0.5),
        };
        // Elliott 1963: the mean of both states' losses, weighted by the time in each.
        let expected = 0.001 * (0.1 / 0.11) + 0.5 * (0.01 / 0.11);
        assert!((share_of(&losses(Loss::Burst(model))) - expected).abs() < 0.002);
        assert!((Loss::Burst(model).mean_share().as_fraction() - expected).abs() < 1e-12);
        let never = GilbertElliott { to_bad: Share::NONE, to_good: Share::NONE, ..model };
        assert_eq!(Loss::Burst(never).mean_share(), share(0.001));
    }

    #[test]
    fn bursts_and_jitter_read_as_people_write_them() {
        let bursts = GilbertElliott::bursts(share(0.01), share(0.25));
        assert_eq!(("1% 25%".parse(), "1 % 25 %".parse()), (Ok(bursts), Ok(bursts)));
        let full = GilbertElliott { loss_in_good: share(0.001), loss_in_bad: share(0.8), ..bursts };
        assert_eq!("1% 25% 0.1% 80%".parse(), Ok(full));
        for wrong in ["", "1%", "1% 2% 3%", "0.01 0.25", "1% 2% 3% 4% 5%", "1% 250%"] {
            assert!(wrong.parse::<GilbertElliott>().is_err(), "{wrong}");
        }
        assert_eq!("2ms".parse(), Ok(Jitter::Uniform(Span::from_millis(2))));
        assert_eq!("2 ms normal".parse(), Ok(Jitter::Normal(Span::from_millis(2))));
        assert_eq!("5 ms half-normal".parse(), Ok(Jitter::HalfNormal(Span::from_millis(5))));
        assert!("normal".parse::<Jitter>().is_err() && "2".parse::<Jitter>().is_err());
    }

    #[test]
    fn jitter_has_the_moments_of_its_distribution() {
        let moments = |jitter| {
            let mut chance = Chance::new(3, 0);
            let samples: equipoise::measure::Moments =
                (0..PACKETS).map(|_| chance.jitter(jitter).as_millis_f64()).collect();
            (samples.mean().expect("samples"), samples.variance().expect("samples"))
        };
        // Uniform within ±2: variance (2 · 2)² / 12. Standard errors below 0.003.
        let (mean, variance) = moments(Jitter::Uniform(Span::from_millis(2)));
        assert!(mean.abs() < 0.01 && (variance - 16.0 / 12.0).abs() < 0.01, "{mean} {variance}");
        let (mean, variance) = moments(Jitter::Normal(Span::from_millis(2)));
        assert!(mean.abs() < 0.01 && (variance - 4.0).abs() < 0.03, "{mean} {variance}");
        // For min(|Z|, 3), with the normal distribution's density φ and tail Q: the mean is 2 (φ(0) - φ(3)) + 6 Q(3),
        // and the second moment is 1 - 2 Q(3) - 6 φ(3) + 18 Q(3).
        let (mean, variance) = moments(Jitter::HalfNormal(Span::from_millis(5)));
        assert!((mean - 3.9856).abs() < 0.012 && (variance + mean * mean - 24.875).abs() < 0.1, "{mean} {variance}");
        let mut chance = Chance::new(4, 0);
        let drawn: Vec<_> = (0..PACKETS).map(|_| chance.jitter(Jitter::HalfNormal(Span::from_millis(5)))).collect();
        let ends = (drawn.iter().min().copied(), drawn.iter().max().copied());
        assert!(ends.0 >= Some(Span::ZERO) && ends.1 == Some(Span::from_millis(15)), "{ends:?}");
    }
}
