//! Recordings of the videos that the paper uses, if this machine has them.

use std::path::PathBuf;

use equipoise_lab::scenario::Override;

/// Name of the interpretation in which recorded videos are used.
pub(super) const RECORDED: &str = "recorded videos";
/// Pairs of a flow's name and a file's name. The files are in the folder `video` of `EQUIPOISE_TEST_DATA`.
const FILES: [(&str, &str); 3] =
    [("star-wars", "star-wars-iv.txt.gz"), ("jurassic", "jurassic-park.txt.gz"), ("soccer", "soccer.txt.gz")];

/// Returns the overrides that use the recorded videos, scaled to the mean rates of the synthetic videos; `None` if a
/// file is missing.
pub(super) fn found() -> Option<Vec<Override>> {
    let folder = PathBuf::from(std::env::var_os("EQUIPOISE_TEST_DATA")?).join("video");
    let mut overrides = Vec::new();
    for (flow, file) in FILES {
        let file = folder.join(file);
        if !file.is_file() {
            return None;
        }
        let source = |key: &str| format!("flow.{flow}.source.{key}");
        overrides.push(Override::set(source("trace"), file.to_str()?));
        overrides.extend(["peak", "cv"].map(|key| Override::remove(source(key))));
    }
    Some(overrides)
}

/// Returns a sentence about whether the recorded videos were used, for the text of a figure.
pub(super) fn words() -> &'static str {
    if found().is_some() {
        "The recorded videos stand in EQUIPOISE_TEST_DATA; each run begins them at another place."
    } else {
        "Recorded videos were left out: EQUIPOISE_TEST_DATA does not have them."
    }
}
