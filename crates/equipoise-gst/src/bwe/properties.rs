use std::sync::LazyLock;

use gst::glib;
use gst::prelude::*;

use crate::config::{CONTROLLER, ESTIMATED_BPS, Estimator, MAX_BPS, MIN_BPS};

/// The element's properties: first those that `rtpgccbwe` also has, then the additional ones.
pub(super) static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
    let bitrate = |name, nick, blurb, default| {
        glib::ParamSpecUInt::builder(name).nick(nick).blurb(blurb).minimum(1).default_value(default).mutable_ready()
    };
    vec![
        bitrate(
            "estimated-bitrate",
            "Estimated bitrate",
            "What the encoders may have in all, in bit/s, without headers. Set before the start it is where the estimate begins",
            ESTIMATED_BPS,
        )
        .build(),
        bitrate("min-bitrate", "Lowest bitrate", "The lowest estimate, in bit/s", MIN_BPS).build(),
        bitrate("max-bitrate", "Highest bitrate", "The highest estimate, in bit/s", MAX_BPS).build(),
        glib::ParamSpecEnum::builder_with_default("estimator", Estimator::default())
            .nick("Estimator")
            .blurb("Without effect: for pipelines that set it for rtpgccbwe")
            .mutable_ready()
            .build(),
        glib::ParamSpecString::builder("controller")
            .nick("Controller")
            .blurb("What controls the rate: equipoise, gcc, nada, scream, ap, aimd, tfrc, rap, cbr")
            .default_value(Some(CONTROLLER))
            .mutable_ready()
            .build(),
        glib::ParamSpecString::builder("controller-params")
            .nick("Parameters of the controller")
            .blurb("Values for parameters of the controller, as name=value,name=value with units: target=20 ms,min_rate=1 Mbit/s")
            .default_value(Some(""))
            .mutable_ready()
            .build(),
        glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
            .nick("Statistics")
            .blurb("Why the rate is what it is, what is believed of the path, what waits, and counts. Rates are in bit/s, times in ns; beliefs in bit/s and s")
            .read_only()
            .build(),
    ]
});
