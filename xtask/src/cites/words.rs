//! Phrases that many readers may not know, and what to write instead.

use std::fmt;

use super::prose::Prose;

/// A phrase in lower case, and what to write instead.
///
/// A phrase belongs in the list if it is rare or archaic, and if no standard uses it as a term. A change that adds a
/// phrase must also correct the text in which the phrase was found.
const PHRASES: &[(&str, &str)] = &[
    ("albeit", "although"),
    ("anew", "again, or a verb with re-"),
    ("at the least", "at least"),
    ("at the most", "at most"),
    ("but for", "except for, or except"),
    ("comes to be", "becomes, or is produced"),
    ("else than", "other than"),
    ("for ever", "forever, or without end"),
    ("for want of", "without, or because there is no"),
    ("give or take", "±, or plus or minus"),
    ("gives out", "delivers, or returns"),
    ("gives whether", "returns whether"),
    ("goes by", "uses or follows; of time: passes"),
    ("heard of", "heard from, or known"),
    ("hears of", "is notified of, or learns of"),
    ("hence", "so, or therefore"),
    ("hitherto", "until now"),
    ("in vain", "without success"),
    ("is wanting", "is missing"),
    ("its like", "similar programs, or the name"),
    ("naught", "nothing, or zero"),
    ("of no account", "ignored, or irrelevant"),
    ("so many", "the number, or that many"),
    ("so much time", "the time, or that time"),
    ("speak of", "mention, describe or report"),
    ("speaks of", "mentions, describes or reports"),
    ("stood still", "stalled, or did not read"),
    ("tell of", "report"),
    ("tells of", "reports"),
    ("that are none", "that are not, or that do not exist"),
    ("the more rarely", "less often"),
    ("thence", "from there"),
    ("there are such", "they exist"),
    ("thereby", "by this, or so"),
    ("thereupon", "then, or as a result"),
    ("told of", "reported, or notified of"),
    ("under way", "in flight"),
    ("whence", "from where"),
    ("where none is", "if none is"),
    ("whereupon", "after which"),
];

/// A phrase of `PHRASES` that was found in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Number of the file's line, counted from 1, on which the phrase begins.
    pub(super) line: usize,
    phrase: &'static str,
    instead: &'static str,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is hard to read; write: {}", self.phrase, self.instead)
    }
}

/// Finds all [`PHRASES`] in the prose of a file, in upper or lower case, as whole words. Returns them in the order of
/// lines.
pub(super) fn find(prose: &Prose) -> Vec<Found> {
    // Offsets in the lower-case text are also offsets in the prose, because only ASCII letters change.
    let text = prose.text().to_ascii_lowercase();
    let mut found = Vec::new();
    for (phrase, instead) in PHRASES {
        for (at, _) in text.match_indices(phrase) {
            let before = text[..at].chars().next_back();
            let after = text[at + phrase.len()..].chars().next();
            if !before.is_some_and(is_word) && !after.is_some_and(is_word) {
                found.push(Found { line: prose.line(at), phrase, instead });
            }
        }
    }
    found.sort_by_key(|found| found.line);
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '-'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cites::prose::Form;

    fn phrases(form: Form, text: &str) -> Vec<(usize, &'static str)> {
        find(&Prose::of(form, text)).iter().map(|found| (found.line, found.phrase)).collect()
    }

    #[test]
    fn a_phrase_is_found_in_any_case_and_across_a_line_break() {
        assert_eq!(
            phrases(Form::Markdown, "So many\npackets, ten at the\nmost.\n"),
            [(1, "so many"), (2, "at the most")]
        );
        assert_eq!(
            phrases(Form::Rust, "let anew = 1; // begins anew\nlet b = \"goes by\";\n"),
            [(1, "anew"), (2, "goes by")]
        );
        assert_eq!(phrases(Form::RustComments, "/// Hence\nlet b = \"goes by\";\n"), [(1, "hence")]);
    }

    #[test]
    fn a_part_of_a_word_is_no_phrase() {
        assert_eq!(phrases(Form::Markdown, "Henceforth the_anew, no-one forgoes bytes; so  many"), []);
    }

    #[test]
    fn the_message_says_what_to_write() {
        let found = find(&Prose::of(Form::Lines, "# at the most"));
        assert_eq!(found[0].to_string(), "`at the most` is hard to read; write: at most");
    }

    /// If this test fails, an entry of the list is never found, is in the list twice, or is suggested for another
    /// entry.
    #[test]
    fn the_list_is_sorted_in_lower_case_and_contains_none_of_its_suggestions() {
        assert!(PHRASES.is_sorted_by(|(one, _), (other, _)| one < other));
        for (phrase, instead) in PHRASES {
            assert_eq!(*phrase, phrase.to_ascii_lowercase());
            assert_eq!(phrases(Form::Lines, instead), [], "{phrase}");
        }
    }
}
