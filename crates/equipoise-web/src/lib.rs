//! The simulator and the controllers for a web page. The page sends a request in JSON; the crate simulates it and
//! returns the data that the page draws.
//!
//! The page does not modify a running simulation. If the user changes the link by hand (a *pull*), the change is
//! inserted into the scenario, and the whole scenario is run again. The results before the time of the change stay the
//! same, because a later change has no effect on earlier packets. The page therefore always shows the run of a
//! scenario file, and `equipoise sim` returns the same results for this file.
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
/// An error with a text that describes what is wrong in the request or the scenario, with the line and the key if they
/// are known.
#[wasm_bindgen(js_name = play)]
pub fn play_json(request: &str) -> Result<String, JsError> {
    let request = serde_json::from_str(request).map_err(|error| JsError::new(&error.to_string()))?;
    let played = play(&request).map_err(|error| JsError::new(&Chain(&error).to_string()))?;
    serde_json::to_string(&played).map_err(|error| JsError::new(&error.to_string()))
}

/// Returns the available rate controllers as JSON, with `name` and `summary` of each controller.
///
/// # Errors
/// Never, because text can always be converted to JSON.
#[wasm_bindgen]
pub fn controllers() -> Result<String, JsError> {
    serde_json::to_string(&play::controllers()).map_err(|error| JsError::new(&error.to_string()))
}

/// Returns JSON with the `name`, `description`, `duration_s` and `text` of each scenario that is part of the page.
///
/// # Errors
/// Never, because text and numbers can always be converted to JSON.
#[wasm_bindgen]
pub fn scenarios() -> Result<String, JsError> {
    serde_json::to_string(&play::scenarios()).map_err(|error| JsError::new(&error.to_string()))
}
