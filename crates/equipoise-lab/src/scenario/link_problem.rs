use equipoise::units::Span;
use equipoise_path::link::PipeError;
use thiserror::Error;

/// What is wrong with a link of a scenario.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LinkProblem {
    /// The configuration of the link is invalid.
    #[error(transparent)]
    Pipe(#[from] PipeError),
    /// A link lacks its delay.
    #[error("a link needs a `delay`, such as \"10 ms\"")]
    NoDelay,
    /// A link has no capacity, or more than one.
    #[error("a link has one of `rate`, a rate or \"unlimited\", `rate_trace` and `rate_csv`, files")]
    WhatRate,
    /// Only a capacity given as a rate can have steps.
    #[error(
        "steps can change the delay and the loss, but not the rate, of a link that is unlimited, follows a file or has a `rate_burst`"
    )]
    StepsOfRate,
    /// A step changes nothing.
    #[error("a step of a link needs a `rate`, a `delay` or a `loss`")]
    StepOfNothing,
    /// A half-duplex link cannot have a different reverse direction.
    #[error("both directions of a half-duplex link are one; it has no `back`")]
    HalfDuplexBack,
    /// Two keys specify the same property.
    #[error("a link has either {keys}")]
    EitherOf {
        /// Both keys.
        keys: &'static str,
    },
    /// A key needs another key.
    #[error("has a meaning only beside `{key}`")]
    OnlyWith {
        /// The other key.
        key: &'static str,
    },
    /// Only a link with a `rate` can have bursts.
    #[error("bursts are of a `rate`, and not of what is unlimited or follows a file")]
    BurstOfNoRate,
    /// A file does not contain a capacity.
    #[error("{why}")]
    Capacity {
        /// The reason.
        why: String,
    },
    /// There is no such queue.
    #[error("an `aqm` needs a `name`: codel, fq_codel, pie or dualpi2")]
    UnknownAqm,
    /// The queue does not have this parameter.
    #[error("this queue has {known}")]
    NotOfThisAqm {
        /// Its parameters.
        known: String,
    },
    /// CoDel would never act, because its target is above its interval.
    #[error("the target must not be above the interval, {interval}")]
    TargetAboveInterval {
        /// The interval.
        interval: Span,
    },
    /// The value is not a positive number.
    #[error("must be a plain number above zero")]
    NotACount,
}
