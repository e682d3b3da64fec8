//! TCP-rate-probing-based adaptation (TPBA): measures the rate that TCP reaches, by sending the media over TCP for a
//! while.
//!
//! A media flow alternates between two transports. In the *probing period* its data is sent over TCP, and the rate is
//! computed from the progress of TCP's acknowledgements. Once that rate is steady, the *running period* begins: the
//! data is sent over RTP at that rate, which may decrease but never increases. [`Tpba`] is the state machine that
//! alternates between the periods; [`Running`] is the control law of the running period.
//!
//! Source: Tobe 1999, Sec. 4. The improvements that the paper describes in Sec. 4 and 7 are options.
//!
//! | symbol | name | unit |
//! | --- | --- | --- |
//! | `T_TCP` | [`ProbeInterval`] | s |
//! | ε, z | [`Tolerance`] | bit/s, share |
//! | `T_running` | [`TpbaConfig::running`] | s |
//! | `r[i]` | [`Tpba::last_rate`] | bit/s |
//! | `r_s`, `r_f` | rate at the beginning and at the end of a running period | bit/s |
//!
//! Our reading: all rates count whole IP packets, as everywhere in this crate. TCP's rate is measured once per probing
//! interval. TCP's rate is steady if the two previous rates of the same probing period are close to the last rate.
//! Therefore a probing period has at least three probing intervals. The windows in the paper's formula for TCP's
//! congestion window ([`window_after`]) are in bytes.

mod running;

use thiserror::Error;

pub use running::{Running, RunningConfig};

use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// Parameters of the probing and running periods of a TPBA flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TpbaConfig {
    /// Interval over which TCP's acknowledgements are counted for one rate.
    pub interval: ProbeInterval,
    /// How close the two previous rates must be to the last rate, so that the three rates count as steady.
    pub tolerance: Tolerance,
    /// Length of the running period.
    pub running: Span,
    /// Condition to end the running period early; `None` if there is no such condition.
    pub early_return: Option<EarlyReturn>,
}

/// Interval over which TCP's acknowledgements are counted for one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeInterval {
    /// A fixed time: `T_TCP`.
    Fixed(Span),
    /// From one reduction of TCP's window to the next: one period of the window's sawtooth (Tobe 1999, Sec. 7).
    BetweenReductions {
        /// Minimum length of the interval. If the window is reduced earlier, the interval ends when it has this length.
        at_least: Span,
        /// The interval ends after this time even if TCP's window was not reduced.
        at_most: Span,
    },
}

/// How close the two previous rates must be to the last rate, so that the three rates count as steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Each of the two previous rates differs from the last rate by less than this rate: ε.
    Absolute(Rate),
    /// Each of the two previous rates differs from the last rate by less than this share of the last rate: z (Tobe
    /// 1999, Sec. 7).
    Share(f64),
}

/// The condition under which a running period, in which RTP carries the data, ends early: several reductions of the
/// rate show that the path has changed.
///
/// Our reading: the condition uses the rate that RTP is allowed to send, so it works with any controller. A report that
/// leaves the rate unchanged does not interrupt a series of reductions. If the rate is halved because reports are
/// missing, this counts as a reduction, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyReturn {
    /// The running period, in which RTP sends, ends after this number of consecutive reductions of the rate.
    pub reductions: u32,
    /// A reduction counts towards `reductions` only if it is at least this share of the previous rate. A smaller
    /// reduction sets the count to zero.
    pub share: f64,
}

impl TpbaConfig {
    /// The paper's values (Tobe 1999, Table 2 and Sec. 6.1): interval 1 s, tolerance 30 kbit/s, running period 10 s.
    pub const PAPER: Self = Self {
        interval: ProbeInterval::Fixed(Span::from_secs(1)),
        tolerance: Tolerance::Absolute(Rate::from_bps(30_000)),
        running: Span::from_secs(10),
        early_return: None,
    };
}

impl Tolerance {
    /// The paper's relative tolerance: 5 % of the last rate (Tobe 1999, Sec. 7).
    pub const PROPORTIONAL: Self = Self::Share(0.05);

    /// Whether an earlier rate `other` differs from the last measured rate, `rate`, by less than this tolerance.
    fn holds(self, other: Rate, rate: Rate) -> bool {
        let most_bps = match self {
            Self::Absolute(rate) => rate.as_bps_f64(),
            Self::Share(share) => share * rate.as_bps_f64(),
        };
        (other.as_bps_f64() - rate.as_bps_f64()).abs() < most_bps
    }
}

impl EarlyReturn {
    /// The usual condition: a running period ends early after two consecutive reductions of the rate by a quarter or
    /// more. Our choice: at most 56 % of the rate is then left, which is too little to continue the period.
    pub const STANDARD: Self = Self { reductions: 2, share: 0.25 };
}

