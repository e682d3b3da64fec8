//! The scenarios of the paper, and of the experiments beyond the paper.

macro_rules! scenario {
    ($name:literal) => {
        include_str!(concat!("../../scenarios/waki2013/", $name, ".toml"))
    };
}

pub(super) const FIG7: &str = scenario!("fig7");
pub(super) const AP_300: &str = scenario!("ap-300");
pub(super) const AP_407: &str = scenario!("ap-407");
pub(super) const AP_LOAD: &str = scenario!("ap-load");
pub(super) const AP_ROBUST: &str = scenario!("ap-robust");
pub(super) const AP_LEARN: &str = scenario!("ap-learn");
pub(super) const CBR_3: &str = scenario!("cbr-3");
pub(super) const CBR_08: &str = scenario!("cbr-0.8");
/// The scenarios of AIMD, each with a name: the rate increase per interval in Mbit/s (A in the paper).
pub(super) const AIMD: [(&str, &str); 5] = [
    ("1", scenario!("aimd-1")),
    ("0.8", scenario!("aimd-0.8")),
    ("0.4", scenario!("aimd-0.4")),
    ("0.2", scenario!("aimd-0.2")),
    ("0.1", scenario!("aimd-0.1")),
];
