//! A GStreamer plugin with one element, `rtpequipoisebwe`, which replaces `rtpgccbwe` in a pipeline. RTP packets pass
//! through the element to an `rtpsession`, which returns the receiver's transport-wide feedback to the element. The
//! encoder follows the element's property `estimated-bitrate`.
//!
//! The element *measures* with that feedback, *controls* with any rate controller of [`equipoise::control::entries`]
//! that needs no other feedback, and *paces*. The control laws are in [`equipoise`]. [`equipoise_session::guest`]
//! limits the rates of adaptive control laws to twice the delivery rate measured from the feedback. A law that must act
//! exactly as in its paper has no such limit.
//!
//! `cargo build --release -p equipoise-gst` builds `libgstequipoise.so`. GStreamer loads this file from a folder in
//! `GST_PLUGIN_PATH`. A program that links this crate calls [`register`] instead.

mod bwe;
mod config;
mod departures;
mod event;
mod flow;
mod packet;

/// The plugin's definition. The macro's output has no doc comments, so a separate module allows missing documentation.
mod plugin {
    #![allow(missing_docs, unreachable_pub, reason = "made by GStreamer's macro")]

    use crate::bwe::register;

    gst::plugin_define!(
        equipoise,
        env!("CARGO_PKG_DESCRIPTION"),
        register,
        env!("CARGO_PKG_VERSION"),
        // GStreamer's list of licences has MIT but not Apache-2.0.
        "MIT/X11",
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_NAME"),
        "https://docs.rs/equipoise-gst"
    );
}

/// Registers the element `rtpequipoisebwe` in this process, for a program that links the crate instead of loading the
/// plugin. Call this function after `gst::init`.
///
/// # Errors
/// An error if GStreamer refuses the element, for example because GStreamer is not initialised.
pub fn register() -> Result<(), gst::glib::BoolError> {
    plugin::plugin_desc::plugin_register_static()
}

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
