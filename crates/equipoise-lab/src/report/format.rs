//! Numbers with their units, and text made safe for HTML.

/// `text` with nothing in it that HTML would take for markup.
pub(super) fn escape(text: &str) -> String {
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

/// What stands where nothing was measured.
pub(super) const NOTHING: &str = "–";

/// Milliseconds with two decimals and their unit.
pub(super) fn millis(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

/// A share as a percentage with its sign; what rounds to nothing has none.
pub(super) fn signed_percent(share: f64) -> String {
    match format!("{:+.1} %", share * 100.0).as_str() {
        "+0.0 %" | "-0.0 %" => "0.0 %".to_owned(),
        other => other.replace('-', "−"),
    }
}

/// Half the width of the 95 % confidence interval of a mean, from the deviation of single values; `None` below two.
pub(super) fn half_width_95(values: &[f64]) -> Option<f64> {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (n >= 2).then(|| student_975(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt())
}

/// 97.5 % quantile of Student's t; beyond 30 degrees of freedom by two terms of its expansion in 1/ν.
fn student_975(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    let normal: f64 = 1.959_964;
    degrees.checked_sub(1).and_then(|row| TABLE.get(row)).copied().unwrap_or_else(|| {
        let (z, n) = (normal, degrees as f64);
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n);
        z + (z.powi(3) + z) / (4.0 * n) + second
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_goes_on_smoothly_where_the_table_ends() {
        // Published: 2.0395 at 31, 1.9840 at 100 degrees of freedom.
        assert!((student_975(31) - 2.0395).abs() < 2e-4);
        assert!((student_975(100) - 1.9840).abs() < 1e-4);
    }

    #[test]
    fn percentages_have_a_sign_unless_they_are_nothing() {
        let texts = [0.037, -0.06, -0.0001, 0.0].map(signed_percent);
        assert_eq!(texts, ["+3.7 %", "−6.0 %", "0.0 %", "0.0 %"]);
    }

    #[test]
    fn the_interval_of_two_known_values() {
        // Mean 2, deviation sqrt(2), so 12.706 * sqrt(2) / sqrt(2).
        assert!((half_width_95(&[1.0, 3.0]).unwrap() - 12.706).abs() < 1e-9);
        assert_eq!(half_width_95(&[1.0]), None);
    }
}
