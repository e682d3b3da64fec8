//! A controller, a window law, a scheduler and a traffic model of one's own. Scenarios name them like ours, and they run
//! simulated and live.

mod controller;
mod scheduler;
mod traffic;
mod window;

use equipoise_lab::scenario::{Catalogue, NameTaken};

/// A scenario in which each part plays.
pub const SCENARIO: &str = include_str!("../scenario.toml");

/// Our entries, and these four.
///
/// # Errors
/// [`NameTaken`] if Equipoise has an entry of one of these names by now.
pub fn catalogue() -> Result<Catalogue, NameTaken> {
    let mut catalogue = Catalogue::default();
    catalogue.controllers.add(&controller::GENTLE)?;
    catalogue.window_laws.add(&window::SCALABLE)?;
    catalogue.schedulers.add(&scheduler::INVERSE_DELAY)?;
    catalogue.traffic.add(&traffic::PARETO)?;
    Ok(catalogue)
}
