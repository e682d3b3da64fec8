//! The GStreamer element: its pads, properties and threads.

use gst::glib;
use gst::prelude::*;

mod imp;
mod properties;

glib::wrapper! {
    /// The GStreamer element `rtpequipoisebwe`.
    pub(crate) struct Bwe(ObjectSubclass<imp::Bwe>) @extends gst::Element, gst::Object;
}

/// Registers the element with a plugin.
pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "rtpequipoisebwe", gst::Rank::NONE, Bwe::static_type())
}
