//! The results of bars (pass criteria), as stored in JSON and as written in tables.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::super::result::Estimate;

/// The result of a bar: the requirement for a quantity, the value of each control law, and the verdict on our law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarResult {
    /// The case, such as "5.1".
    pub case: String,
    /// The variant, such as "50ms-link".
    pub variant: String,
    /// The quantity as a key in the JSON, unique within the variant.
    pub key: String,
    /// The name of the quantity in tables.
    pub quantity: String,
    /// The unit and format of the values.
    pub unit: Unit,
    /// The requirement for the quantity.
    pub limit: Limit,
    /// The value of each control law that ran, in the order of the laws.
    pub laws: Vec<LawValue>,
    /// Whether the mean of our law meets the bar; `null` if our law has no value, if there is no requirement, or if the
    /// bar compares laws and no other law ran.
    pub met: Option<bool>,
    /// The names of the laws because of which our law fails the requirement. Empty if the requirement does not compare
    /// laws.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<String>,
}

/// The value of a bar's quantity for one control law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LawValue {
    /// The name of the control law.
    pub controller: String,
    /// The mean over the law's runs; `null` if the quantity was not measured.
    pub value: Option<Estimate>,
}

/// The unit of a bar's values in tables. In JSON, values are shares, seconds or ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A share. Tables show it in percent, with this number of decimals.
    Percent(u8),
    /// A time in seconds. Tables show milliseconds.
    Millis,
    /// A time in seconds. Tables show seconds.
    Seconds,
    /// A ratio or an index.
    Ratio,
}

/// The requirement that the value of a bar (pass criterion) must meet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The value must be at least this number.
    AtLeast(f64),
    /// The value must be at most this number.
    AtMost(f64),
    /// The value must be between these two numbers, both included.
    Within(f64, f64),
    /// The value must be below that of every other law whose rate is at least 95 % of our law's rate.
    BelowOthers,
    /// The value must not be more than 5 percentage points below that of any other law. Laws whose 95th percentile of
    /// queueing delays is at least twice ours do not count.
    NotBehindOthers,
    /// There is no requirement; the value is only reported.
    Reported,
}

impl Limit {
    /// Whether a value meets the requirement; `None` if this depends on other laws, or if there is no requirement.
    pub fn is_met_by(self, value: f64) -> Option<bool> {
        match self {
            Self::AtLeast(least) => Some(value >= least),
            Self::AtMost(most) => Some(value <= most),
            Self::Within(least, most) => Some(value >= least && value <= most),
            Self::BelowOthers | Self::NotBehindOthers | Self::Reported => None,
        }
    }
}

/// Formats the requirement with numbers as in the JSON results: "at least 0.95", not 95 %.
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
    /// Returns the factor from the unit of JSON to the unit in tables, and the number of decimals in tables.
    const fn scale(self) -> (f64, usize) {
        match self {
            Self::Percent(decimals) => (100.0, decimals as usize),
            Self::Millis => (1e3, 1),
            Self::Seconds => (1.0, 2),
            Self::Ratio => (1.0, 3),
        }
    }

    /// The name of the unit in tables; empty for ratios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Percent(_) => "%",
            Self::Millis => "ms",
            Self::Seconds => "s",
            Self::Ratio => "",
        }
    }

    /// Formats a number for a table, in the unit that tables show, such as ms or %, without trailing zeros.
    fn number(self, value: f64) -> String {
        let (scale, _) = self.scale();
        let text = format!("{:.3}", value * scale);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

impl BarResult {
    /// Returns the name of the quantity with its unit: "queues, p95 (ms)".
    pub fn label(&self) -> String {
        let unit = self.unit.name();
        if unit.is_empty() { self.quantity.clone() } else { format!("{} ({unit})", self.quantity) }
    }

    /// Returns the requirement in short form: "≥ 95", "0.8 to 1.25", "–".
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

    /// Returns the value of a law with half the width of its confidence interval: "24.1 ± 2.6". If the interval is not
    /// symmetric, as for a share of runs, both ends of the interval follow the value: "90 (60 to 98)".
    pub fn of(&self, controller: &str) -> String {
        let found = self.laws.iter().find(|law| law.controller == controller).and_then(|law| law.value);
        let Some(found) = found else { return "–".to_owned() };
        let (scale, decimals) = self.unit.scale();
        // If the mean is at least 0.1 s, tenths of a millisecond are not significant.
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

    /// Returns the verdict in words: "met", "not met", or "–" if there is no verdict. If our law is behind other laws,
    /// their names follow in parentheses, as in "not met (nada)".
    pub fn verdict(&self) -> String {
        match self.met {
            Some(true) => "met".to_owned(),
            Some(false) if self.behind.is_empty() => "not met".to_owned(),
            Some(false) => format!("not met ({})", self.behind.join(", ")),
            None => "–".to_owned(),
        }
    }
}

/// Footnotes that explain the requirements `(a)` and `(b)` in tables.
pub const FOOTNOTES: [&str; 2] = [
    "(a) below that of every other law whose rate is not lower by more than 5 %",
    "(b) no other law is ahead by more than 5 points whose 95th percentile of queues is not twice as long",
];
