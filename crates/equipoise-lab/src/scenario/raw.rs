//! A scenario file as it is written, before anything is checked but its shape.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Value};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScenario {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    pub(super) duration: Spanned<Value>,
    pub(super) warm_up: Option<Spanned<Value>>,
    pub(super) seed: Option<u64>,
    #[serde(default)]
    pub(super) link: Vec<RawLink>,
    #[serde(default)]
    pub(super) flow: Vec<RawFlow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLink {
    pub(super) name: Spanned<String>,
    pub(super) rate: Spanned<Value>,
    pub(super) delay: Spanned<Value>,
    pub(super) queue: Spanned<Value>,
    #[serde(default)]
    pub(super) steps: Vec<RawStep>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFlow {
    pub(super) name: Spanned<String>,
    pub(super) path: Vec<Spanned<String>>,
    pub(super) packet_size: Spanned<Value>,
    pub(super) start: Option<Spanned<Value>>,
    pub(super) report_interval: Option<Spanned<Value>>,
    pub(super) controller: Option<BTreeMap<String, Spanned<Value>>>,
    pub(super) source: Option<RawSource>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSource {
    pub(super) kind: Spanned<String>,
    pub(super) rate: Spanned<Value>,
    pub(super) on: Option<Spanned<Value>>,
    pub(super) off: Option<Spanned<Value>>,
    #[serde(default)]
    pub(super) steps: Vec<RawStep>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep {
    pub(super) at: Spanned<Value>,
    pub(super) rate: Spanned<Value>,
}
