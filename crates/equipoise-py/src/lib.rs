//! The native part of the Python package `equipoise`. It runs scenarios in the simulator, returns results as Arrow
//! tables, and supports control laws written in Python.
//!
//! ```text
//!   scenario, set, seeds ──▶ job: simulation by equipoise-lab, without the GIL ──▶ result ──▶ dict, Arrow tables
//!   laws ──▶ law ──▶ catalogue, which also contains the built-in controllers ──▶ sessions of the simulation
//! ```
//!
//! The crate contains no control law. Names and units in Python are the same as in scenario files and in the JSON of
//! the command `equipoise`. Python imports the crate as `equipoise._native`; users import the package in
//! `python/equipoise/`.

#![expect(clippy::needless_pass_by_value, reason = "what Python hands over is handed over")]

mod capture;
mod catalogue;
mod compare;
mod controller;
mod error;
mod feedback;
mod job;
mod law;
mod result;
mod rows;
mod run;
mod source;
mod suite;
mod sweep;
mod table;

use pyo3::prelude::*;

/// Native part of the package `equipoise`.
#[pymodule]
mod _native {
    use super::{Bound, PyModule, PyModuleMethods as _, PyResult};

    #[pymodule_export]
    use super::capture::{Capture, RtpCapture, capture_rtp, capture_rtt};
    #[pymodule_export]
    use super::catalogue::controllers;
    #[pymodule_export]
    use super::compare::{Comparison, compare};
    #[pymodule_export]
    use super::controller::Controller;
    #[pymodule_export]
    use super::feedback::{Allowance, Frame, Interval, Packet, Packets, Sent, Silence};
    #[pymodule_export]
    use super::result::Result;
    #[pymodule_export]
    use super::run::{explain, run};
    #[pymodule_export]
    use super::suite::{Suite, suite};
    #[pymodule_export]
    use super::sweep::SweepFolder;
    #[pymodule_export]
    use super::table::Table;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("DEMO", equipoise_lab::DEMO)?;
        module.add("__version__", equipoise_lab::VERSION)
    }
}
