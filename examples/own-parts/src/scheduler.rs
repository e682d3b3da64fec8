use equipoise::control::Snapshot;
use equipoise::control::scheduler::{PathView, Scheduler, SchedulerEntry, Share};
use equipoise::units::Rate;

/// A scheduler that sends less over paths with a longer delay: the share of each path is inversely proportional to its
/// last mean delay.
#[derive(Clone, Debug, Default)]
struct InverseDelay;

/// Delay that is assumed for a path before its first measurement, in s.
const UNKNOWN_S: f64 = 0.1;

impl Scheduler for InverseDelay {
    fn split(&mut self, total: Rate, paths: &[PathView]) -> Vec<Share> {
        let weight = |path: &PathView| {
            let delay_s = path.delay.map_or(UNKNOWN_S, |delay| delay.mean_s.max(1e-3));
            if path.alive { 1.0 / delay_s } else { 0.0 }
        };
        let sum: f64 = paths.iter().map(weight).sum();
        let rate = |path| Rate::from_bps_f64(total.as_bps_f64() * weight(path) / sum).unwrap_or(Rate::ZERO);
        paths.iter().map(|path| Share { rate: rate(path), snapshot: Snapshot::default() }).collect()
    }
}

pub(crate) static INVERSE_DELAY: SchedulerEntry = SchedulerEntry {
    name: "inverse-delay",
    summary: "shares inverse to the paths' delays",
    source: "this example",
    parameters: &[],
    make: |_, _| Ok(Box::new(InverseDelay)),
};
