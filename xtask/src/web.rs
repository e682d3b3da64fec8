//! Builds and tests web pages: the playground, which runs the simulator in the browser, and HTML reports.

use std::fs;
use std::path::PathBuf;

use crate::error::Error;
use crate::workspace::Workspace;

/// The Rust target for WebAssembly in web browsers.
const TARGET: &str = "wasm32-unknown-unknown";
/// Maximum size of the playground's page, in bytes. A phone downloads a page of this size in some seconds.
const MOST: u64 = 3_000_000;

/// Returns the path of the playground's page after it was built.
pub(crate) fn page(workspace: &Workspace) -> PathBuf {
    workspace.target("playground/playground.html")
}

/// Builds the playground's page. Returns its path, and its size as text.
pub(crate) fn build(workspace: &Workspace) -> Result<(PathBuf, String), Error> {
    workspace.program("rustup").arguments(["target", "add", TARGET]).run()?;
    let build = ["build", "--profile", "web", "--locked", "--package", "equipoise-web", "--target", TARGET];
    workspace.cargo(build).run()?;
    let (wasm, folder) = (workspace.target(TARGET).join("web/equipoise_web.wasm"), workspace.target("playground"));
    workspace
        .cargo(["run", "--quiet", "--package", "web", "--"])
        .argument(&wasm)
        .argument(folder.join("glue"))
        .run()?;
    let sources = workspace.path("web");
    workspace.program("npm").arguments(["ci", "--no-audit", "--no-fund"]).folder(&sources).run()?;
    let page = page(workspace);
    workspace
        .program("node")
        .argument(sources.join("build.mjs"))
        .argument(folder.join("glue"))
        .argument(&page)
        .folder(&sources)
        .run()?;
    let size = fs::metadata(&page).map_err(|source| Error::File { verb: "read", path: page.clone(), source })?.len();
    let words = format!("{:.2} MB", size as f64 / 1e6);
    println!("{}: {words}", page.display());
    if size > MOST {
        return Err(Error::TooLarge { file: page, size, most: MOST });
    }
    Ok((page, words))
}

/// Builds the playground's page, and tests it in Debian's Chromium. The page must show the values that the command
/// `equipoise` computes. Returns the page's size as text.
pub(crate) fn check_page(workspace: &Workspace) -> Result<String, Error> {
    let (page, size) = build(workspace)?;
    let test = workspace.program("node").argument(workspace.path("web/test/page.mjs")).argument(page);
    test.argument(workspace.build_command()?).argument(workspace.target("playground")).run()?;
    Ok(size)
}

/// Tests the playground's page, and each kind of HTML report, in Chromium. Returns the size of the playground's page as
/// text.
pub(crate) fn check(workspace: &Workspace) -> Result<String, Error> {
    let size = check_page(workspace)?;
    let test = workspace.program("node").argument(workspace.path("web/test/report.mjs"));
    let test = test.argument(workspace.build_command()?).argument(workspace.path("scenarios"));
    test.argument(workspace.target("playground")).run()?;
    Ok(size)
}
