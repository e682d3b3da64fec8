use std::path::PathBuf;

use equipoise_papers::asvarujanon2014::PairsError;
use equipoise_papers::capture::CaptureError;
use thiserror::Error;

/// Errors of the papers' experiments and of captures.
#[derive(Debug, Error)]
pub(crate) enum PaperError {
    /// The capture cannot be analysed.
    #[error("{}", file.display())]
    Capture {
        /// The capture's file.
        file: PathBuf,
        /// What is wrong with the capture.
        source: CaptureError,
    },
    /// The folder of `--pairs` is missing or cannot be used.
    #[error("cannot use the pairs of paths")]
    Pairs(#[source] PairsError),
    /// `--live` was given, but the requested part of a paper can only be simulated.
    #[cfg(feature = "live")]
    #[error("{part} can only be simulated; --live supports {live}")]
    NotLive {
        /// The name of the part that was requested.
        part: String,
        /// The names of all parts that can run live.
        live: String,
    },
    /// `--live` was given, but this build of the command cannot run live experiments.
    #[cfg(not(feature = "live"))]
    #[error("this build of the command can only simulate; --live needs Linux and the feature `live`")]
    SimulatedOnly,
}

impl PaperError {
    /// Returns the exit code of the error's class.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            #[cfg(feature = "live")]
            Self::NotLive { .. } => 2,
            #[cfg(not(feature = "live"))]
            Self::SimulatedOnly => 2,
            Self::Pairs(PairsError::NoFolder) => 2,
            Self::Capture { .. } | Self::Pairs(_) => 3,
        }
    }

    /// Returns advice on what the user can do about the error, if there is any.
    pub(crate) const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Capture { .. } => Some("write a capture with `tcpdump -w FILE tcp`, close to the sender of the data"),
            _ => None,
        }
    }
}
