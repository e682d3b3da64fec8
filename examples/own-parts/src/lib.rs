//! A custom controller, window law, scheduler and traffic model. Scenarios use their names like those of built-in
//! parts, in simulated and live runs.

mod controller;
mod scheduler;
mod traffic;
mod window;

use equipoise_lab::scenario::{Catalogue, NameTaken};

/// A scenario that uses each part.
pub const SCENARIO: &str = include_str!("../scenario.toml");

/// The built-in entries and the four custom ones.
///
/// # Errors
/// [`NameTaken`] if Equipoise already has an entry with one of these names.
pub fn catalogue() -> Result<Catalogue, NameTaken> {
    let mut catalogue = Catalogue::default();
    catalogue.controllers.add(&controller::GENTLE)?;
    catalogue.window_laws.add(&window::SCALABLE)?;
    catalogue.schedulers.add(&scheduler::INVERSE_DELAY)?;
    catalogue.traffic.add(&traffic::PARETO)?;
    Ok(catalogue)
}
