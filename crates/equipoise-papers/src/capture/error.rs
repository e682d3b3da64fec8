use thiserror::Error;

/// Why a capture cannot be analysed.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file does not begin like a capture file.
    #[error("this is not a capture: it begins neither as pcap nor as pcapng, compressed by gzip or not")]
    NotACapture,
    /// The file is empty.
    #[error("the capture is empty; not even its header is there")]
    Empty,
    /// The file cannot be read.
    #[error("the capture cannot be read")]
    Read(#[from] std::io::Error),
}
