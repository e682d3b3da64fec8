use thiserror::Error;

/// Why nothing can be had from a capture.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// It does not begin as a capture does.
    #[error("this is not a capture: it begins neither as pcap nor as pcapng, compressed by gzip or not")]
    NotACapture,
    /// There is nothing in it.
    #[error("the capture is empty; not even its header is there")]
    Empty,
    /// It cannot be read.
    #[error("the capture cannot be read")]
    Read(#[from] std::io::Error),
}
