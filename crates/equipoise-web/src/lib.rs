//! The simulator and the laws in a browser: a request as text comes in, what a page draws goes out.
//!
//! The page changes nothing in a run that goes on. A pull at a link is a step in the scenario from that moment on, and the whole
//! of it is run again: what lies before the pull comes out the same, as no packet knows of a step before its time. So what the
//! page shows is always the run of a scenario file, which `equipoise sim` runs with the same results.
#![forbid(unsafe_code)]

mod play;
mod pull;

use equipoise::error::Chain;
use wasm_bindgen::prelude::{JsError, wasm_bindgen};

pub use play::{Lane, PlayError, Played, Request, play};
pub use pull::{Pull, PullError, Quantity};

/// Runs what a request in JSON ([`Request`]) asks for, and gives what came of it in JSON ([`Played`]).
///
/// # Errors
/// A text that says what is wrong with the request or the scenario, with its line and key.
#[wasm_bindgen(js_name = play)]
pub fn play_json(request: &str) -> Result<String, JsError> {
    let request = serde_json::from_str(request).map_err(|error| JsError::new(&error.to_string()))?;
    let played = play(&request).map_err(|error| JsError::new(&Chain(&error).to_string()))?;
    serde_json::to_string(&played).map_err(|error| JsError::new(&error.to_string()))
}

/// The rate controllers that there are, in JSON: `name` and `summary` of each.
///
/// # Errors
/// None: it is plain text.
#[wasm_bindgen]
pub fn controllers() -> Result<String, JsError> {
    serde_json::to_string(&play::controllers()).map_err(|error| JsError::new(&error.to_string()))
}

/// The scenarios that come with the page, in JSON: `name`, `description`, `duration_s` and `text` of each.
///
/// # Errors
/// None: they were checked when they were built.
#[wasm_bindgen]
pub fn scenarios() -> Result<String, JsError> {
    serde_json::to_string(&play::scenarios()).map_err(|error| JsError::new(&error.to_string()))
}
