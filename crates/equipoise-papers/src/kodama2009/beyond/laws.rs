//! The controllers that are compared, and their scenario settings.

use std::collections::BTreeMap;

use equipoise_lab::scenario::Override;

/// The source that is shown for claims that the thesis does not make.
pub(super) const OURS: &str = "ours";
/// Name of the bottleneck link in every scenario of the thesis.
pub(super) const BOTTLENECK: &str = "E0-E1";

/// A window-based congestion control.
#[derive(Clone, Copy)]
pub(super) struct Law {
    /// Name of the controller in tables.
    pub(super) name: &'static str,
    /// Name of the controller in scenarios; `None` for Symbiosis, which the scenarios already have.
    other: Option<&'static str>,
}

/// First Symbiosis without the changes of Sec. 3, then the controllers with which it is compared.
pub(super) const LAWS: [Law; 4] = [
    Law { name: "Symbiosis", other: None },
    Law { name: "Reno", other: Some("reno") },
    Law { name: "CUBIC", other: Some("cubic") },
    Law { name: "Vegas", other: Some("vegas") },
];

impl Law {
    /// Override that sets the controller of the flow with this name (`*` for all flows); `None` for Symbiosis.
    pub(super) fn of_flow(self, flow: &str) -> Option<Override> {
        self.other.map(|law| Override::set(format!("flow.{flow}.window"), BTreeMap::from([("name", law)])))
    }
}
