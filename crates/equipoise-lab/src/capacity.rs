//! Capacities from files, compressed by gzip or not: recorded traces, and rates over time.

use std::io;
use std::path::Path;

use equipoise::units::Span;
use equipoise_path::link::{Capacity, DeliveryTrace, TraceError, rate_steps};
use thiserror::Error;

use crate::text_file;

/// Why a file gives no capacity.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// It cannot be read.
    #[error("it cannot be read")]
    Read(#[source] io::Error),
    /// It is not what it should be.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// A capacity from a trace in Mahimahi's format, from `offset` on.
///
/// # Errors
/// [`CapacityError`], with the line.
pub fn trace_capacity(file: &Path, offset: Span) -> Result<Capacity, CapacityError> {
    Ok(Capacity::Trace(DeliveryTrace::parse(&read(file)?)?.from_offset(offset)))
}

/// A capacity from lines of `time_s,rate_mbps`, from `offset` on.
///
/// # Errors
/// [`CapacityError`], with the line.
pub fn steps_capacity(file: &Path, offset: Span) -> Result<Capacity, CapacityError> {
    Ok(Capacity::Rate(rate_steps(&read(file)?)?.from_offset(offset)))
}

fn read(file: &Path) -> Result<String, CapacityError> {
    text_file::read(file).map_err(CapacityError::Read)
}
