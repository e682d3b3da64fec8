//! A GStreamer plugin with one element, `rtpequipoisebwe`, which stands where `rtpgccbwe` stands in a pipeline: RTP passes through it
//! on its way to an `rtpsession`, which hands it the receiver's transport-wide feedback, and an encoder follows its property
//! `estimated-bitrate`.
//!
//! It *measures* by that feedback, *controls* by any rate controller of [`equipoise::control::entries`] that needs no more than that,
//! and *paces*. It holds no law: those are in [`equipoise`], and [`equipoise_session::guest`] holds them to what was proved to arrive.
//!
//! `cargo build --release -p equipoise-gst` makes `libgstequipoise.so`, for a folder of `GST_PLUGIN_PATH`. A program that links this
//! crate calls [`register`] instead.

mod bwe;
mod config;
mod departures;
mod event;
mod flow;
mod packet;

/// What the macro makes has no comments of its own.
mod plugin {
    #![allow(missing_docs, unreachable_pub, reason = "made by GStreamer's macro")]

    use crate::bwe::register;

    gst::plugin_define!(
        equipoise,
        env!("CARGO_PKG_DESCRIPTION"),
        register,
        env!("CARGO_PKG_VERSION"),
        // Of MIT and Apache-2.0 the one that GStreamer's list of licences has.
        "MIT/X11",
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_NAME"),
        "https://docs.rs/equipoise-gst"
    );
}

/// Makes the element known to this process, which links the crate and loads no plugin. After `gst::init`.
///
/// # Errors
/// If GStreamer refuses, as it does before it was initialised.
pub fn register() -> Result<(), gst::glib::BoolError> {
    plugin::plugin_desc::plugin_register_static()
}

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
