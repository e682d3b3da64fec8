//! Formats numbers with their units, and escapes text for HTML.

/// Escapes `text` for HTML, so that the result contains no markup.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(c),
        }
    }
    safe
}

/// The text that is shown if nothing was measured.
pub const NOTHING: &str = "–";

/// Formats seconds as milliseconds with two decimals and the unit.
pub fn millis(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

/// Formats a share as a percentage with a plus or minus sign; a value that rounds to zero has no sign.
pub(crate) fn signed_percent(share: f64) -> String {
    match format!("{:+.1} %", share * 100.0).as_str() {
        "+0.0 %" | "-0.0 %" => "0.0 %".to_owned(),
        other => other.replace('-', "−"),
    }
}

/// Formats a count in words: "no timeouts", "1 timeout", "2.5 timeouts".
pub(super) fn counted(count: f64, one: &str, several: &str) -> String {
    if count == 0.0 {
        format!("no {several}")
    } else if (count - 1.0).abs() < 1e-9 {
        format!("1 {one}")
    } else {
        format!("{} {several}", (count * 10.0).round() / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_a_sign_unless_they_are_nothing() {
        let texts = [0.037, -0.06, -0.0001, 0.0].map(signed_percent);
        assert_eq!(texts, ["+3.7 %", "−6.0 %", "0.0 %", "0.0 %"]);
    }
}
