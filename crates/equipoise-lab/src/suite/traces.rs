//! The suite `traces`: makes a case of each recorded link in a folder.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use equipoise::units::{Rate, Span};

use super::{Item, SuiteError};
use crate::capacity::{steps_capacity, trace_capacity};
use crate::scenario::Override;

/// The name of the suite.
pub const NAME: &str = "traces";
/// The name of the variant of each trace: one flow of media over the recorded link.
pub const VARIANT: &str = "media";

const TEXT: &str = include_str!("trace.toml");

/// Settings of the flow that runs over each trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Length of a run. If a trace in Mahimahi's format is shorter, it is repeated. After the end of a CSV file, the
    /// last rate in the file applies.
    pub duration: Span,
    /// The maximum rate of the media and of their controller.
    pub max_rate: Rate,
}

impl Default for Settings {
    fn default() -> Self {
        Self { duration: Span::from_secs(60), max_rate: Rate::from_bps(5_000_000) }
    }
}

/// The format of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Mahimahi's format, a list of delivery opportunities.
    Mahimahi,
    /// Lines that contain a time and a rate.
    Csv,
}

/// Returns an item for each trace in a folder, in the order of the file names. Folders, hidden files, backup files
/// (`~`), and files whose name shows that they are texts about the traces (`README`, `LICENSE`, `COPYING`, `.md`,
/// `.json`, `.toml`) are ignored.
///
/// Files whose name ends with `.csv` or `.csv.gz` contain lines of `time_s,rate_mbps`, or a table with the columns
/// `Timestamp` and `DL_bitrate` ([`rate_steps`](equipoise_path::link::rate_steps)). The remaining files have Mahimahi's
/// format.
///
/// # Errors
/// [`SuiteError::Folder`], [`SuiteError::NoTraces`], [`SuiteError::Trace`] for a file that is not a trace, and
/// [`SuiteError::FileName`].
pub fn items(folder: &Path, settings: &Settings) -> Result<Vec<Item>, SuiteError> {
    let unreadable = |source| SuiteError::Folder { folder: folder.to_path_buf(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() && !is_about_traces(&path) {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(SuiteError::NoTraces { folder: folder.to_path_buf() });
    }
    files.iter().map(|file| item(file, settings)).collect()
}

fn is_about_traces(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_named = |start: &&str| name.starts_with(*start);
    let ends = |end: &&str| name.ends_with(*end);
    [".", "readme", "license", "copying"].iter().any(is_named) || [".md", ".json", ".toml", "~"].iter().any(ends)
}

fn format(file: &Path) -> Format {
    let packed = file.extension() == Some(OsStr::new("gz"));
    let unpacked = if packed { file.with_extension("") } else { PathBuf::from(file) };
    let is_csv = unpacked.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    if is_csv { Format::Csv } else { Format::Mahimahi }
}

fn item(file: &Path, settings: &Settings) -> Result<Item, SuiteError> {
    let wrong = |source| SuiteError::Trace { file: file.to_path_buf(), source };
    let format = format(file);
    // The file will be read again together with its scenario. Reading the file here as well returns a more precise
    // error if the file is invalid.
    match format {
        Format::Mahimahi => trace_capacity(file, Span::ZERO),
        Format::Csv => steps_capacity(file, Span::ZERO),
    }
    .map_err(wrong)?;
    let not_utf8 = || SuiteError::FileName { file: file.to_path_buf() };
    let path = file.to_str().ok_or_else(not_utf8)?;
    let name = file.file_name().and_then(OsStr::to_str).ok_or_else(not_utf8)?;
    let key = if format == Format::Csv { "link.path.rate_csv" } else { "link.path.rate_trace" };
    let most = settings.max_rate.to_string();
    Ok(Item {
        case: name.to_owned(),
        title: format!("One flow over {name}"),
        variant: VARIANT.to_owned(),
        text: TEXT.into(),
        overrides: vec![
            Override::remove("link.path.rate"),
            Override::set(key, path),
            Override::set("duration", settings.duration.to_string()),
            Override::set("flow.S1.controller.max_rate", most.clone()),
            Override::set("flow.S1.source.0.max_rate", most),
        ],
        needs: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_an_item_a_trace_in_the_order_of_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writable");
        let all = |folder: &Path| items(folder, &Settings::default());
        assert!(matches!(all(folder.path()), Err(SuiteError::NoTraces { .. })));
        assert!(matches!(all(&folder.path().join("missing")), Err(SuiteError::Folder { .. })));
        write("b.down", "5\n10\n");
        write("a.csv", "0,5\n10,2\n");
        write("README.md", "what these are");
        fs::create_dir(folder.path().join("more")).expect("a folder in it");
        let found: Vec<_> = all(folder.path()).expect("two traces").into_iter().map(|item| item.case).collect();
        assert_eq!(found, ["a.csv", "b.down"]);
        write("c.up", "never");
        let refused = all(folder.path()).expect_err("no trace");
        assert!(refused.to_string().ends_with("c.up is no trace"), "{refused}");
    }
}
