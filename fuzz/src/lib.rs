//! Properties that hold for any bytes, one function for each fuzz target.
//!
//! The functions are ordinary ones: `tests/corpus.rs` runs them with the seeds on stable Rust, and `fuzz_targets/`
//! passes them to the fuzzer. They panic only if a property does not hold.
//!
//! A new target needs a module here, a line in [`TARGETS`], a file in `fuzz_targets/` with its entry in the manifest,
//! seeds in [`seeds`], and a run of `cargo run --example seeds`.
#![forbid(unsafe_code)]

pub mod seeds;

mod capture;
mod congestion_feedback;
mod delay_report;
mod dtls_srtp;
mod flow_pair;
mod packet_history;
mod rtcp;
mod rtp;
mod scenario;
mod server;
mod session;
mod transport_feedback;

pub use capture::capture;
pub use congestion_feedback::congestion_feedback;
pub use delay_report::delay_report;
pub use dtls_srtp::dtls_srtp;
pub use flow_pair::flow_pair;
pub use packet_history::packet_history;
pub use rtcp::rtcp;
pub use rtp::rtp;
pub use scenario::scenario;
pub use server::server;
pub use session::session;
pub use transport_feedback::transport_feedback;

/// A target: panics if a property does not hold.
pub type Target = fn(&[u8]);

/// Every target, with the name of its binary and of its folder in `corpus/`.
pub const TARGETS: &[(&str, Target)] = &[
    ("capture", capture),
    ("congestion_feedback", congestion_feedback),
    ("delay_report", delay_report),
    ("dtls_srtp", dtls_srtp),
    ("flow_pair", flow_pair),
    ("packet_history", packet_history),
    ("rtcp", rtcp),
    ("rtp", rtp),
    ("scenario", scenario),
    ("server", server),
    ("session", session),
    ("transport_feedback", transport_feedback),
];

/// Runs a target with the files on the command line, to examine a finding without the fuzzer.
///
/// # Panics
/// If a file cannot be read, or if the target panics.
pub fn replay(target: Target) {
    for path in std::env::args_os().skip(1) {
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        target(&bytes);
    }
}
