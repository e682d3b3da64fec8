//! Reads the file that `equipoise suite … --json` wrote, and prints the suite's results as a Markdown table. If the
//! suite has bars (pass criteria), prints the table of the bars instead.
#![allow(clippy::print_stdout, reason = "it prints a part of a page")]

use std::error::Error;
use std::fs;

use equipoise_lab::suite::SuiteResult;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: suite RESULTS.json")?;
    let result: SuiteResult = serde_json::from_str(&fs::read_to_string(path)?)?;
    let has_bars = !result.bars.is_empty();
    print!("{}", if has_bars { result.bars_to_markdown() } else { result.to_markdown() });
    Ok(())
}
