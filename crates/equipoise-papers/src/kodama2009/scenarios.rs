//! The scenarios of the thesis, and of the experiments beyond the thesis.

macro_rules! scenario {
    ($name:literal) => {
        include_str!(concat!("../../scenarios/kodama2009/", $name, ".toml"))
    };
}

pub(super) const FIG3: &str = scenario!("fig3");
pub(super) const FIG5: &str = scenario!("fig5");
pub(super) const FIG6: &str = scenario!("fig6");
pub(super) const FIG10: &str = scenario!("fig10");
pub(super) const FIG11: &str = scenario!("fig11");
pub(super) const FIG12: &str = scenario!("fig12");
pub(super) const FIG15: &str = scenario!("fig15");
pub(super) const INLINE: &str = scenario!("inline");
pub(super) const BEYOND_STEP: &str = scenario!("beyond-step");
pub(super) const BEYOND_NOISE: &str = scenario!("beyond-noise");
pub(super) const BEYOND_RIVALS: &str = scenario!("beyond-rivals");

/// The strengths m of the oscillation in Fig. 12, 13, 15 and 16.
pub(super) const STRENGTHS: [f64; 5] = [0.0, 0.05, 0.1, 0.3, 0.5];
