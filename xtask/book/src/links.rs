//! Checks that the links in the book's site and in other pages of the repository lead to an existing file and anchor.
//! Links to other hosts are not checked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::error::Error;
use crate::page::Page;

/// Checks all links, and that `SUMMARY.md` contains every page of the book. Prints each fault with its page. Returns
/// the number of links, or an error if there is a fault.
pub(crate) fn check(docs: &Path, site: &Path, pages: &[PathBuf]) -> Result<usize, Error> {
    let sources = docs.join("src");
    let mut faults: Vec<String> = Vec::new();
    let html = read(site, &files(site, "html")?, Page::of_html)?;
    for source in files(&sources, "md")? {
        let is_shown = html.contains_key(&source.with_extension("html")) || source == Path::new("SUMMARY.md");
        if !is_shown {
            faults.push(format!("docs/src/{}: not in SUMMARY.md, so nobody finds it", source.display()));
        }
    }
    let mut count = 0;
    for (path, page) in &html {
        count += page.links.len();
        let wrong = page.links.iter().filter_map(|link| fault(link, path, &|target| target_in(site, &html, target)));
        faults.extend(wrong.map(|fault| format!("{}: {fault}", path.display())));
    }
    let root = docs.parent().unwrap_or(docs);
    let relative = |page: &PathBuf| page.strip_prefix(root).unwrap_or(page).to_owned();
    let pages = read(root, &pages.iter().map(relative).collect::<Vec<_>>(), Page::of_markdown)?;
    for (path, page) in &pages {
        count += page.links.len();
        let target = |target: &Path| {
            let in_book = root.join(target).strip_prefix(&sources).ok().map(|page| page.with_extension("html"));
            let in_book = in_book.filter(|page| html.contains_key(page));
            in_book.map_or_else(|| target_in(root, &pages, target), |page| target_in(site, &html, &page))
        };
        let wrong = page.links.iter().filter_map(|link| fault(link, path, &target));
        faults.extend(wrong.map(|fault| format!("{}: {fault}", path.display())));
    }
    faults.sort();
    faults.dedup();
    for fault in &faults {
        println!("{fault}");
    }
    if faults.is_empty() { Ok(count) } else { Err(Error::Links { count: faults.len() }) }
}

/// What exists at the path of a link.
enum Target<'p> {
    /// Neither a file nor a folder.
    Nothing,
    /// A folder, or a file that was not parsed.
    File,
    /// A page that was parsed.
    Page(&'p Page),
}

fn target_in<'p>(root: &Path, pages: &'p BTreeMap<PathBuf, Page>, target: &Path) -> Target<'p> {
    match pages.get(target) {
        Some(page) => Target::Page(page),
        None if root.join(target).exists() => Target::File,
        None => Target::Nothing,
    }
}

/// Returns what is wrong with a link on the page `from`; `None` if the link is correct.
fn fault<'p>(link: &str, from: &Path, target: &dyn Fn(&Path) -> Target<'p>) -> Option<String> {
    // Links with a scheme (such as `https:`) and links to another host are not checked.
    let scheme = link.split_once(':').map(|(scheme, _)| scheme);
    if scheme.is_some_and(|it| it.chars().all(|it| it.is_ascii_alphanumeric() || it == '+')) || link.starts_with("//") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap_or_default();
    let Some(to) = (if path.is_empty() { Some(from.to_owned()) } else { joined(from, path) }) else {
        return Some(format!("`{link}` leads out of the pages, which may lie anywhere"));
    };
    match target(&to) {
        Target::Nothing => Some(format!("`{link}`: there is no {}", to.display())),
        Target::File | Target::Page(_) if anchor.is_empty() => None,
        Target::Page(page) if page.anchors.contains(anchor) => None,
        Target::File | Target::Page(_) => Some(format!("`{link}`: {} has no anchor `{anchor}`", to.display())),
    }
}

/// Resolves a relative path from the folder of a page; `None` if the result is outside the root.
fn joined(from: &Path, path: &str) -> Option<PathBuf> {
    let mut joined = from.parent().map(Path::to_path_buf).unwrap_or_default();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => joined.pop().then_some(())?,
            Component::Normal(name) => joined.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(joined)
}

/// Returns all files below `root` with this extension, as paths relative to `root`.
fn files(root: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        let unreadable = |source| Error::File { verb: "read", path: root.join(&folder), source };
        for entry in fs::read_dir(root.join(&folder)).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == extension) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

fn read(root: &Path, files: &[PathBuf], parse: fn(&str) -> Page) -> Result<BTreeMap<PathBuf, Page>, Error> {
    let one = |file: &PathBuf| {
        let path = root.join(file);
        let text = fs::read_to_string(&path).map_err(|source| Error::File { verb: "read", path, source })?;
        Ok((file.clone(), parse(&text)))
    };
    files.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault_of(link: &str) -> Option<String> {
        let page = Page { anchors: ["there".to_owned()].into(), links: Vec::new() };
        fault(link, Path::new("decisions/one.html"), &|target| match target.to_str() {
            Some("two.html" | "decisions/one.html") => Target::Page(&page),
            Some("picture.png") => Target::File,
            _ => Target::Nothing,
        })
    }

    #[test]
    fn what_leads_somewhere_is_no_fault() {
        for link in [
            "../two.html",
            "../two.html#there",
            "#there",
            "#",
            "../picture.png",
            "https://example.org/#x",
            "mailto:a@b.example",
            "../two.html?x#there",
        ] {
            assert_eq!(fault_of(link), None, "{link}");
        }
    }

    #[test]
    fn what_leads_nowhere_is_said_with_its_reason() {
        for (link, words) in [
            ("two.html", "there is no decisions/two.html"),
            ("../two.html#here", "two.html has no anchor `here`"),
            ("#here", "decisions/one.html has no anchor `here`"),
            ("../picture.png#x", "picture.png has no anchor `x`"),
            ("../../outside.html", "leads out"),
            ("/two.html", "leads out"),
        ] {
            assert!(fault_of(link).is_some_and(|fault| fault.contains(words)), "{link}: {:?}", fault_of(link));
        }
    }
}