/// The configuration of a TPBA flow is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TpbaError {
    /// The interval is too short to contain an acknowledgement, or its minimum is above its maximum.
    #[error(
        "the probing interval is {found}; it must be {SHORTEST_INTERVAL} or more, and its minimum not above its maximum"
    )]
    Interval {
        /// The given interval.
        found: Span,
    },
    /// The tolerance is not valid. With this tolerance, no rates would count as steady, or very different rates would
    /// count as steady.
    #[error("the tolerance must be above zero, and as a share at most 1")]
    Tolerance,
    /// The running period would have no length.
    #[error("the running period is {found}; it must be above zero")]
    Running {
        /// The given length.
        found: Span,
    },
    /// The condition that ends a running period early is useless. It would be met at once, it would be met by
    /// reductions of any size, or it could never be met.
    #[error("an early return needs at least one reduction, each by a share above 0 and below 1")]
    EarlyReturn,
}

/// The shortest probing interval that is accepted. Our choice: shorter than the round-trip time of any path that is
/// worth probing.
const SHORTEST_INTERVAL: Span = Span::from_millis(1);

/// The period of a TPBA flow, which determines the transport that carries the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// TCP, whose rate is measured.
    Probing,
    /// RTP, at the measured rate or below.
    Running,
}

/// A pure state machine that alternates between the probing period and the running period of a TPBA flow.
///
/// The session reports how much data TCP has acknowledged, and which rate RTP is allowed to use. The session queries
/// whether the period may [end](Self::is_over). If the period may end, the session waits for the end of an ADU, and
/// reports that the other period [begins](Self::begin_running).
#[derive(Clone, Debug)]
pub struct Tpba {
    config: TpbaConfig,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Probing(Probing),
    Running(Run),
}

/// State of a probing period.
#[derive(Clone, Copy, Debug, Default)]
struct Probing {
    /// Start of the current measurement of TCP's rate; `None` before the first call of [`Tpba::on_progress`].
    since: Option<Mark>,
    /// The last three rates, newest first: `r[i]`, `r[i-1]`, `r[i-2]`.
    rates: [Option<Rate>; 3],
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant<SenderClock>,
    acknowledged: Size,
    reductions: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    began: Instant<SenderClock>,
    /// `r_s`: the rate at the beginning of the running period.
    start_rate: Rate,
    /// The rate that RTP is allowed; `None` until its controller has decided a rate.
    allowed: Option<Rate>,
    /// TCP's window before this running period: `cwnd_old`.
    window: Size,
    /// Consecutive large reductions, counted as in [`EarlyReturn`].
    reductions: u32,
}

/// State of TCP's acknowledgements and congestion window at a given time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Data acknowledged so far (`snd.una`), in bytes of IP packets.
    pub acknowledged: Size,
    /// Number of reductions of the congestion window so far.
    pub reductions: u64,
}

impl Run {
    /// Returns `r_f`, the rate that RTP is allowed now.
    const fn rate(&self) -> Rate {
        match self.allowed {
            Some(rate) => rate,
            None => self.start_rate,
        }
    }
}

impl Tpba {
    /// Creates a flow that begins with probing.
    ///
    /// # Errors
    /// [`TpbaError`] if a parameter is outside its valid range.
    pub fn new(config: TpbaConfig) -> Result<Self, TpbaError> {
        let (least, most) = config.interval.bounds();
        if least < SHORTEST_INTERVAL || most < least {
            return Err(TpbaError::Interval { found: least });
        }
        let near = match config.tolerance {
            Tolerance::Absolute(rate) => rate > Rate::ZERO,
            Tolerance::Share(share) => share > 0.0 && share <= 1.0,
        };
        if !near {
            return Err(TpbaError::Tolerance);
        }
        if config.running <= Span::ZERO {
            return Err(TpbaError::Running { found: config.running });
        }
        if config.early_return.is_some_and(|early| early.reductions == 0 || !(early.share > 0.0 && early.share < 1.0)) {
            return Err(TpbaError::EarlyReturn);
        }
        Ok(Self { config, state: State::Probing(Probing::default()) })
    }

    /// Returns the present period of the flow.
    pub const fn period(&self) -> Period {
        match self.state {
            State::Probing(_) => Period::Probing,
            State::Running(_) => Period::Running,
        }
    }

    /// Returns the last rate of the current period, of TCP or of RTP; `None` before the first rate.
    pub const fn last_rate(&self) -> Option<Rate> {
        match self.state {
            State::Probing(Probing { rates: [last, ..], .. }) => last,
            State::Running(run) => Some(run.rate()),
        }
    }

    /// In a probing period, returns when to check TCP next; `None` before the first check. In a running period, returns
    /// when the period ends.
    pub fn wake(&self) -> Option<Instant<SenderClock>> {
        match self.state {
            State::Probing(Probing { since, .. }) => since.map(|since| since.at + self.config.interval.bounds().1),
            State::Running(run) => Some(run.began + self.config.running),
        }
    }

