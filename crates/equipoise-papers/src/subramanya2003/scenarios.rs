//! The scenarios of the three cases, and what they compare.

use equipoise_lab::scenario::Override;

macro_rules! scenario {
    ($name:literal) => {
        include_str!(concat!("../../../../scenarios/subramanya2003/", $name, ".toml"))
    };
}

pub(super) const CASE1: [&str; 2] = [scenario!("case1-tq"), scenario!("case1-newreno")];
pub(super) const CASE2: [&str; 2] = [scenario!("case2-tq"), scenario!("case2-newreno")];
pub(super) const CASE3: [&str; 2] = [scenario!("case3-tq"), scenario!("case3-newreno")];

/// Name of `NewReno` with the receive window that ns-2 has by default.
pub(super) const WINDOWED: &str = "NewReno TCP, window of 20";

/// The receive window that ns-2 has by default.
pub(super) fn ns2_window() -> Override {
    Override::set("flow.*.tcp.receive_window", 20)
}

/// Names of the two, in this order everywhere.
pub(super) const METHODS: [&str; 2] = ["TQ", "NewReno TCP"];
