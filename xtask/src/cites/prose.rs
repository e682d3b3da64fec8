//! Extracts the prose of a file: comments, the strings of Rust code, and the text of Markdown. Line breaks within a
//! sentence are replaced by spaces.

/// How the prose of a file is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Rust: comments and string literals.
    Rust,
    /// Rust, but only comments. String literals are not checked, because recorded results contain them.
    RustComments,
    /// Markdown, except fenced code blocks and generated results.
    Markdown,
    /// Other files, such as Python. Every line is treated as prose.
    Lines,
}

/// The prose of a file, with the offsets at which the lines of the file begin.
///
/// A line break within a comment, a string or a paragraph becomes a space, so that a phrase with a line break is found,
/// too. Different comments, strings and paragraphs are separated by newlines.
#[derive(Debug, Default)]
pub(super) struct Prose {
    text: String,
    /// Offsets in `text` at which the lines of the file begin, from the second line on.
    lines: Vec<usize>,
}

impl Prose {
    /// Extracts the prose of a file.
    pub(super) fn of(form: Form, text: &str) -> Self {
        let mut prose = Self::default();
        match form {
            Form::Rust => prose.read_rust(text, true),
            Form::RustComments => prose.read_rust(text, false),
            Form::Markdown => prose.read_markdown(text),
            Form::Lines => text.lines().for_each(|line| prose.read_line(line)),
        }
        prose
    }

    /// Returns the prose as one text, with newlines between unrelated parts.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the line number in the file, counted from 1, of the character at `offset` in the prose.
    pub(super) fn line(&self, offset: usize) -> usize {
        1 + self.lines.partition_point(|begin| *begin <= offset)
    }

    /// Returns the offset in `text` at which the current line begins.
    fn line_begin(&self) -> usize {
        self.lines.last().copied().unwrap_or(0)
    }

    /// Adds a character to the prose. Markers of comments, lists and quotes at the beginning of a line are skipped.
    fn push(&mut self, letter: char) {
        let is_first = self.text.len() == self.line_begin();
        if !(is_first && matches!(letter, ' ' | '\t' | '/' | '!' | '*' | '#' | '>' | '-')) {
            self.text.push(letter);
        }
    }

    /// Ends the current part of the prose with a newline.
    fn separate(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Ends a line of the file. A line without prose separates paragraphs.
    fn end_line(&mut self) {
        if self.text.len() == self.line_begin() {
            self.separate();
        } else if !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
        self.lines.push(self.text.len());
    }

    fn read_line(&mut self, line: &str) {
        line.trim_end().chars().for_each(|letter| self.push(letter));
        self.end_line();
    }

    fn read_markdown(&mut self, text: &str) {
        let (mut fenced, mut generated) = (false, false);
        for line in text.lines() {
            let is_fence = line.trim_start().starts_with("```");
            fenced ^= is_fence;
            if line.starts_with("<!-- results") {
                generated = true;
            } else if line.starts_with("<!-- end of results") || line.starts_with("<!-- /results") {
                generated = false;
            }
            let is_hidden = fenced || generated || is_fence || line.starts_with("<!--");
            self.read_line(if is_hidden { "" } else { line });
        }
    }

    fn read_rust(&mut self, text: &str, with_strings: bool) {
        let mut state = State::Code;
        let mut rest = text;
        let mut before = ' ';
        while let Some(letter) = rest.chars().next() {
            let mut length = letter.len_utf8();
            if letter == '\n' {
                self.end_line();
                if state == State::Comment {
                    state = State::Code;
                }
            } else {
                match state {
                    State::Code => {
                        let token = Token::of(rest, before);
                        (state, length) = (token.state, token.length);
                        if !letter.is_whitespace() && state != State::Comment {
                            self.separate();
                        }
                    }
                    State::Block if rest.starts_with("*/") => (state, length) = (State::Code, 2),
                    State::Comment | State::Block => self.push(letter),
                    State::Text if letter == '\\' => {
                        // Skip the escaped character. Do not skip a line break, because `end_line` must be called for
                        // it.
                        let escaped = rest[length..].chars().next().filter(|escaped| *escaped != '\n');
                        length += escaped.map_or(0, char::len_utf8);
                        if escaped == Some('n') && with_strings {
                            self.separate();
                        }
                    }
                    State::Text if letter == '"' => state = State::Code,
                    State::Raw { hashes } if letter == '"' && hash_count(&rest[1..]) >= hashes => {
                        (state, length) = (State::Code, 1 + hashes);
                    }
                    State::Text | State::Raw { .. } if with_strings => self.push(letter),
                    State::Text | State::Raw { .. } => {}
                }
            }
            before = letter;
            rest = &rest[length..];
        }
    }
}

/// The kind of text to which a character of Rust code belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Code, which is not prose.
    Code,
    /// A comment to the end of the line.
    Comment,
    /// A comment between `/*` and `*/`. Nested comments are not supported, because the project has none.
    Block,
    /// A string literal.
    Text,
    /// A raw string literal, which ends with a quote and this number of hashes.
    Raw { hashes: usize },
}

