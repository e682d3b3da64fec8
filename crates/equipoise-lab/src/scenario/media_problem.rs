use equipoise::units::Span;
use equipoise_path::video::VideoModelError;
use thiserror::Error;

/// What is wrong with the live media of a scenario's flow.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MediaProblem {
    /// The sources of a session are neither one source nor a pair of one video and one audio.
    #[error(
        "a session has one source, or one video (encoder, or video with `adapt = \"quantise\"`) and one audio, in a list"
    )]
    WhichSources,
    /// The flow is a TCP connection. It cannot send live media, because it has no controller that sets the rate of
    /// media.
    #[error("only a flow with a `controller` and one `path` sends live media")]
    LiveOfWhat,
    /// The key is valid only for live media.
    #[error(
        "has a meaning only for live media: a `source` of kind encoder or audio, or video with `adapt = \"quantise\"`"
    )]
    OnlyLive,
    /// The pacing factor is out of range. With a factor below 1, the sender's queue would never drain. No known pacer
    /// has a larger factor than the maximum.
    #[error("must be 1 to {most}: packets leave at this multiple of the rate of the media")]
    Pacing {
        /// The maximum pacing factor.
        most: f64,
    },
    /// The interval of audio frames is out of range.
    #[error("must be 1 ms to 1 s")]
    AudioInterval,
    /// A model of an encoder does not have this key.
    #[error("an encoder has {known}")]
    NotOfAnEncoder {
        /// The keys of a model of an encoder.
        known: &'static str,
    },
    /// The parameters of the model of an encoder are invalid.
    #[error(transparent)]
    Model(#[from] VideoModelError),
    /// The traces from which an encoder is modelled cannot be read, or are invalid.
    #[error("{why}")]
    Traces {
        /// The reason why the traces are invalid.
        why: String,
    },
    /// The number of frames in an encoder's transient burst is invalid.
    #[error("must be a whole number from 2 to 1000")]
    BurstFrames,
    /// The flow cannot have pauses, because it is not a session over one path.
    #[error("only a session over one path pauses; a connection has `stop`, background traffic has `steps` of its rate")]
    PauseOfWhat,
    /// A pause does not begin later than the flow.
    #[error("the flow starts at {start}; it must pause after that")]
    PauseBeforeStart {
        /// The start of the flow.
        start: Span,
    },
}
