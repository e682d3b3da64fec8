//! Finds the cites in a line of text, and checks their form.

use std::fmt;

use super::known::{DRAFTS, PAPERS, RFCS};

/// What is wrong with a cite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The source is not in the list of known sources.
    Stranger(String),
    /// The cite is not in the standard form.
    Form {
        /// The text of the cite.
        found: String,
        /// An example of the standard form.
        want: &'static str,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stranger(name) => write!(f, "`{name}` is not a known source"),
            Self::Form { found, want } => write!(f, "`{found}` is not the form of a cite; write as in `{want}`"),
        }
    }
}

/// Words that may precede a year and are not the name of an author.
const NOT_AUTHORS: &[&str] = &[
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
    "In",
    "Since",
    "Until",
    "Before",
    "After",
    "Copyright",
];

/// Standard abbreviations for a part of a source, such as a section.
const PLACES: &[&str] = &["Sec. ", "Eq. ", "Fig. ", "Table ", "Alg. ", "App. "];

/// All spellings for a part of a source, in lower case and without the full stop.
const SPELLINGS: &[&str] = &[
    "sec",
    "sect",
    "section",
    "sections",
    "eq",
    "eqs",
    "equation",
    "equations",
    "fig",
    "figs",
    "figure",
    "figures",
    "table",
    "tables",
    "alg",
    "algorithm",
    "app",
    "appendix",
    "p",
    "pp",
    "page",
];

/// Returns a result for each cite in the line: `Ok` if the cite is correct, otherwise what is wrong.
pub(super) fn cites(line: &str) -> Vec<Result<(), Fault>> {
    let mut found = Vec::new();
    for (at, _) in line.char_indices() {
        let begins = !line[..at].chars().next_back().is_some_and(is_word);
        if !begins {
            continue;
        }
        let rest = &line[at..];
        found.extend(rfc(rest).or_else(|| draft(rest)).or_else(|| paper(rest)));
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '-' || letter == '/'
}

fn digits(text: &str) -> &str {
    &text[..text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len())]
}

fn rfc(rest: &str) -> Option<Result<(), Fault>> {
    let tail = rest.strip_prefix("RFC")?;
    let number_at = tail.find(|letter: char| letter != ' ' && letter != '-')?;
    let number = digits(&tail[number_at..]);
    if number.is_empty() {
        return None;
    }
    let cite = &rest[..3 + number_at + number.len()];
    if &tail[..number_at] != " " {
        return Some(Err(Fault::Form { found: cite.to_string(), want: "RFC 3550, Sec. 6.4.1" }));
    }
    if !RFCS.iter().any(|(known, _)| known.to_string() == number) {
        return Some(Err(Fault::Stranger(cite.to_string())));
    }
    Some(place(rest, cite.len(), "RFC 3550, Sec. 6.4.1"))
}

fn draft(rest: &str) -> Option<Result<(), Fault>> {
    let end = rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-')).unwrap_or(rest.len());
    let name = &rest[..end];
    // The name of an Internet draft has at least two hyphens. With fewer hyphens, it is another word that begins with
    // `draft-`.
    if !name.starts_with("draft-") || name.matches('-').count() < 2 {
        return None;
    }
    if !DRAFTS.iter().any(|(known, _)| *known == name) {
        return Some(Err(Fault::Stranger(name.to_string())));
    }
    Some(place(rest, end, "draft-name-01, Sec. 3"))
}

fn paper(rest: &str) -> Option<Result<(), Fault>> {
    const WANT: &str = "Waki 2013, Eq. 15";
    let name = &rest[..rest.find(|letter: char| !letter.is_alphabetic()).unwrap_or(rest.len())];
    if !name.starts_with(char::is_uppercase) || name.chars().count() < 2 || NOT_AUTHORS.contains(&name) {
        return None;
    }
    let tail = &rest[name.len()..];
    let is_author = PAPERS.iter().any(|(handle, _)| handle.split(' ').next() == Some(name));
    if is_author && tail.starts_with(" et al") {
        return Some(Err(Fault::Form { found: format!("{name} et al."), want: WANT }));
    }
    let year_at = tail.find(|letter: char| letter.is_ascii_digit())?;
    let (between, year) = (&tail[..year_at], digits(&tail[year_at..]));
    if year.len() != 4 || !(year.starts_with("19") || year.starts_with("20")) {
        return None;
    }
    let cite = &rest[..name.len() + year_at + year.len()];
    match between {
        " " if PAPERS.iter().any(|(handle, _)| *handle == cite) => Some(place(rest, cite.len(), WANT)),
        " " => Some(Err(Fault::Stranger(cite.to_string()))),
        " (" | ", " | ", (" | " [" if is_author => Some(Err(Fault::Form { found: cite.to_string(), want: WANT })),
        _ => None,
    }
}

