//! TPBA: the rate that TCP would have, found by being TCP for a while.
//!
//! A flow of media alternates between two transports. In the *probing period* its data go over TCP, and the movement of
//! TCP's acknowledgements says the rate; once that is steady, the *running period* sends over RTP at that rate, which may
//! fall and never rises. [`Tpba`] is the alternation as a pure state machine; [`Running`] the law of the running period.
//!
//! Source: Tobe 1999, Sec. 4, with the improvements that its Sec. 4 and 7 name as options.
//!
//! | symbol | name | unit |
//! | --- | --- | --- |
//! | `T_TCP` | [`ProbeInterval`] | s |
//! | ε, z | [`Tolerance`] | bit/s, share |
//! | `T_running` | [`TpbaConfig::running`] | s |
//! | `r[i]` | [`Tpba::last_rate`] | bit/s |
//! | `r_s`, `r_f` | rate at the beginning and at the end of a running period | bit/s |
//!
//! Readings: rates are of IP packets, as everywhere in this crate. TCP's last three rates are compared, of one probing
//! period only, so that a period has three intervals at the least. The formula of the window as printed mixes bytes and
//! segments; it is read as the old window scaled by `r_f / r_s`, in whole segments, one at least.

mod running;

use thiserror::Error;

pub use running::{Running, RunningConfig};

use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// How a TPBA flow probes and when it does so again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TpbaConfig {
    /// How long TCP's acknowledgements are counted for one rate.
    pub interval: ProbeInterval,
    /// How near to each other three rates have to be.
    pub tolerance: Tolerance,
    /// Length of the running period.
    pub running: Span,
    /// Ends the running period before its time; `None` never to.
    pub early_return: Option<EarlyReturn>,
}

/// How long TCP's acknowledgements are counted for one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeInterval {
    /// So long: `T_TCP`.
    Fixed(Span),
    /// From one reduction of TCP's window to the next, which is a period of its sawtooth (Tobe 1999, Sec. 7).
    BetweenReductions {
        /// A reduction sooner than this belongs to the one before.
        at_least: Span,
        /// Without a reduction for so long the interval ends all the same.
        at_most: Span,
    },
}

/// How near to each other three rates have to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Nearer than ε.
    Absolute(Rate),
    /// Nearer than this share of the last one: z (Tobe 1999, Sec. 7).
    Share(f64),
}

/// When a running period is given up: the path has changed.
///
/// Reading: what counts is the rate that RTP is allowed, so that this holds for any controller. A report that leaves the rate
/// as it is neither counts as a reduction nor ends a row of them. Halving after missing reports is a reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyReturn {
    /// This many changes of the rate in a row lower it,
    pub reductions: u32,
    /// each by this share of it or more.
    pub share: f64,
}

impl TpbaConfig {
    /// The paper's values (Tobe 1999, Table 2 and Sec. 6.1): 1 s, 30 kbit/s, 10 s.
    pub const PAPER: Self = Self {
        interval: ProbeInterval::Fixed(Span::from_secs(1)),
        tolerance: Tolerance::Absolute(Rate::from_bps(30_000)),
        running: Span::from_secs(10),
        early_return: None,
    };
}

impl Tolerance {
    /// The paper's share: 5 % (Tobe 1999, Sec. 7).
    pub const PROPORTIONAL: Self = Self::Share(0.05);

    /// Whether `other` is near enough to `rate`.
    fn holds(self, other: Rate, rate: Rate) -> bool {
        let most_bps = match self {
            Self::Absolute(rate) => rate.as_bps_f64(),
            Self::Share(share) => share * rate.as_bps_f64(),
        };
        (other.as_bps_f64() - rate.as_bps_f64()).abs() < most_bps
    }
}

impl EarlyReturn {
    /// Ours: two changes in a row that halve the rate together leave little to run on with.
    pub const STANDARD: Self = Self { reductions: 2, share: 0.25 };
}

/// Why a TPBA flow cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TpbaError {
    /// The interval holds no acknowledgement.
    #[error(
        "the probing interval is {found}; it must be {SHORTEST_INTERVAL} or more, and its least not above its most"
    )]
    Interval {
        /// What was asked for.
        found: Span,
    },
    /// No two rates are ever that near.
    #[error("the tolerance must be above zero, and as a share at most 1")]
    Tolerance,
    /// The flow would never run.
    #[error("the running period is {found}; it must be above zero")]
    Running {
        /// What was asked for.
        found: Span,
    },
    /// Every rate, or none, would be a large reduction.
    #[error("an early return needs one reduction at least, each by a share above 0 and below 1")]
    EarlyReturn,
}

/// Ours: shorter than the round trip of any path that is worth probing.
const SHORTEST_INTERVAL: Span = Span::from_millis(1);

/// Which transport carries the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// TCP, whose rate is measured.
    Probing,
    /// RTP at that rate or below.
    Running,
}

/// The two periods of a TPBA flow as a pure state machine.
///
/// The session tells it what TCP has had acknowledged and what rate RTP runs at, and asks whether the period may
/// [end](Self::is_over). It then waits for the end of an ADU and says that the other period [begins](Self::begin_running).
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

