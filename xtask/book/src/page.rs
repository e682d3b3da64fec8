//! Finds the links and the anchors of an HTML or Markdown page.

use std::cell::RefCell;
use std::collections::BTreeSet;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};
use pulldown_cmark::{Event, Options, Parser};

/// The anchors and the links of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// The anchors of the page, as used after the `#` of a link.
    pub(crate) anchors: BTreeSet<String>,
    /// The targets of all links and resources of the page, as written in the page.
    pub(crate) links: Vec<String>,
}

impl Page {
    /// Parses an HTML page of the book's site.
    pub(crate) fn of_html(text: &str) -> Self {
        let collector = Collector::default();
        let tokenizer = Tokenizer::new(collector, html5ever::tokenizer::TokenizerOpts::default());
        let queue = BufferQueue::default();
        queue.push_back(StrTendril::from(text));
        let _ = tokenizer.feed(&queue);
        tokenizer.end();
        tokenizer.sink.page.into_inner()
    }

    /// Parses a Markdown page of the repository. The result has no anchors, because they depend on the program that
    /// shows the page.
    pub(crate) fn of_markdown(text: &str) -> Self {
        let link = |event| match event {
            Event::Start(pulldown_cmark::Tag::Link { dest_url, .. } | pulldown_cmark::Tag::Image { dest_url, .. }) => {
                Some(dest_url.into_string())
            }
            _ => None,
        };
        let links = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(link).collect();
        Self { anchors: BTreeSet::new(), links }
    }
}

/// Collects the anchors and the links while html5ever parses a page.
#[derive(Default)]
struct Collector {
    page: RefCell<Page>,
}

impl TokenSink for Collector {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(Tag { kind: TagKind::StartTag, name, attrs, .. }) = token else {
            return TokenSinkResult::Continue;
        };
        let mut page = self.page.borrow_mut();
        for attribute in attrs {
            let value = attribute.value.to_string();
            match &*attribute.name.local {
                "id" => drop(page.anchors.insert(value)),
                "href" | "src" => page.links.push(value),
                _ => {}
            }
        }
        // Do not look for tags inside a script, because its text may look like tags.
        if &*name == "script" {
            return TokenSinkResult::RawData(html5ever::tokenizer::states::RawKind::ScriptData);
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_read_as_a_browser_does() {
        let text = "<h2 id=\"a-b\"><a class='x' href=#a-b>A &amp; b</a></h2><img src='c.png'><!-- <a href='no'> -->\
                    <script>const no = \"<a href='no'>\";</script><script src=\"d.js\"></script><a href=\"e.html?x&amp;y#z\">e</a>";
        let page = Page::of_html(text);
        assert_eq!(page.anchors, BTreeSet::from(["a-b".to_owned()]));
        assert_eq!(page.links, ["#a-b", "c.png", "d.js", "e.html?x&y#z"]);
    }

    #[test]
    fn markdown_in_tables_and_references_is_read_and_code_is_not() {
        let text = "| a |\n| --- |\n| [x](y.md#z) |\n\n`[no](no.md)` ![p](p.png) [r]\n\n[r]: r.md\n";
        assert_eq!(Page::of_markdown(text).links, ["y.md#z", "p.png", "r.md"]);
    }
}