/// A token of Rust code: the state after the token, and the token's length in bytes.
#[derive(Clone, Copy, Debug)]
struct Token {
    state: State,
    length: usize,
}

impl Token {
    /// Returns the token at the beginning of `rest`. `before` is the character before the token.
    fn of(rest: &str, before: char) -> Self {
        let token = |state, length| Self { state, length };
        if rest.starts_with("//") {
            return token(State::Comment, 2);
        }
        if rest.starts_with("/*") {
            return token(State::Block, 2);
        }
        if rest.starts_with('"') {
            return token(State::Text, 1);
        }
        let is_prefix = before.is_alphanumeric() && before != 'b' || before == '_';
        if let Some(tail) = rest.strip_prefix('r').filter(|_| !is_prefix) {
            let hashes = hash_count(tail);
            if tail[hashes..].starts_with('"') {
                return token(State::Raw { hashes }, 2 + hashes);
            }
        }
        token(State::Code, quoted_length(rest).or_else(|| rest.chars().next().map(char::len_utf8)).unwrap_or(1))
    }
}

fn hash_count(text: &str) -> usize {
    text.len() - text.trim_start_matches('#').len()
}

/// Returns the length in bytes of the character literal at the beginning of `rest`, such as `'"'`. Returns `None` if
/// `rest` begins with something else, such as a lifetime.
fn quoted_length(rest: &str) -> Option<usize> {
    let tail = rest.strip_prefix('\'')?;
    let mut letters = tail.chars();
    let first = letters.next()?;
    if first == '\\' {
        let escaped = 1 + letters.next()?.len_utf8();
        return Some(1 + escaped + tail[escaped..].find('\'')? + 1);
    }
    (letters.next()? == '\'').then(|| 2 + first.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts of the prose, each with the number of the line on which it begins.
    fn parts(form: Form, text: &str) -> Vec<(usize, String)> {
        let prose = Prose::of(form, text);
        let mut offset = 0;
        let mut parts = Vec::new();
        for part in prose.text().split('\n') {
            if !part.trim().is_empty() {
                parts.push((prose.line(offset), part.trim().to_owned()));
            }
            offset += part.len() + 1;
        }
        parts
    }

    fn owned(parts: &[(usize, &str)]) -> Vec<(usize, String)> {
        parts.iter().map(|(line, part)| (*line, (*part).to_owned())).collect()
    }

    /// If this test fails, a phrase that continues on the next line of a comment or a string is not found.
    #[test]
    fn comments_and_strings_of_rust_are_prose_across_their_lines() {
        let code = "//! One\n//! two.\n\nfn any() {\n    // three\n    // four\n    say(\"five \\\n         six\", r#\"a \"b\"\n c\"#);\n}\n";
        let found = [(1, "One two."), (5, "three four"), (7, "five six"), (8, "a \"b\" c")];
        assert_eq!(parts(Form::Rust, code), owned(&found));
        assert_eq!(parts(Form::RustComments, code), owned(&found[..2]));
    }

    /// If this test fails, a character literal or a lifetime makes the code after it count as a string.
    #[test]
    fn characters_and_lifetimes_open_no_string() {
        let code = "let q = '\"'; let e = '\\''; let s: &'static str = \"a\\\"b\\nc // d\"; // e\n";
        assert_eq!(parts(Form::Rust, code), owned(&[(1, "ab"), (1, "c // d"), (1, "e")]));
        let url = "let r#type = br\"u\"; /* v\n * w */ x();\n";
        assert_eq!(parts(Form::Rust, url), owned(&[(1, "u"), (1, "v w")]));
    }

    /// If this test fails, recorded numbers and the output of programs are checked for phrases.
    #[test]
    fn code_blocks_and_generated_results_of_markdown_are_no_prose() {
        let page =
            "# A\n\nOne\ntwo.\n\n```text\ncode\n```\nthree\n<!-- results a -->\n4\n<!-- end of results -->\n- five\n";
        assert_eq!(parts(Form::Markdown, page), owned(&[(1, "A"), (3, "One two."), (9, "three"), (13, "five")]));
    }

    #[test]
    fn every_line_of_another_file_is_prose() {
        assert_eq!(parts(Form::Lines, "# one\n# two\n\nx = 3\n"), owned(&[(1, "one two"), (4, "x = 3")]));
    }
}
