use equipoise::units::Span;
use equipoise_path::video::VideoModelError;
use thiserror::Error;

/// What is wrong with the live media of a scenario's flow.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MediaProblem {
    /// A session has more than one video and one audio.
    #[error(
        "a session has one source, or one video (encoder, or video with `adapt = \"quantise\"`) and one audio, in a list"
    )]
    WhichSources,
    /// Live media follow the rate of a controller, and the flow has none, or several paths.
    #[error("only a flow with a `controller` and one `path` sends live media")]
    LiveOfWhat,
    /// The key applies only to the frames of live media.
    #[error(
        "has a meaning only for live media: a `source` of kind encoder or audio, or video with `adapt = \"quantise\"`"
    )]
    OnlyLive,
    /// The pacing factor is out of range: the sender's queue would never drain, or would be sent at once.
    #[error("must be 1 to {most}: packets leave at this multiple of the rate of the media")]
    Pacing {
        /// The maximum.
        most: f64,
    },
    /// The interval of audio frames is out of range.
    #[error("must be 1 ms to 1 s")]
    AudioInterval,
    /// An encoder does not have this key.
    #[error("an encoder has {known}")]
    NotOfAnEncoder {
        /// Its keys.
        known: &'static str,
    },
    /// There is no such encoder.
    #[error(transparent)]
    Model(#[from] VideoModelError),
    /// The traces of an encoder are invalid.
    #[error("{why}")]
    Traces {
        /// The reason.
        why: String,
    },
    /// The number of frames in a transient burst is invalid.
    #[error("must be a whole number from 2 to 1000")]
    BurstFrames,
    /// Only a session over one path can be paused.
    #[error("only a session over one path pauses; a connection has `stop`, background traffic has `steps` of its rate")]
    PauseOfWhat,
    /// A flow pauses before it starts.
    #[error("the flow starts at {start}; it must pause after that")]
    PauseBeforeStart {
        /// The start of the flow.
        start: Span,
    },
}
