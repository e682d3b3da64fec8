//! The scenarios of the three cases of the paper, the names of the compared methods, and the names of two
//! interpretations of the paper.

use equipoise_lab::scenario::Override;

macro_rules! scenario {
    ($name:literal) => {
        include_str!(concat!("../../scenarios/subramanya2003/", $name, ".toml"))
    };
}

pub(super) const CASE1: [&str; 2] = [scenario!("case1-tq"), scenario!("case1-newreno")];
pub(super) const CASE2: [&str; 2] = [scenario!("case2-tq"), scenario!("case2-newreno")];
pub(super) const CASE3: [&str; 2] = [scenario!("case3-tq"), scenario!("case3-newreno")];

/// Name of the main interpretation.
pub(super) const MAIN: &str = "ns-2's window of 20; k_v = 0.5, T = 100 ms, x_d = 5";
/// Name of the interpretation in which the override [`unlimited`] is used.
pub(super) const UNLIMITED: &str = "NewReno's window without a limit";

/// Returns the override that removes the limit of `NewReno`'s window. The scenario files have the limit of ns-2.
pub(super) fn unlimited() -> Override {
    Override::remove("flow.*.tcp.receive_window")
}

/// Names of the two methods. Arrays with a value for each method are in this order.
pub(super) const METHODS: [&str; 2] = ["TQ", "NewReno TCP"];
