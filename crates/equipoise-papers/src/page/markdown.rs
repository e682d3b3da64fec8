//! Writes the results section of a chapter of the book, in Markdown.

use super::{readings_table, rule_words};
use crate::{Claim, Results, Table, four_digits};

/// Returns the results in Markdown, without a heading. First is a summary, then a table of the claims, and then a list
/// with the statement, rule and note of each claim. Last is a table of the claims under each interpretation.
pub fn paper_markdown(results: &Results) -> String {
    let runs = results.runs.map_or("default numbers of runs".to_owned(), |runs| format!("{runs} runs each"));
    let mut text = format!("Version {}, seed {}, {runs}: {}.\n\n", results.version, results.seed, results.counts());
    let columns = ["claim", "paper", "ours", "95 %", "unit", "runs", "verdict"].map(str::to_owned).to_vec();
    let rows = results.claims.iter().map(row).collect();
    text.push_str(&table(&Table { caption: String::new(), columns, rows }));
    text.push('\n');
    for claim in &results.claims {
        let Claim { id, figure, statement, rule, note, .. } = claim;
        let rule = rule_words(rule);
        let words: Vec<_> = [statement, &rule, note].into_iter().filter(|words| !words.is_empty()).cloned().collect();
        text.push_str(&format!("- `{id}` ({figure}): {}\n", words.join(" ")));
    }
    if let Some(readings) = readings_table(&results.readings) {
        text.push_str(&format!("\n{}.\n\n{}", readings.caption, table(&readings)));
    }
    text
}

fn row(claim: &Claim) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or("–".to_owned(), four_digits);
    let interval = claim.ci95.map_or("–".to_owned(), |ends| ends.map(four_digits).join(" to "));
    let (id, verdict) = (format!("`{}`", claim.id), claim.verdict.words().to_owned());
    vec![id, number(claim.paper), number(claim.ours), interval, claim.unit.clone(), claim.runs.to_string(), verdict]
}

fn table(table: &Table) -> String {
    // A line break or a vertical bar in a cell would break the Markdown table.
    let cell = |text: &String| text.replace('\n', " ").replace('|', "/");
    let line = |cells: &Vec<String>| format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "));
    let rows: String = table.rows.iter().map(line).collect();
    format!("{}| {}\n{rows}", line(&table.columns), "--- | ".repeat(table.columns.len()).trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::tests::results;
    use super::*;
    use crate::{PlotData, Verdict};

    #[test]
    fn a_chapter_has_each_claim_its_rule_and_each_reading() {
        let text = paper_markdown(&results(Verdict::Undecided, PlotData::Line(Vec::new())));
        let lines = [
            "Version 0.0.0, seed 1, default numbers of runs: 0 reproduced, 1 undecided, 0 not reproduced.",
            "| claim | paper | ours | 95 % | unit | runs | verdict |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            "| `fig1.x` | – | 1234 | 1200 to 1300 | ms | 30 | undecided |",
            "- `fig1.x` (Fig. 1): a < b Rule: The whole interval lies above 1. because & so on",
            "| reading | fig1.x |",
            "| read <otherwise> | 1234, undecided |",
        ];
        for line in lines {
            assert!(text.lines().any(|is| is == line), "{line}\n{text}");
        }
    }
}
