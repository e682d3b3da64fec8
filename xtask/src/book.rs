//! Builds the book as a web site, and checks its links.

use std::path::PathBuf;

use crate::error::Error;
use crate::web;
use crate::workspace::Workspace;

/// Builds the site into `target/book`, with the playground if `web::build` has built it. Returns the site's path, or an
/// error if a link is broken.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf, Error> {
    let site = workspace.target("book");
    let book = workspace.path("docs/src");
    let pages = workspace.files("", "md")?.into_iter().filter(|page| !page.starts_with(&book));
    let program = workspace.cargo(["run", "--quiet", "--locked", "--package", "book", "--"]);
    let program = program.argument(workspace.path("docs")).argument(&site).argument(web::page(workspace));
    pages.fold(program, crate::process::Process::argument).run()?;
    Ok(site)
}

/// Builds the playground and the site, and checks some pages in Debian's Chromium: in light and dark colours, on a wide
/// screen and on a phone's screen.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    web::build(workspace)?;
    let site = build(workspace)?;
    let test = workspace.path("web/test/book.mjs");
    workspace.program("node").argument(test).argument(site).argument(workspace.target("book-pictures")).run()
}
