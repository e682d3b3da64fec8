//! The laws that are compared, and where.

use std::collections::BTreeMap;

use equipoise_lab::scenario::Override;

/// Where the claims stand that the thesis does not make.
pub(super) const OURS: &str = "ours";
/// The bottleneck of every scenario of the thesis.
pub(super) const BOTTLENECK: &str = "E0-E1";

/// A window law.
#[derive(Clone, Copy)]
pub(super) struct Law {
    /// In tables.
    pub(super) name: &'static str,
    /// In scenarios; `None` for the thesis' law, which they have.
    other: Option<&'static str>,
}

/// The thesis' law as it is before Sec. 3, first; then what it is compared with.
pub(super) const LAWS: [Law; 4] = [
    Law { name: "Symbiosis", other: None },
    Law { name: "Reno", other: Some("reno") },
    Law { name: "CUBIC", other: Some("cubic") },
    Law { name: "Vegas", other: Some("vegas") },
];

impl Law {
    /// Sets the law of a flow of this name, or of all.
    pub(super) fn of_flow(self, flow: &str) -> Option<Override> {
        self.other.map(|law| Override::set(format!("flow.{flow}.window"), BTreeMap::from([("name", law)])))
    }
}
