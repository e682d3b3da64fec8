//! What a bar gave, as JSON holds it, and how tables write it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::super::result::Estimate;

/// A bar with what each law reached in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarResult {
    /// The case, such as "5.1".
    pub case: String,
    /// The variant, such as "50ms-link".
    pub variant: String,
    /// What is judged, in words of the JSON: of its own in its variant.
    pub key: String,
    /// The same in words of tables.
    pub quantity: String,
    /// How values are written.
    pub unit: Unit,
    /// The bar.
    pub limit: Limit,
    /// Of each law that ran it, in the order of the laws.
    pub laws: Vec<LawValue>,
    /// Whether our own law meets the bar by its mean; `null` where it did not run or there is no bar.
    pub met: Option<bool>,
    /// The laws that it fails by, of a bar that compares laws.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<String>,
}

/// What a law reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LawValue {
    /// The law.
    pub controller: String,
    /// The mean of its runs; `null` of what was not measured.
    pub value: Option<Estimate>,
}

/// The unit of a bar's values in tables; in JSON they are shares, seconds, bit/s or ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A share, which tables have in percent, with so many decimals.
    Percent(u8),
    /// Seconds, which tables have in milliseconds.
    Millis,
    /// Seconds.
    Seconds,
    /// A ratio or an index.
    Ratio,
}

/// What a value has to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// From the first to the second.
    Within(f64, f64),
    /// Below that of every other law whose rate is not lower by more than 5 %.
    BelowOthers,
    /// Not more than 5 points below that of a law whose 95th percentile of queues is not twice as long.
    NotBehindOthers,
    /// Nothing: it is reported.
    Reported,
}

impl Limit {
    /// Whether a value meets it by itself; `None` where other laws decide, or nothing is asked.
    pub fn is_met_by(self, value: f64) -> Option<bool> {
        match self {
            Self::AtLeast(least) => Some(value >= least),
            Self::AtMost(most) => Some(value <= most),
            Self::Within(least, most) => Some(value >= least && value <= most),
            Self::BelowOthers | Self::NotBehindOthers | Self::Reported => None,
        }
    }
}

/// In the units of JSON: "at least 0.95".
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "at least {least}"),
            Self::AtMost(most) => write!(f, "at most {most}"),
            Self::Within(least, most) => write!(f, "{least} to {most}"),
            Self::BelowOthers => f.write_str("below others"),
            Self::NotBehindOthers => f.write_str("not behind others"),
            Self::Reported => f.write_str("reported"),
        }
    }
}

impl Unit {
    /// From the unit of values to that of tables, and the decimals there.
    const fn scale(self) -> (f64, usize) {
        match self {
            Self::Percent(decimals) => (100.0, decimals as usize),
            Self::Millis => (1e3, 1),
            Self::Seconds => (1.0, 2),
            Self::Ratio => (1.0, 3),
        }
    }

    /// Its name in tables; empty of ratios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Percent(_) => "%",
            Self::Millis => "ms",
            Self::Seconds => "s",
            Self::Ratio => "",
        }
    }

    /// A bar's number without zeros at its end.
    fn number(self, value: f64) -> String {
        let (scale, _) = self.scale();
        let text = format!("{:.3}", value * scale);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

impl BarResult {
    /// The quantity with its unit: "queues, p95 (ms)".
    pub fn label(&self) -> String {
        let unit = self.unit.name();
        if unit.is_empty() { self.quantity.clone() } else { format!("{} ({unit})", self.quantity) }
    }

    /// The bar in short: "≥ 95", "0.8 to 1.25", "–".
    pub fn limit_in_short(&self) -> String {
        let number = |value| self.unit.number(value);
        match self.limit {
            Limit::AtLeast(least) => format!("≥ {}", number(least)),
            Limit::AtMost(most) => format!("≤ {}", number(most)),
            Limit::Within(least, most) => format!("{} to {}", number(least), number(most)),
            Limit::BelowOthers => "below (a)".to_owned(),
            Limit::NotBehindOthers => "near (b)".to_owned(),
            Limit::Reported => "–".to_owned(),
        }
    }

    /// What a law reached, with half the width of its interval: "24.1 ± 2.6"; of a share of runs with its ends: "90 (60 to 98)".
    pub fn of(&self, controller: &str) -> String {
        let found = self.laws.iter().find(|law| law.controller == controller).and_then(|law| law.value);
        let Some(found) = found else { return "–".to_owned() };
        let (scale, decimals) = self.unit.scale();
        // Tenths of a millisecond say nothing of a time of a tenth of a second and more.
        let decimals = if self.unit == Unit::Millis && found.mean >= 0.1 { 0 } else { decimals };
        let number = |value: f64| format!("{:.decimals$}", value * scale);
        let mean = number(found.mean);
        match (found.lo, found.hi) {
            (Some(lo), Some(hi)) if (f64::midpoint(lo, hi) - found.mean).abs() > (hi - lo) / 100.0 => {
                format!("{mean} ({} to {})", number(lo), number(hi))
            }
            (Some(lo), Some(hi)) => format!("{mean} ± {}", number((hi - lo) / 2.0)),
            _ => mean,
        }
    }

    /// The verdict in words: "met", "not met (nada)", "–".
    pub fn verdict(&self) -> String {
        match self.met {
            Some(true) => "met".to_owned(),
            Some(false) if self.behind.is_empty() => "not met".to_owned(),
            Some(false) => format!("not met ({})", self.behind.join(", ")),
            None => "–".to_owned(),
        }
    }
}

/// What the bars `(a)` and `(b)` of tables are.
pub const FOOTNOTES: [&str; 2] = [
    "(a) below that of every other law whose rate is not lower by more than 5 %",
    "(b) no other law is ahead by more than 5 points whose 95th percentile of queues is not twice as long",
];
