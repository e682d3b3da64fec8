//! The raw form of a flow's `source`, which is a table or a list of tables.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use toml::{Spanned, Value};

/// A source of a flow. A key that has no field here is kept in `model`. Such a key can be a parameter of a traffic
/// model, or a key of an encoder or of audio.
#[derive(Debug)]
pub(super) struct RawSource {
    pub(super) kind: Spanned<String>,
    pub(super) rate: Option<Spanned<Value>>,
    pub(super) steps: Vec<RawStep>,
    pub(super) length: Option<Spanned<Value>>,
    pub(super) video: RawVideo,
    pub(super) model: BTreeMap<String, Spanned<Value>>,
}

/// The sources of a flow: one source or several.
#[derive(Debug)]
pub(super) struct RawSources(pub(super) Vec<RawSource>);

/// A step in which a source's rate changes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep {
    pub(super) at: Spanned<Value>,
    pub(super) rate: Spanned<Value>,
}

/// Keys that only a source of the kind `video` can have. Exception: an encoder can also have `frame_rate`.
#[derive(Debug, Default)]
pub(super) struct RawVideo {
    pub(super) peak: Option<Spanned<f64>>,
    pub(super) cv: Option<Spanned<f64>>,
    pub(super) frame_rate: Option<Spanned<f64>>,
    pub(super) pattern: Option<Spanned<String>>,
    pub(super) trace: Option<Spanned<String>>,
    pub(super) adapt: Option<Spanned<String>>,
}

impl<'de> Deserialize<'de> for RawSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SourceVisitor)
    }
}

impl<'de> Deserialize<'de> for RawSources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourcesVisitor)
    }
}

struct SourcesVisitor;

impl<'de> Visitor<'de> for SourcesVisitor {
    type Value = RawSources;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with a `kind`, or a list of such tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawSources, A::Error> {
        Ok(RawSources(vec![SourceVisitor.visit_map(map)?]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawSources, A::Error> {
        let mut sources = Vec::new();
        while let Some(source) = list.next_element()? {
            sources.push(source);
        }
        Ok(RawSources(sources))
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = RawSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with a `kind`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawSource, A::Error> {
        let mut kind = None;
        let mut rate = None;
        let mut steps = Vec::new();
        let mut length = None;
        let mut video = RawVideo::default();
        let mut model = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "kind" => kind = Some(map.next_value()?),
                "rate" => rate = Some(map.next_value()?),
                "steps" => steps = map.next_value()?,
                "length" => length = Some(map.next_value()?),
                "peak" => video.peak = Some(map.next_value()?),
                "cv" => video.cv = Some(map.next_value()?),
                "frame_rate" => video.frame_rate = Some(map.next_value()?),
                "pattern" => video.pattern = Some(map.next_value()?),
                "trace" => video.trace = Some(map.next_value()?),
                "adapt" => video.adapt = Some(map.next_value()?),
                _ => drop(model.insert(key, map.next_value()?)),
            }
        }
        let missing = A::Error::missing_field;
        Ok(RawSource { kind: kind.ok_or_else(|| missing("kind"))?, rate, steps, length, video, model })
    }
}
