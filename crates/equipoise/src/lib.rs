//! End-to-end rate control for real-time media: **measure → control → pace**.
//!
//! This crate is the core that other programs embed. It reads no clock, opens no socket and draws no random number of
//! its own: time, measurements and seeds are arguments, and decisions are results. Sessions, the simulator and the
//! sockets are adapters around this core, so they all run the same control code.
//!
//! - [`units`]: instants, spans, rates and sizes.
//! - [`random`]: seeds and generators.
//! - [`measure`]: packets sent and arrived → statistics per interval.
//! - [`control`]: statistics → a sending rate, a window, or both.
//! - [`pace`]: a rate → departure times.
//!
//! The loop in a few lines: build a controller by name, measure an interval, apply the next rate.
//!
//! ```
//! use equipoise::control::{Feedback, IntervalSummary, find};
//! use equipoise::measure::DelayMeter;
//! use equipoise::pace::{Pacer, Readiness};
//! use equipoise::units::{Instant, SenderClock, Size, Span};
//!
//! let packet = Size::from_bytes(1200);
//! let ap = find("ap").ok_or("no such controller")?;
//! let mut controller = ap.build(&ap.parse(&[("target", "20 ms")])?, packet)?;
//! let mut pacer = Pacer::new(controller.allowance().rate.ok_or("no rate")?);
//!
//! // measure: when the packets of an interval left, and how long they took.
//! let start = Instant::<SenderClock>::ZERO;
//! let mut meter = DelayMeter::new();
//! for number in 1..=100 {
//!     meter.push(start + Span::from_millis(10 * number), Span::from_micros(7_000 + 37 * (number % 9)));
//! }
//! let mut summary = IntervalSummary::unmeasured();
//! summary.delay = meter.summary_after(start);
//!
//! // control: the delay is below its target, so the rate rises.
//! let before = controller.allowance().rate;
//! let now = start + Span::from_secs(1);
//! controller.on_feedback(now, &Feedback::Interval(summary));
//! assert!(controller.allowance().rate > before);
//!
//! // pace: the new rate as departure times.
//! pacer.set_rate(controller.allowance().rate.ok_or("no rate")?);
//! assert_eq!(pacer.poll(now), Readiness::Now);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Three programs in `examples/` show more: a loop driven by hand, a custom controller, and Google congestion control
//! by hand.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod control;
pub mod error;
pub mod measure;
pub mod pace;
pub mod random;
pub mod units;

/// Compiles and runs the code of the repository's README as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles and runs the code of the package's own README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PackageReadme;
