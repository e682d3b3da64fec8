//! Builds the rows of all CSV files that this crate writes.
//!
//! Source: RFC 4180, Sec. 2, except that a row ends with LF instead of CRLF. Spreadsheet programs read both, but
//! line-oriented tools expect LF.

use std::fmt::{Display, Write as _};

/// An unfinished CSV row, which is appended to the end of a text.
#[must_use = "a row ends with `end`"]
pub(crate) struct Row<'a> {
    text: &'a mut String,
    has_cells: bool,
}

impl<'a> Row<'a> {
    /// Starts a row at the end of a text that consists of complete rows.
    pub(crate) const fn after(text: &'a mut String) -> Self {
        Self { text, has_cells: false }
    }

    fn begin_cell(&mut self) {
        if self.has_cells {
            self.text.push(',');
        }
        self.has_cells = true;
    }

    /// Adds a cell that contains any text, quoted if necessary.
    pub(crate) fn text(mut self, cell: &str) -> Self {
        self.begin_cell();
        if cell.contains([',', '"', '\r', '\n']) {
            self.text.push('"');
            for (number, part) in cell.split('"').enumerate() {
                if number > 0 {
                    self.text.push_str("\"\"");
                }
                self.text.push_str(part);
            }
            self.text.push('"');
        } else {
            self.text.push_str(cell);
        }
        self
    }

    /// Adds a cell that contains a number.
    pub(crate) fn number(mut self, cell: impl Display) -> Self {
        self.begin_cell();
        // Writing to a string never fails.
        let _ = write!(self.text, "{cell}");
        self
    }

    /// Adds a cell that contains a number, or an empty cell for `None`.
    pub(crate) fn measured(mut self, cell: Option<impl Display>) -> Self {
        if let Some(cell) = cell {
            return self.number(cell);
        }
        self.begin_cell();
        self
    }

    pub(crate) fn end(self) {
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_a_comma_a_quote_or_a_line_break_stands_in_quotes() {
        let mut text = "a,b\n".to_owned();
        let row = Row::after(&mut text).text("plain").text("a,b").text("a\"b\"").text("").text("a\rb");
        row.number(format_args!("{:.2}", 1.0)).measured(None::<f64>).measured(Some(0.5)).end();
        Row::after(&mut text).text("").end();
        assert_eq!(text, "a,b\nplain,\"a,b\",\"a\"\"b\"\"\",,\"a\rb\",1.00,,0.5\n\n");
    }
}
