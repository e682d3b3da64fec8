//! Functions that check properties of Equipoise for any input bytes. Each function is a fuzz target.
//!
//! The functions are ordinary Rust functions, which panic only if a property does not hold. `tests/corpus.rs` runs them
//! with the seeds on stable Rust, and the binaries in `fuzz_targets/` run them with the fuzzer.
//!
//! A new target needs a module in this crate, a line in [`TARGETS`], a file in `fuzz_targets/`, an entry for this file
//! in `Cargo.toml`, and seeds in [`seeds`]. Run `cargo run --example seeds` afterwards.
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

/// A fuzz target: a function that panics if a property does not hold for the input.
pub type Target = fn(&[u8]);

/// All fuzz targets with their names. A target's binary and its folder in `corpus/` have the same name as the target.
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

/// Runs a target with the files on the command line, so that an input that causes a panic can be examined without the
/// fuzzer.
///
/// # Panics
/// If a file cannot be read, or if the target panics.
pub fn replay(target: Target) {
    for path in std::env::args_os().skip(1) {
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        target(&bytes);
    }
}
