//! Excerpts of a scenario file for error messages. Each excerpt is long enough to find the error, and its length is
//! limited whatever the file contains.

/// Maximum number of characters of a line that an error message quotes.
const LINE: usize = 100;
/// Maximum number of characters of a value that an error message quotes.
const VALUE: usize = 80;
/// Maximum number of characters of a message from the parser. Without this limit, a message that quotes the file could
/// be very long. A message that lists all keys of a flow is shorter than the limit.
const MESSAGE: usize = 600;
const CUT: char = '…';

/// A position in a text, as line and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Line of the position, counted from 1.
    pub(super) line: usize,
    /// Column of the position in the line, counted from 1.
    pub(super) column: usize,
}

impl Place {
    /// Returns the position of a byte offset in a text.
    pub(super) fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |line_break| line_break + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        Self { line: before.matches('\n').count() + 1, column }
    }

    /// Returns the byte offset of this position in a text. If the text has no such position, returns the offset of the
    /// text's end.
    pub(super) fn byte(self, text: &str) -> usize {
        let line_start: usize = text.split_inclusive('\n').take(self.line - 1).map(str::len).sum();
        let line = text.get(line_start..).unwrap_or_default();
        line_start + line.char_indices().nth(self.column - 1).map_or(line.len(), |(byte, _)| byte)
    }
}

/// Returns a value as written, but only its first line, shortened to a readable length.
pub(super) fn value(text: &str) -> String {
    let (first, rest) = text.split_once('\n').map_or((text, ""), |(first, rest)| (first.trim_end(), rest));
    match first.char_indices().nth(VALUE) {
        Some((end, _)) => format!("{}{CUT}", first.get(..end).unwrap_or_default()),
        None if rest.trim().is_empty() => first.to_owned(),
        None => format!("{first} {CUT}"),
    }
}

/// Returns the line at a position, shortened to a readable length around the position. Below the line, a mark shows the
/// position.
pub(super) fn line(text: &str, place: Place) -> String {
    let line: Vec<char> = text.lines().nth(place.line - 1).unwrap_or_default().chars().collect();
    let at = (place.column - 1).min(line.len());
    let start = at.saturating_sub(LINE / 2).min(line.len().saturating_sub(LINE));
    let end = (start + LINE).min(line.len());
    let shown: String = line.get(start..end).unwrap_or_default().iter().collect();
    let cut = |is_cut: bool| if is_cut { CUT.to_string() } else { String::new() };
    let (before, behind) = (cut(start > 0), cut(end < line.len()));
    format!("{before}{shown}{behind}\n{}^", " ".repeat(at - start + before.chars().count()))
}

/// Returns a message, without its middle if it is too long. The beginning of a message says what is wrong, and the end
/// says what would be valid.
pub(super) fn message(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= MESSAGE {
        return text.to_owned();
    }
    let (head, tail) = (&letters[..VALUE], &letters[letters.len() - (MESSAGE - VALUE)..]);
    head.iter().chain([&CUT]).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_around_its_place_and_marked_there() {
        let text = format!("short = 1\n{}X{}\n", "a".repeat(5000), "b".repeat(5000));
        let place = Place::of(&text, 10 + 5000);
        assert_eq!(place, Place { line: 2, column: 5001 });
        let shown = line(&text, place);
        let (excerpt, mark) = shown.split_once('\n').expect("two lines");
        assert_eq!((excerpt.chars().count(), mark.chars().count()), (LINE + 2, LINE / 2 + 2));
        assert_eq!(excerpt.chars().nth(mark.chars().count() - 1), Some('X'));
        assert_eq!(line(&text, Place::of(&text, 8)), "short = 1\n        ^");
        assert_eq!(line("", Place::of("", 0)), "\n^");
        for (text, byte) in [(text.as_str(), 5010), (text.as_str(), 3), ("µ = 1\nµµ", 9), ("a\n", 2), ("", 0)] {
            assert_eq!(Place::of(text, byte).byte(text), byte, "there and back");
        }
    }

    #[test]
    fn values_are_one_line_and_messages_keep_both_ends() {
        assert_eq!(value("\"4 ms\""), "\"4 ms\"");
        assert_eq!(value("[\n  1,\n]"), "[ …");
        assert_eq!(value(&"x".repeat(81)), format!("{}…", "x".repeat(80)));
        let cut = message(&format!("unknown field `{}`, expected `name`", "x".repeat(10_000)));
        assert!(cut.starts_with("unknown field `xx") && cut.ends_with("expected `name`") && cut.chars().count() <= 601);
    }
}
