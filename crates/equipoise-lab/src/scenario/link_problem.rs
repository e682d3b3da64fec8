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
    /// The link lacks its delay.
    #[error("a link needs a `delay`, such as \"10 ms\"")]
    NoDelay,
    /// The link has no capacity, or has more than one.
    #[error("a link has one of `rate`, a rate or \"unlimited\", `rate_trace` and `rate_csv`, files")]
    WhatRate,
    /// The steps of the link change the rate, but the link is unlimited, follows a file, or has a `rate_burst`.
    #[error(
        "steps can change the delay and the loss, but not the rate, of a link that is unlimited, follows a file or has a `rate_burst`"
    )]
    StepsOfRate,
    /// A step of the link changes nothing.
    #[error("a step of a link needs a `rate`, a `delay` or a `loss`")]
    StepOfNothing,
    /// A half-duplex link has the key `back`, although both of its directions have the same configuration.
    #[error("both directions of a half-duplex link are one; it has no `back`")]
    HalfDuplexBack,
    /// Two keys specify the same property of the link.
    #[error("a link has either {keys}")]
    EitherOf {
        /// The names of both keys.
        keys: &'static str,
    },
    /// A key is valid only together with another key, which is missing.
    #[error("has a meaning only beside `{key}`")]
    OnlyWith {
        /// The missing key.
        key: &'static str,
    },
    /// The link has a `rate_burst`, but is unlimited or follows a file.
    #[error("bursts are of a `rate`, and not of what is unlimited or follows a file")]
    BurstOfNoRate,
    /// The link's capacity cannot be read from its file.
    #[error("{why}")]
    Capacity {
        /// The reason why the file is invalid.
        why: String,
    },
    /// The queue discipline is unknown.
    #[error("an `aqm` needs a `name`: codel, fq_codel, pie or dualpi2")]
    UnknownAqm,
    /// The key is not a parameter of the queue discipline.
    #[error("this queue has {known}")]
    NotOfThisAqm {
        /// The parameters of the queue discipline.
        known: String,
    },
    /// The target of CoDel (the standing delay that it tolerates) is above its interval (about the longest usual
    /// round-trip time).
    #[error("the target must not be above the interval, {interval}")]
    TargetAboveInterval {
        /// The interval of CoDel.
        interval: Span,
    },
    /// The value must be a number without a unit. For the key `flows` of `fq_codel`, it must be a whole number that
    /// fits into 32 bits.
    #[error("must be a plain number above zero")]
    NotACount,
}
