//! The list of the built-in traffic models.

use equipoise::control::{Entry, Kind, Parameter};

use super::{BoxedTraffic, Traffic};

/// A traffic model that can be built by name.
pub type TrafficEntry = Entry<BoxedTraffic, ()>;

/// All built-in traffic models, in the order in which they are listed for the user.
pub fn entries() -> &'static [TrafficEntry] {
    ENTRIES
}

const ON: Parameter = Parameter {
    name: "on",
    kind: Kind::Span,
    default: None,
    range: Some(("1 us", "1 h")),
    meaning: "mean length of a burst",
    source: "the application",
};
const OFF: Parameter = Parameter { name: "off", meaning: "mean length of a silence", ..ON };

static ENTRIES: &[TrafficEntry] = &[
    Entry {
        name: "poisson",
        summary: "exponential gaps between packets",
        source: "common practice",
        parameters: &[],
        make: |_, ()| Ok(Traffic::Poisson.into()),
    },
    Entry {
        name: "constant",
        summary: "even gaps, a constant bit rate",
        source: "common practice",
        parameters: &[],
        make: |_, ()| Ok(Traffic::Constant.into()),
    },
    Entry {
        name: "on-off",
        summary: "bursts with even gaps between packets, and silences between bursts; both have exponentially distributed lengths",
        source: "common practice",
        parameters: &[ON, OFF],
        make: |given, ()| Ok(Traffic::OnOff { on: given.span(&ON)?, off: given.span(&OFF)? }.into()),
    },
];
