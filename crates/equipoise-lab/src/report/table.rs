//! A table of an HTML page: named rows, and columns of text or numbers.

use super::{NOTHING, escape};

/// The kind of content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Text, left-aligned.
    Text,
    /// Numbers, right-aligned.
    Number,
}

/// A table that is built row by row, and whose layout adapts to a phone.
#[derive(Debug)]
pub struct Table {
    name: String,
    has_zeros: bool,
    heads: Vec<(String, Column)>,
    rows: Vec<Row>,
}

#[derive(Debug)]
enum Row {
    /// A heading with the name of the rows that follow.
    Group(String),
    Cells(Vec<String>),
}

/// Maximum number of columns that a phone shows next to each other. If a table has more columns, a phone shows the
/// cells of a row below one another: the row's name, then each other cell with the name of its column.
const MOST_ON_A_PHONE: usize = 3;

impl Table {
    /// Returns an empty table with a name for screen readers.
    pub fn new(name: &str) -> Self {
        Self { name: escape(name), has_zeros: true, heads: Vec::new(), rows: Vec::new() }
    }

    /// Omits columns of counts that are zero in all rows.
    #[must_use]
    pub fn without_zeros(self) -> Self {
        Self { has_zeros: false, ..self }
    }

    /// Adds a column. The first column contains the names of the rows.
    #[must_use]
    pub fn column(mut self, head: &str, kind: Column) -> Self {
        self.heads.push((escape(head), kind));
        self
    }

    /// Adds columns of numbers.
    #[must_use]
    pub fn numbers<S: AsRef<str>>(self, heads: impl IntoIterator<Item = S>) -> Self {
        heads.into_iter().fold(self, |table, head| table.column(head.as_ref(), Column::Number))
    }

    /// Adds a row of cells, which contain HTML. There is one cell per column.
    pub fn push(&mut self, cells: Vec<String>) {
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a heading for the rows that follow.
    pub fn group(&mut self, name: &str) {
        self.rows.push(Row::Group(escape(name)));
    }

    /// Returns the table as HTML, without columns in which nothing was measured; an empty string if there are no rows.
    pub fn to_html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let columns: Vec<_> = self.heads.iter().enumerate().filter(|(place, _)| self.has_values(*place)).collect();
        let class = |kind: Column| if kind == Column::Text { " class=\"text\"" } else { "" };
        let heads = columns.iter().map(|(_, (head, kind))| format!("<th scope=\"col\"{}>{head}</th>", class(*kind)));
        let heads: String = heads.collect();
        let row = |row: &Row| match row {
            Row::Group(name) => {
                format!("<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{}\">{name}</th></tr>\n", columns.len())
            }
            Row::Cells(cells) => {
                let cell = |&(place, (head, kind)): &(usize, &(String, Column))| {
                    let cell = cells.get(place).map_or("", String::as_str);
                    if place == 0 {
                        format!("<th scope=\"row\">{cell}</th>")
                    } else {
                        format!("<td{} data-label=\"{head}\">{cell}</td>", class(*kind))
                    }
                };
                format!("<tr>{}</tr>\n", columns.iter().map(cell).collect::<String>())
            }
        };
        let rows: String = self.rows.iter().map(row).collect();
        let stack = if columns.len() > MOST_ON_A_PHONE { " class=\"stack\"" } else { "" };
        format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table{stack}><thead><tr>{heads}</tr></thead>\
             <tbody>\n{rows}</tbody></table></div>\n",
            self.name
        )
    }

    /// Whether column number `place` is shown: the column is the first one, or any row has a value in it. After
    /// [`Self::without_zeros`], a zero does not count as a value.
    fn has_values(&self, place: usize) -> bool {
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Group(_) => None,
            Row::Cells(cells) => cells.get(place),
        });
        let says_something = |cell: &String| match cell.as_str() {
            "" | NOTHING => false,
            "0" | "0 ± 0" => self.has_zeros,
            _ => true,
        };
        place == 0 || cells.into_iter().any(says_something)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_in_which_nothing_was_measured_or_counted_are_left_out() {
        let mut table = Table::new("a <table>").column("link", Column::Text).numbers(["used", "Jain", "swings"]);
        assert_eq!(table.to_html(), "");
        table.push(["one", "3.0", NOTHING, "0"].map(str::to_owned).to_vec());
        table.push(["two", NOTHING, NOTHING, "0 ± 0"].map(str::to_owned).to_vec());
        assert!(table.to_html().contains("swings"), "a count of zero is one");
        let html = table.without_zeros().to_html();
        assert!(
            html.contains("<th scope=\"col\">used</th>") && !html.contains("Jain") && !html.contains("swings"),
            "{html}"
        );
        assert!(html.contains("<th scope=\"row\">two</th><td data-label=\"used\">–</td>"), "{html}");
        assert!(html.contains("aria-label=\"a &lt;table&gt;\"") && !html.contains("class=\"stack\""), "{html}");
    }
}
