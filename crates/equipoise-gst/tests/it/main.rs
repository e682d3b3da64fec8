//! Tests of the element together with other GStreamer elements: in a test harness, and in a call over a bottleneck.
#![allow(clippy::print_stdout, reason = "what a call made of its path")]

#[expect(dead_code, reason = "only the example prints all of it")]
#[path = "../../examples/steps/call.rs"]
mod call;
#[path = "../../examples/steps/path.rs"]
mod path;

mod element;
mod inspect;
mod steps;

use std::sync::Once;

/// Initialises GStreamer and registers the element.
fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        gst::init().expect("GStreamer starts");
        gstequipoise::register().expect("the element is registered");
    });
}