    /// Updates TCP's progress. If a probing interval ends now, returns TCP's rate in this interval.
    pub fn on_progress(&mut self, now: Instant<SenderClock>, progress: Progress) -> Option<Rate> {
        let State::Probing(probing) = &mut self.state else { return None };
        let mark = Mark { at: now, acknowledged: progress.acknowledged, reductions: progress.reductions };
        let Some(since) = probing.since else {
            probing.since = Some(mark);
            return None;
        };
        let (elapsed, (least, most)) = (now - since.at, self.config.interval.bounds());
        let reduced = progress.reductions > since.reductions && elapsed >= least;
        if elapsed < most && !reduced {
            return None;
        }
        let moved = (progress.acknowledged - since.acknowledged).as_bits() as f64;
        let rate = Rate::from_bps_f64(moved / elapsed.as_secs_f64()).unwrap_or(Rate::ZERO);
        let [last, before, _] = probing.rates;
        (probing.since, probing.rates) = (Some(mark), [Some(rate), last, before]);
        Some(rate)
    }

    /// Updates the rate that RTP is allowed. `rate` may equal the previous rate. The first rate of a running period is
    /// never a reduction.
    pub fn on_decided(&mut self, rate: Rate) {
        let State::Running(run) = &mut self.state else { return };
        let before = run.allowed.replace(rate).unwrap_or(rate);
        let Some(early) = self.config.early_return.filter(|_| rate != before) else { return };
        let is_large = rate.as_bps_f64() <= (1.0 - early.share) * before.as_bps_f64();
        run.reductions = if is_large { run.reductions.saturating_add(1) } else { 0 };
    }

    /// Whether the period may end at the next end of an ADU.
    pub fn is_over(&self, now: Instant<SenderClock>) -> bool {
        match &self.state {
            State::Probing(probing) => self.settled(probing).is_some(),
            State::Running(run) => {
                let given_up = self.config.early_return.is_some_and(|early| run.reductions >= early.reductions);
                given_up || now - run.began >= self.config.running
            }
        }
    }

    /// Returns `r_s`, the initial rate of the running period: the last measured rate, if the two rates before it are
    /// close enough to it. A flow without data has rates of zero and no `r_s`.
    fn settled(&self, probing: &Probing) -> Option<Rate> {
        let [Some(last), Some(before), Some(first)] = probing.rates else { return None };
        let near = |other| self.config.tolerance.holds(other, last);
        (last > Rate::ZERO && near(before) && near(first)).then_some(last)
    }

    /// Begins the running period; `window` is TCP's present congestion window (`cwnd_old`). Returns the initial rate,
    /// `r_s`. If the probing period is not [over](Self::is_over), changes nothing and returns `None`.
    pub fn begin_running(&mut self, now: Instant<SenderClock>, window: Size) -> Option<Rate> {
        let State::Probing(probing) = &self.state else { return None };
        let rate = self.settled(probing)?;
        self.state = State::Running(Run { began: now, start_rate: rate, allowed: None, window, reductions: 0 });
        Some(rate)
    }

    /// Begins the probing period at `now`. Returns the congestion window with which TCP has to begin, for segments of
    /// `segment` bytes. If the present period is already a probing period, returns `None`.
    pub fn begin_probing(&mut self, now: Instant<SenderClock>, progress: Progress, segment: Size) -> Option<Size> {
        let State::Running(run) = self.state else { return None };
        let since = Mark { at: now, acknowledged: progress.acknowledged, reductions: progress.reductions };
        self.state = State::Probing(Probing { since: Some(since), rates: [None; 3] });
        Some(window_after(run.window, run.rate(), run.start_rate, segment))
    }
}

impl ProbeInterval {
    /// Returns the minimum and the maximum length of a probing interval.
    const fn bounds(self) -> (Span, Span) {
        match self {
            Self::Fixed(interval) => (interval, interval),
            Self::BetweenReductions { at_least, at_most } => (at_least, at_most),
        }
    }
}

/// Returns the congestion window, in bytes, with which TCP begins the probing period after a running period.
///
/// Source: Tobe 1999, Sec. 4: `cwnd_new = max(⌈cwnd_old r_f / (t_maxseg r_s)⌉, 1) t_maxseg`. The parameters are
/// `cwnd_old`, `r_f`, `r_s` and `t_maxseg`, in this order.
/// Never fails: `r_f` above `r_s` counts as `r_s`, and a segment of zero bytes counts as one byte. If `r_s` is zero,
/// returns one segment.
pub fn window_after(old: Size, final_rate: Rate, start_rate: Rate, segment: Size) -> Size {
    let segment = u128::from(segment.as_bytes().max(1));
    let (final_bps, start_bps) = (u128::from(final_rate.min(start_rate).as_bps()), u128::from(start_rate.as_bps()));
    let whole = (u128::from(old.as_bytes()) * final_bps).div_ceil((segment * start_bps).max(1));
    Size::from_bytes(u64::try_from(whole.max(1) * segment).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
