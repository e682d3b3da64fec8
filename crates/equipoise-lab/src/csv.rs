//! Cells of CSV.

/// A cell, in quotes if it would not be one without (RFC 4180, Sec. 2).
pub(crate) fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_a_comma_or_a_quote_stands_in_quotes() {
        assert_eq!([quoted("plain"), quoted("a,b"), quoted("a\"b")], ["plain", "\"a,b\"", "\"a\"\"b\""]);
    }
}
