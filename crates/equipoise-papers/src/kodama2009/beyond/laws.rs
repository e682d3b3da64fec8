//! The control laws that are compared, and their settings in scenarios.

use std::collections::BTreeMap;

use equipoise_lab::scenario::Override;

/// Label of claims that the thesis does not make. For other claims, the label is the number of a figure.
pub(super) const OURS: &str = "ours";
/// Name of the bottleneck link in all scenarios of these experiments.
pub(super) const BOTTLENECK: &str = "E0-E1";

/// A control law that sets the congestion window of a connection.
#[derive(Clone, Copy)]
pub(super) struct Law {
    /// Name of the control law in tables.
    pub(super) name: &'static str,
    /// Name of the control law in scenario files; `None` for Symbiosis, which the scenario files already use.
    other: Option<&'static str>,
}

/// Symbiosis without noise awareness (Kodama 2009, Sec. 3), then the control laws that are compared with Symbiosis.
pub(super) const LAWS: [Law; 4] = [
    Law { name: "Symbiosis", other: None },
    Law { name: "Reno", other: Some("reno") },
    Law { name: "CUBIC", other: Some("cubic") },
    Law { name: "Vegas", other: Some("vegas") },
];

impl Law {
    /// Returns the override that sets the control law of the flow named `flow` (`*` for all flows); `None` for
    /// Symbiosis, which needs no override.
    pub(super) fn of_flow(self, flow: &str) -> Option<Override> {
        self.other.map(|law| Override::set(format!("flow.{flow}.window"), BTreeMap::from([("name", law)])))
    }
}