/// Returns an error if a section, equation or figure follows the cite, but not in the standard form. The cite is the
/// first `length` bytes of `rest`.
fn place(rest: &str, length: usize, want: &'static str) -> Result<(), Fault> {
    let tail = &rest[length..];
    let named = tail.trim_start_matches([' ', '(', ':', ',']);
    let is_ours = tail.starts_with(", ") && PLACES.iter().any(|place| named.starts_with(place));
    if is_ours || named.len() == tail.len() || !is_place(named) {
        return Ok(());
    }
    let end = tail.char_indices().nth(14).map_or(tail.len(), |(at, _)| at);
    Err(Fault::Form { found: rest[..length + end].trim_end().to_string(), want })
}

/// Whether `text` begins with a reference to a part of a source, in any spelling: `§`, or a word such as `section` that
/// is followed by a number or by the letter of an appendix.
fn is_place(text: &str) -> bool {
    if text.starts_with('§') {
        return true;
    }
    let word = &text[..text.find(|letter: char| !letter.is_alphabetic()).unwrap_or(text.len())];
    let tail = text[word.len()..].trim_start_matches(['.', ' ']);
    let mut letters = tail.chars();
    let is_numbered = match (letters.next(), letters.next()) {
        (Some(first), _) if first.is_ascii_digit() => true,
        (Some(first), second) => first.is_ascii_uppercase() && !second.is_some_and(char::is_alphabetic),
        (None, _) => false,
    };
    is_numbered && SPELLINGS.contains(&word.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(line: &str) -> Vec<Fault> {
        cites(line).into_iter().filter_map(Result::err).collect()
    }

    #[test]
    fn the_one_form_is_accepted_wherever_it_stands() {
        for line in [
            "/// Source: Waki 2013, Eq. 15, 16: `da = (T - d) / (b * var)`.",
            "as RFC 3550, Sec. 6.4.1 and App. A.1 say (RFC 3550, App. A.1)",
            "the table of Waki 2013, Table 3; also Waki 2013, Fig. 10/11, and RFC 8285.",
            "draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 3",
            "Waki 2013 is silent, and RFC 3550 has it",
            "Welford 1962 for a number, Chan 1983, Eq. 2.1 for two",
        ] {
            assert!(!cites(line).is_empty(), "{line}: not even seen");
            assert_eq!(faults(line), [], "{line}");
        }
    }

    #[test]
    fn strangers_are_named() {
        for (line, name) in [
            ("see Nobody 2013, Eq. 3", "Nobody 2013"),
            ("Waki 2014, Eq. 3", "Waki 2014"),
            ("as RFC 9999, Sec. 1 wants", "RFC 9999"),
            ("draft-nobody-knows-00", "draft-nobody-knows-00"),
        ] {
            assert_eq!(faults(line), [Fault::Stranger(name.to_string())], "{line}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for line in [
            "RFC3550, Sec. 6",
            "RFC-3550",
            "RFC 3550 Section 6",
            "RFC 3550, section 6",
            "RFC 3550 App. A.1",
            "RFC 3550, Sec 6",
            "Waki (2013)",
            "(Waki, 2013)",
            "Waki et al. found",
            "Waki 2013 Eq. 15",
            "Waki 2013, Equation 15",
            "Waki 2013 (Eq. 15)",
            "Waki 2013, §5",
        ] {
            assert!(matches!(faults(line)[..], [Fault::Form { .. }]), "{line}: {:?}", cites(line));
        }
    }

    #[test]
    fn what_only_looks_like_a_cite_is_left_alone() {
        for line in [
            "In 2013 and since May 2014",
            "port 2013",
            "Mtu 1500",
            "the RFC says",
            "Copyright 2026",
            "a draft-like text",
        ] {
            assert_eq!(cites(line), [], "{line}");
        }
    }
}
