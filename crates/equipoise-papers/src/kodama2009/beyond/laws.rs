//! The laws that are compared, and their scenario settings.

use std::collections::BTreeMap;

use equipoise_lab::scenario::Override;

/// The source shown for claims that the thesis does not make.
pub(super) const OURS: &str = "ours";
/// The bottleneck of every scenario of the thesis.
pub(super) const BOTTLENECK: &str = "E0-E1";

/// A window-based congestion control.
#[derive(Clone, Copy)]
pub(super) struct Law {
    /// Its name in tables.
    pub(super) name: &'static str,
    /// Its name in scenarios; `None` for the thesis' law, which they already have.
    other: Option<&'static str>,
}

/// First the thesis' law before Sec. 3, then those it is compared with.
pub(super) const LAWS: [Law; 4] = [
    Law { name: "Symbiosis", other: None },
    Law { name: "Reno", other: Some("reno") },
    Law { name: "CUBIC", other: Some("cubic") },
    Law { name: "Vegas", other: Some("vegas") },
];

impl Law {
    /// Sets the law of the flow with this name, or of all flows.
    pub(super) fn of_flow(self, flow: &str) -> Option<Override> {
        self.other.map(|law| Override::set(format!("flow.{flow}.window"), BTreeMap::from([("name", law)])))
    }
}