/// What a probing period has seen.
#[derive(Clone, Copy, Debug, Default)]
struct Probing {
    /// Where the present interval began; `None` before the first look.
    since: Option<Mark>,
    /// r[i], r[i-1], r[i-2].
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
    /// `r_s`.
    start_rate: Rate,
    /// What RTP is allowed; `None` before its controller has said so.
    allowed: Option<Rate>,
    /// `cwnd_old`.
    window: Size,
    /// Large reductions in a row, as [`EarlyReturn`] counts them.
    reductions: u32,
}

/// What TCP has come to, at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What was acknowledged so far (`snd.una`), in bytes of IP packets.
    pub acknowledged: Size,
    /// How often the congestion window was reduced so far.
    pub reductions: u64,
}

impl Run {
    /// `r_f`, as far as it has come.
    const fn rate(&self) -> Rate {
        match self.allowed {
            Some(rate) => rate,
            None => self.start_rate,
        }
    }
}

impl Tpba {
    /// A flow that begins with probing.
    ///
    /// # Errors
    /// [`TpbaError`] for a configuration with which it would never leave a period, or never stay in it.
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

    /// Which transport carries the data.
    pub const fn period(&self) -> Period {
        match self.state {
            State::Probing(_) => Period::Probing,
            State::Running(_) => Period::Running,
        }
    }

    /// The rate that was found last in this period: of TCP, or of RTP; `None` before there is one.
    pub const fn last_rate(&self) -> Option<Rate> {
        match self.state {
            State::Probing(Probing { rates: [last, ..], .. }) => last,
            State::Running(run) => Some(run.rate()),
        }
    }

    /// When to look at TCP next, or when the running period is over; `None` before the first look.
    pub fn wake(&self) -> Option<Instant<SenderClock>> {
        match self.state {
            State::Probing(Probing { since, .. }) => since.map(|since| since.at + self.config.interval.bounds().1),
            State::Running(run) => Some(run.began + self.config.running),
        }
    }

    /// Looks at TCP. Gives the rate of the interval, where one ends now.
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

    /// RTP is allowed this rate now, which may be the same as before. The first of a running period is none of its changes.
    pub fn on_decided(&mut self, rate: Rate) {
        let State::Running(run) = &mut self.state else { return };
        let before = run.allowed.replace(rate).unwrap_or(rate);
        let Some(early) = self.config.early_return.filter(|_| rate != before) else { return };
        let is_large = rate.as_bps_f64() <= (1.0 - early.share) * before.as_bps_f64();
        run.reductions = if is_large { run.reductions.saturating_add(1) } else { 0 };
    }

    /// Whether the period may end, at the next end of an ADU.
    pub fn is_over(&self, now: Instant<SenderClock>) -> bool {
        match &self.state {
            State::Probing(probing) => self.settled(probing).is_some(),
            State::Running(run) => {
                let given_up = self.config.early_return.is_some_and(|early| run.reductions >= early.reductions);
                given_up || now - run.began >= self.config.running
            }
        }
    }

    /// `r_s`, once three rates in a row are near enough to each other. A flow at rest has no rate to run at.
    fn settled(&self, probing: &Probing) -> Option<Rate> {
        let [Some(last), Some(before), Some(first)] = probing.rates else { return None };
        let near = |other| self.config.tolerance.holds(other, last);
        (last > Rate::ZERO && near(before) && near(first)).then_some(last)
    }

    /// The running period begins, TCP's window being `window` (`cwnd_old`). Gives the rate that it begins with, `r_s`:
    /// `None`, and nothing changes, where the probing period is not [over](Self::is_over).
    pub fn begin_running(&mut self, now: Instant<SenderClock>, window: Size) -> Option<Rate> {
        let State::Probing(probing) = &self.state else { return None };
        let rate = self.settled(probing)?;
        self.state = State::Running(Run { began: now, start_rate: rate, allowed: None, window, reductions: 0 });
        Some(rate)
    }

    /// The probing period begins, at `now`. Gives the window that TCP is to begin with, for segments of `segment`;
    /// `None` where it is one already.
    pub fn begin_probing(&mut self, now: Instant<SenderClock>, progress: Progress, segment: Size) -> Option<Size> {
        let State::Running(run) = self.state else { return None };
        let since = Mark { at: now, acknowledged: progress.acknowledged, reductions: progress.reductions };
        self.state = State::Probing(Probing { since: Some(since), rates: [None; 3] });
        Some(window_after(run.window, run.rate(), run.start_rate, segment))
    }
}

impl ProbeInterval {
    /// Within which a look may end the interval.
    const fn bounds(self) -> (Span, Span) {
        match self {
            Self::Fixed(interval) => (interval, interval),
            Self::BetweenReductions { at_least, at_most } => (at_least, at_most),
        }
    }
}

/// The window that TCP begins its next probing period with, in bytes.
///
/// Source: Tobe 1999, Sec. 4: `cwnd_new = max(⌈cwnd_old r_f / (t_maxseg r_s)⌉, 1) t_maxseg`.
/// Never fails: `r_f` above `r_s` counts as `r_s`; a segment of no bytes as one byte; no `r_s` gives one segment.
pub fn window_after(old: Size, final_rate: Rate, start_rate: Rate, segment: Size) -> Size {
    let segment = u128::from(segment.as_bytes().max(1));
    let (final_bps, start_bps) = (u128::from(final_rate.min(start_rate).as_bps()), u128::from(start_rate.as_bps()));
    let whole = (u128::from(old.as_bytes()) * final_bps).div_ceil((segment * start_bps).max(1));
    Size::from_bytes(u64::try_from(whole.max(1) * segment).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
