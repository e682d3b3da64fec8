use equipoise::units::Span;
use equipoise_path::link::PipeError;
use thiserror::Error;

/// What is wrong with a link of a scenario.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LinkProblem {
    /// No link can be like that.
    #[error(transparent)]
    Pipe(#[from] PipeError),
    /// A link does not say how long its packets are on the way.
    #[error("a link needs a `delay`, such as \"10 ms\"")]
    NoDelay,
    /// A link has no capacity, or two.
    #[error("a link has one of `rate`, a rate or \"unlimited\", `rate_trace` and `rate_csv`, files")]
    WhatRate,
    /// A capacity that is none of steps has steps.
    #[error(
        "steps can change the delay and the loss, but not the rate, of a link that is unlimited, follows a file or has a `rate_burst`"
    )]
    StepsOfRate,
    /// A step changes nothing.
    #[error("a step of a link needs a `rate`, a `delay` or a `loss`")]
    StepOfNothing,
    /// Both directions are one.
    #[error("both directions of a half-duplex link are one; it has no `back`")]
    HalfDuplexBack,
    /// Two keys say the same.
    #[error("a link has either {keys}")]
    EitherOf {
        /// Both.
        keys: &'static str,
    },
    /// A key needs another.
    #[error("has a meaning only beside `{key}`")]
    OnlyWith {
        /// The other.
        key: &'static str,
    },
    /// Bursts are of a rate.
    #[error("bursts are of a `rate`, and not of what is unlimited or follows a file")]
    BurstOfNoRate,
    /// A file gives no capacity.
    #[error("{why}")]
    Capacity {
        /// Why not.
        why: String,
    },
    /// There is no such queue.
    #[error("an `aqm` needs a `name`: codel, fq_codel, pie or dualpi2")]
    UnknownAqm,
    /// The queue has other parameters.
    #[error("this queue has {known}")]
    NotOfThisAqm {
        /// Its parameters.
        known: String,
    },
    /// CoDel would never act.
    #[error("the target must not be above the interval, {interval}")]
    TargetAboveInterval {
        /// The interval.
        interval: Span,
    },
    /// It is no number.
    #[error("must be a plain number above zero")]
    NotACount,
}
