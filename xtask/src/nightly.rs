//! Runs the checks that take too long to be run after every change of the code, such as all experiments of the papers,
//! long fuzzing, and the build of the distributions. A page of the book shows the last result of each check.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::Error;
use crate::process::Process;
use crate::workspace::{self, Workspace};
use crate::{book, dist, fuzz, results, smoke, web};

/// The page of the book with the results.
const PAGE: &str = "docs/src/nightly.md";
/// How long each fuzz target runs, in s.
const FUZZ_SECONDS: u32 = 600;
/// Number of random network paths that the part `paths` simulates.
const PATHS: &str = "10000";
const PAPERS: [&str; 5] = ["waki2013", "kodama2009", "subramanya2003", "tobe1999", "asvarujanon2014"];

/// A check of the nightly run.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// The complete demo of the README, with the command built for release.
    Demo,
    /// All experiments of a paper, simulated.
    Paper(&'static str),
    /// Simulations of Equipoise's own control law on random network paths.
    Paths,
    /// The playground (the web page that runs the simulator) and the HTML reports, tested in a browser.
    Web,
    /// The book as a web site, tested in a browser.
    Book,
    /// The build of the distributions, and their test on a minimal Debian system.
    Dist,
    /// Fuzzing of one target.
    Fuzz(String),
}

impl Part {
    /// The name of the part on the command line and in the table of results.
    fn name(&self) -> String {
        match self {
            Self::Demo => "demo".to_owned(),
            Self::Paper(paper) => format!("paper {paper}"),
            Self::Paths => "paths".to_owned(),
            Self::Web => "web".to_owned(),
            Self::Book => "book".to_owned(),
            Self::Dist => "dist".to_owned(),
            Self::Fuzz(target) => format!("fuzz {target}"),
        }
    }

    /// Runs the part, and returns its result as text.
    fn run(&self, workspace: &Workspace) -> Result<String, Error> {
        match self {
            Self::Demo => {
                smoke::demo(&release(workspace)?, &[])?;
                Ok("both worlds in its report".to_owned())
            }
            Self::Paper(paper) => run_paper(workspace, paper),
            Self::Paths => run_paths(workspace),
            Self::Web => web::check(workspace),
            Self::Book => {
                book::check(workspace)?;
                Ok("all links lead somewhere, no serious fault found by axe-core".to_owned())
            }
            Self::Dist => {
                let sizes = dist::run(workspace)?;
                dist::wheels(workspace)?;
                Ok(sizes)
            }
            Self::Fuzz(target) => {
                fuzz::run_target(workspace, target, FUZZ_SECONDS)?;
                Ok(format!("nothing found in {FUZZ_SECONDS} s"))
            }
        }
    }
}

/// Runs all parts whose name begins with `wanted`, and continues if a part fails. Writes each result to `PAGE`.
///
/// Returns [`Error::Usage`] if no part's name begins with `wanted`, and [`Error::Nightly`] if a part failed.
pub(crate) fn run(workspace: &Workspace, wanted: &str) -> Result<(), Error> {
    let mut parts = vec![Part::Demo];
    parts.extend(PAPERS.map(Part::Paper));
    parts.extend([Part::Paths, Part::Web, Part::Book, Part::Dist]);
    parts.extend(fuzz::targets(workspace)?.into_iter().map(Part::Fuzz));
    parts.retain(|part| part.name().starts_with(wanted));
    if parts.is_empty() {
        return Err(Error::Usage { found: format!("nightly {wanted}") });
    }
    let git = |arguments: &[&str]| workspace.program("git").arguments(arguments).output();
    let commit = git(&["rev-parse", "--short", "HEAD"])?.trim().to_owned();
    let date = Process::new("date").arguments(["-u", "+%Y-%m-%d"]).output()?.trim().to_owned();
    let mut failed = Vec::new();
    for part in parts {
        let name = part.name();
        println!("\n== {name}");
        let start = Instant::now();
        let result = part.run(workspace).unwrap_or_else(|error| {
            // Print the error message, but do not write it into the book, because it may contain paths of this machine.
            eprintln!("{name}: {error}");
            failed.push(name.clone());
            "**failed**".to_owned()
        });
        println!("{name}: {result}");
        enter(workspace, &name, &[&result, &in_words(start.elapsed()), &date, &commit])?;
    }
    if failed.is_empty() { Ok(()) } else { Err(Error::Nightly { failed }) }
}

