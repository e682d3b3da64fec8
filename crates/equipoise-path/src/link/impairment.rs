//! Random impairments of packets on a path: loss, jitter, reordering.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::FromStr;

use rand_core::Rng as _;
use rand_distr::{Distribution as _, StandardNormal};
use rand_pcg::Pcg64Mcg;

use equipoise::random::generator;
use equipoise::units::{Schedule, Share, Span, UnitError};

/// Which packets are lost at random.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost independently, with the same probability.
    Random(Share),
    /// Packets are lost in bursts.
    Burst(GilbertElliott),
}

impl Loss {
    /// The share of packets that are lost on average over a long time.
    ///
    /// For loss in bursts: the mean of the loss probabilities of both states, weighted with the share of packets in
    /// each state (Elliott 1963). With p = `to_bad` and r = `to_good`, the share is `r / (p + r)` in the good state and
    /// `p / (p + r)` in the bad state. If p and r are zero, a path stays in its first state, the good state. The result
    /// is then the loss probability of this state.
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

/// Loss in bursts: a model with a good and a bad state. Each state has its own loss probability. After every packet,
/// the state changes with a probability that depends on the state.
///
/// Source: Gilbert 1960, with the loss in the good state from Elliott 1963. On average over a long time, a share `p /
/// (p + r)` of the packets is in the bad state, and the bad state lasts for `1 / r` packets. A path starts in the good
/// state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// p: probability to enter the bad state after a packet in the good state.
    pub to_bad: Share,
    /// r: probability to return to the good state after a packet in the bad state.
    pub to_good: Share,
    /// Probability that a packet in the good state is lost; 0 in Gilbert's model.
    pub loss_in_good: Share,
    /// Probability that a packet in the bad state is lost. With 1, all packets of a burst are lost.
    pub loss_in_bad: Share,
}

impl GilbertElliott {
    /// Loss in bursts: all packets in the bad state are lost, and none in the good state.
    pub const fn bursts(to_bad: Share, to_good: Share) -> Self {
        Self { to_bad, to_good, loss_in_good: Share::NONE, loss_in_bad: Share::ALL }
    }
}

/// Parses two or four shares. Two shares such as `"1% 25%"` are p and r; all packets in a burst are lost. Four shares
/// such as `"1% 25% 0.1% 80%"` are p, r, and the loss probabilities in the good state and in the bad state.
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
/// If a packet would overtake the previous packet, it arrives at the same time instead. Therefore jitter alone does not
/// reorder packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// No variation.
    #[default]
    None,
    /// Uniformly distributed, from minus to plus this value.
    Uniform(Span),
    /// Normally distributed, with this standard deviation. Total delays below 1 ns become 1 ns.
    Normal(Span),
    /// Jitter that only lengthens delays: the absolute value of normal jitter with this standard deviation, limited to
    /// three standard deviations. The time between two arrivals is at least the time that the bottleneck takes to
    /// transmit the first of the two packets (RFC 8868, Sec. 4.5.2 and 4.5.3).
    HalfNormal(Span),
}

/// Parses `"2 ms"` (uniform, from -2 ms to +2 ms), `"2 ms normal"` or `"5 ms half-normal"`.
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

/// The maximum of half-normal jitter, in standard deviations (`N_STD`; RFC 8868, Sec. 4.5.3).
pub(super) const MOST_DEVIATIONS: f64 = 3.0;

/// Moves a random share of the packets out of order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Probability that a packet is reordered.
    pub share: Share,
    /// How much later a reordered packet arrives. A negative value means that the packet arrives earlier, by at most
    /// the propagation delay.
    pub by: Span,
}

/// A stream of random numbers for one purpose, such as loss.
///
/// Every purpose has its own stream. Therefore, whether the n-th packet is lost does not depend on other impairments.
#[derive(Clone, Debug)]
pub(super) struct Chance(Pcg64Mcg);

impl Chance {
    /// Creates a generator of random numbers from `seed`. Generators with different numbers `stream` are independent.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Self(generator(seed, stream.wrapping_mul(2)))
    }

    /// A random 64-bit number.
    pub(super) fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A random number with uniform distribution, from 0 up to, but not including, 1.
    pub(super) fn even(&mut self) -> f64 {
        // A 64-bit float has a precision of 53 bits, so only the upper 53 bits are used.
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true with probability `share`.
    pub(super) fn happens(&mut self, share: Share) -> bool {
        self.even() < share.as_fraction()
    }

    /// Draws a random deviation from the propagation delay.
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

    /// Whether the next packet is lost. The packet arrives `elapsed` after the start of the path's schedules.
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

    /// The mean length of a run of consecutive losses, in packets.
    fn mean_burst(losses: &[bool]) -> f64 {
        let begins = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count() + usize::from(losses[0]);
        losses.iter().filter(|lost| **lost).count() as f64 / begins as f64
    }

    #[test]
    fn random_loss_has_its_share_and_no_memory() {
        let losses = losses(Loss::Random(share(0.02)));
        // The standard error of the share is 0.000 14. If losses are independent, the mean length of a run of losses is
        // 1 / (1 - 0.02).
        assert!((share_of(&losses) - 0.02).abs() < 0.0006, "{}", share_of(&losses));
        assert!((mean_burst(&losses) - 1.0 / 0.98).abs() < 0.005, "{}", mean_burst(&losses));
    }

    #[test]
    fn bursts_have_the_stationary_share_and_the_mean_length_of_the_model() {
        let losses = losses(Loss::Burst(GilbertElliott::bursts(share(0.005), share(0.25))));
        // With p = 0.005 and r = 0.25, the expected share is p / (p + r) and the expected burst length 1 / r (Gilbert
        // 1960). The standard errors are about 0.000 35 and 0.05.
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
        // Elliott 1963: the mean of the loss probabilities of both states, weighted with the share of packets in each
        // state.
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
        // Uniform from -2 to +2 ms: the variance is (2 · 2)² / 12. The standard errors are below 0.003.
        let (mean, variance) = moments(Jitter::Uniform(Span::from_millis(2)));
        assert!(mean.abs() < 0.01 && (variance - 16.0 / 12.0).abs() < 0.01, "{mean} {variance}");
        let (mean, variance) = moments(Jitter::Normal(Span::from_millis(2)));
        assert!(mean.abs() < 0.01 && (variance - 4.0).abs() < 0.03, "{mean} {variance}");
        // The jitter divided by 5 ms is min(|Z|, 3), where Z is standard normal with density φ and tail probability Q.
        // The mean is 2 (φ(0) - φ(3)) + 6 Q(3), and the second moment is 1 - 2 Q(3) - 6 φ(3) + 18 Q(3).
        let (mean, variance) = moments(Jitter::HalfNormal(Span::from_millis(5)));
        assert!((mean - 3.9856).abs() < 0.012 && (variance + mean * mean - 24.875).abs() < 0.1, "{mean} {variance}");
        let mut chance = Chance::new(4, 0);
        let drawn: Vec<_> = (0..PACKETS).map(|_| chance.jitter(Jitter::HalfNormal(Span::from_millis(5)))).collect();
        let ends = (drawn.iter().min().copied(), drawn.iter().max().copied());
        assert!(ends.0 >= Some(Span::ZERO) && ends.1 == Some(Span::from_millis(15)), "{ends:?}");
    }
}
