//! The simulator and the controllers in a browser: runs a request in JSON, and returns the data that the page draws.
//!
//! The page does not modify a running simulation. A change of the link by hand, called a pull, becomes a step in the
//! scenario from that time on, and the whole scenario is run again. Results before the change stay equal, because a
//! later step has no effect on earlier packets. So the page always shows the run of a scenario file, and
//! `equipoise sim` returns the same results for this file.
#![forbid(unsafe_code)]

mod play;
mod pull;

use equipoise::error::Chain;
use wasm_bindgen::prelude::{JsError, wasm_bindgen};

pub use play::{Lane, PlayError, Played, Request, play};
pub use pull::{Pull, PullError, Quantity};

/// Runs a request in JSON ([`Request`]), and returns its results in JSON ([`Played`]).
///
/// # Errors
/// A text that describes the error in the request or the scenario, with the line and the key.
#[wasm_bindgen(js_name = play)]
pub fn play_json(request: &str) -> Result<String, JsError> {
    let request = serde_json::from_str(request).map_err(|error| JsError::new(&error.to_string()))?;
    let played = play(&request).map_err(|error| JsError::new(&Chain(&error).to_string()))?;
    serde_json::to_string(&played).map_err(|error| JsError::new(&error.to_string()))
}

/// The available rate controllers, in JSON: `name` and `summary` of each controller.
///
/// # Errors
/// Never: the data is plain text.
#[wasm_bindgen]
pub fn controllers() -> Result<String, JsError> {
    serde_json::to_string(&play::controllers()).map_err(|error| JsError::new(&error.to_string()))
}

/// The scenarios included in the page, in JSON: `name`, `description`, `duration_s` and `text` of each scenario.
///
/// # Errors
/// Never: a test checks the scenarios.
#[wasm_bindgen]
pub fn scenarios() -> Result<String, JsError> {
    serde_json::to_string(&play::scenarios()).map_err(|error| JsError::new(&error.to_string()))
}