/// Builds the command `equipoise` for release, and returns its path.
fn release(workspace: &Workspace) -> Result<std::path::PathBuf, Error> {
    workspace.cargo(["build", "--quiet", "--release", "--package", "equipoise-cli", "--bin", "equipoise"]).run()?;
    Ok(workspace.target("release/equipoise"))
}

/// Runs all experiments of a paper and stores the results, which the paper's chapter shows. Returns how many claims
/// have each verdict.
fn run_paper(workspace: &Workspace, paper: &str) -> Result<String, Error> {
    let command = release(workspace)?;
    let path = workspace.path(format!("{}/{paper}.json", results::FOLDER));
    Process::new(command).arguments(["paper", paper, "all", "--json"]).argument(&path).run()?;
    let text = workspace::read(&path)?;
    let claims: Value = serde_json::from_str(&text).map_err(|source| Error::Json { path, source })?;
    Ok(verdicts(&claims))
}

/// Simulates Equipoise's own control law on random paths. Returns the first line of the output. Bad results are not an
/// error.
fn run_paths(workspace: &Workspace) -> Result<String, Error> {
    let arguments = ["suite", "paths", "--runs", PATHS];
    let text = Process::new(release(workspace)?).arguments(arguments).output()?;
    print!("{text}");
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Returns the number of claims with each verdict, as text.
fn verdicts(paper: &Value) -> String {
    let mut counts = BTreeMap::new();
    for claim in paper["claims"].as_array().into_iter().flatten() {
        *counts.entry(claim["verdict"].as_str().unwrap_or("without a verdict")).or_insert(0) += 1;
    }
    counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", ")
}

fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 100 { format!("{seconds} s") } else { format!("{} min", (seconds + 30) / 60) }
}

/// Writes the result of a part into the book's table of results. The new row replaces the part's old row. If there is
/// no old row, the new row is appended.
fn enter(workspace: &Workspace, name: &str, cells: &[&str]) -> Result<(), Error> {
    let path = workspace.path(PAGE);
    let page = with_row(&workspace::read(&path)?, name, cells);
    fs::write(&path, page).map_err(|source| Error::File { verb: "write", path, source })
}

fn with_row(page: &str, name: &str, cells: &[&str]) -> String {
    let head = format!("| {name} |");
    // A row of a Markdown table must be one line, and a `|` in a cell would begin the next cell.
    let cells: Vec<_> = cells.iter().map(|cell| cell.replace('\n', " ").replace('|', "/")).collect();
    let row = format!("{head} {} |", cells.join(" | "));
    let mut lines: Vec<&str> = page.lines().collect();
    match lines.iter().position(|line| line.starts_with(&head)) {
        Some(at) => lines[at] = &row,
        None => lines.push(&row),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_takes_the_place_of_the_one_before() {
        let page = "# Nightly\n\n| what | result |\n| --- | --- |\n| demo | old |\n| fuzz rtp | old |\n";
        let page = with_row(page, "demo", &["new | or\nnot"]);
        assert_eq!(page.lines().nth(4), Some("| demo | new / or not |"));
        assert_eq!(with_row(&page, "fuzz rtcp", &["x"]).lines().last(), Some("| fuzz rtcp | x |"));
    }

    #[test]
    fn verdicts_are_counted() {
        let paper =
            json!({"claims": [{"verdict": "reproduced"}, {"verdict": "not reproduced"}, {"verdict": "reproduced"}]});
        assert_eq!(verdicts(&paper), "1 not reproduced, 2 reproduced");
    }

    #[test]
    fn times_are_said_in_minutes_from_100_s_on() {
        assert_eq!([99, 100, 629].map(|it| in_words(Duration::from_secs(it))), ["99 s", "2 min", "10 min"]);
    }
}
