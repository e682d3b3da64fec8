//! Prints the results section of a book chapter in Markdown, from a file that `equipoise paper … --json` wrote.
#![allow(clippy::print_stdout, reason = "it prints a part of a page")]

use std::error::Error;
use std::fs;

use equipoise_papers::page::paper_markdown;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: chapter RESULTS.json")?;
    print!("{}", paper_markdown(&serde_json::from_str(&fs::read_to_string(path)?)?));
    Ok(())
}
