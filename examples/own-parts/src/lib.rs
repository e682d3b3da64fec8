//! A custom controller, window law, scheduler and traffic model. Scenarios use these parts by name, like built-in
//! parts. The window law works only in simulated runs. The other parts work in simulated and in live runs.

mod controller;
mod scheduler;
mod traffic;
mod window;

use equipoise_lab::scenario::{Catalogue, NameTaken};

/// The text of a scenario that uses each of the four custom parts.
pub const SCENARIO: &str = include_str!("../scenario.toml");

/// Returns the catalogue of the built-in parts and the four custom parts.
///
/// # Errors
/// [`NameTaken`] if Equipoise already has a part with the name of a custom part.
pub fn catalogue() -> Result<Catalogue, NameTaken> {
    let mut catalogue = Catalogue::default();
    catalogue.controllers.add(&controller::GENTLE)?;
    catalogue.window_laws.add(&window::SCALABLE)?;
    catalogue.schedulers.add(&scheduler::INVERSE_DELAY)?;
    catalogue.traffic.add(&traffic::PARETO)?;
    Ok(catalogue)
}
