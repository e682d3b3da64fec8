//! Reads link capacities from files, either plain or compressed by gzip. A file contains a recorded trace, or rates
//! over time.

use std::io;
use std::path::Path;

use equipoise::units::Span;
use equipoise_path::link::{Capacity, DeliveryTrace, TraceError, rate_steps};
use thiserror::Error;

use crate::text_file;

/// Why a capacity cannot be read from a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The file cannot be read.
    #[error("it cannot be read")]
    Read(#[source] io::Error),
    /// The content of the file is invalid.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Reads a capacity from a trace in Mahimahi's format. The link starts at the time `offset` in the trace.
///
/// # Errors
/// [`CapacityError`]; if the content is invalid, the error names the line.
pub fn trace_capacity(file: &Path, offset: Span) -> Result<Capacity, CapacityError> {
    Ok(Capacity::Trace(DeliveryTrace::parse(&read(file)?)?.from_offset(offset)))
}

/// Reads a capacity from lines of `time_s,rate_mbps`, or from a recorded table of download rates ([`rate_steps`]). The
/// link starts at the time `offset` in the file.
///
/// # Errors
/// [`CapacityError`]; if the content is invalid, the error names the line.
pub fn steps_capacity(file: &Path, offset: Span) -> Result<Capacity, CapacityError> {
    Ok(Capacity::Rate(rate_steps(&read(file)?)?.from_offset(offset)))
}

fn read(file: &Path) -> Result<String, CapacityError> {
    text_file::read(file).map_err(CapacityError::Read)
}
