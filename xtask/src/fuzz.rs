//! Runs every fuzz target for a limited time.

use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// Default time for which each target is run, in s.
pub(crate) const DEFAULT_SECONDS: u32 = 60;

/// Runs each fuzz target for `seconds`, one after the other.
pub(crate) fn run(workspace: &Workspace, seconds: u32) -> Result<(), Error> {
    for target in targets(workspace)? {
        println!("\n== {target}, {seconds} s");
        run_target(workspace, &target, seconds)?;
    }
    Ok(())
}

/// Returns the names of all fuzz targets.
pub(crate) fn targets(workspace: &Workspace) -> Result<Vec<String>, Error> {
    let files = workspace.files("fuzz/fuzz_targets", "rs")?;
    Ok(files.iter().filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect())
}

/// Runs one fuzz target for `seconds`.
pub(crate) fn run_target(workspace: &Workspace, target: &str, seconds: u32) -> Result<(), Error> {
    // Use the `cargo` of rustup, not the cargo that runs this program, because only rustup's `cargo` understands
    // `+nightly`.
    let cargo = |arguments: &[&str]| {
        let proxy = Process::new("cargo").folder(workspace.path("")).arguments(["+nightly"]).arguments(arguments);
        ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC"].into_iter().fold(proxy, Process::without)
    };
    if !cargo(&["--version"]).succeeds() {
        return Err(Error::Tool {
            task: "fuzzing",
            tool: "a nightly toolchain",
            remedy: "rustup toolchain install nightly",
        });
    }
    if !cargo(&["fuzz", "--version"]).succeeds() {
        return Err(Error::Tool { task: "fuzzing", tool: "cargo-fuzz", remedy: "cargo install cargo-fuzz" });
    }
    cargo(&["fuzz", "run", target, "--", &format!("-max_total_time={seconds}")]).run()
}
