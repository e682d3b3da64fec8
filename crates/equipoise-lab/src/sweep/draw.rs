//! Parses `KEY=uniform(A, B)` and similar texts, which define a key whose value is drawn for each random point.

use std::str::FromStr;

use equipoise::random::stream_seed;
use thiserror::Error;
use toml::Value;

use super::axis::{self, AxisError};
use super::quantity::{Quantity, Unit};
use crate::scenario::nearest::similar;
use crate::scenario::{Override, SetError};

/// Why a text is not a key with a distribution.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DrawError {
    /// The text is not of the form `KEY=VALUE`, the key is the seed, a value of `choice` is empty, or the column of the
    /// key would have the name of another column.
    #[error(transparent)]
    Key(#[from] AxisError),
    /// The value is not a distribution.
    #[error(
        "write KEY=NAME(A, B), such as link.bottleneck.rate=\"loguniform(1 Mbit/s, 50 Mbit/s)\"; NAME is one of: {KNOWN}"
    )]
    Form,
    /// There is no distribution with this name.
    #[error("there is no distribution `{name}`{similar}; there are: {KNOWN}")]
    Unknown {
        /// The name that does not exist.
        name: String,
        /// Text that suggests the most similar distribution; empty if none is similar.
        similar: String,
    },
    /// A distribution, such as `uniform`, has fewer or more than two arguments.
    #[error("{name} takes two arguments, the least and the largest value; there are {found}")]
    Arguments {
        /// The name of the distribution.
        name: &'static str,
        /// The number of arguments in the text.
        found: usize,
    },
    /// The lower or the upper limit of a distribution is not a quantity.
    #[error(
        "`{text}` is no number and no quantity with one meaning, such as \"10 Mbit/s\", \"8 ms\", \"1%\" or \"100 packets\""
    )]
    End {
        /// The text of the limit.
        text: String,
    },
    /// The two limits of a distribution are quantities of different kinds.
    #[error("`{low}` and `{high}` are quantities of different kinds")]
    Kinds {
        /// The lower limit.
        low: String,
        /// The upper limit.
        high: String,
    },
    /// The lower limit of a distribution is not below the upper limit.
    #[error("`{low}` is not below `{high}`")]
    Order {
        /// The lower limit.
        low: String,
        /// The upper limit.
        high: String,
    },
    /// A log-uniform distribution has a limit that is not above zero.
    #[error("loguniform draws from values above zero, and `{low}` is none")]
    NotPositive {
        /// The lower limit.
        low: String,
    },
    /// The limits of the distribution `integer` are not integers, or have a unit other than packets or bytes.
    #[error("integer draws whole numbers, packets or bytes: not from `{low}` to `{high}`")]
    NotWhole {
        /// The lower limit.
        low: String,
        /// The upper limit.
        high: String,
    },
}

const KNOWN: &str = "uniform, loguniform, integer, choice";

/// A key and the distribution of its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Draw {
    pub(super) path: String,
    distribution: Distribution,
}

#[derive(Clone, Debug, PartialEq)]
enum Distribution {
    /// Uniform between two numbers.
    Uniform(Range),
    /// The logarithm of the value is uniform.
    LogUniform(Range),
    /// Uniform over the integers between two limits, both included.
    Integer(Range),
    /// Each of these values is equally likely.
    Choice(Vec<Value>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    low: f64,
    high: f64,
    unit: Unit,
}

/// Random stream of the first drawn key. Each further key uses the next stream. The runs use other streams.
const STREAMS: u64 = u64::from_be_bytes(*b"sweepdrw");

impl Draw {
    /// Returns the key's value at random point number `point`, as an override. `place` is the index of this key among
    /// the drawn keys.
    pub(super) fn change(&self, seed: u64, place: u64, point: u64) -> Override {
        let bits = stream_seed(stream_seed(seed, STREAMS.wrapping_add(place)), point);
        // Only the upper 53 bits are used, because the mantissa of a double has 53 bits.
        self.at((bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64))
    }

    /// Returns the value at a quantile of the distribution, 0 to 1, as an override.
    pub(super) fn at(&self, quantile: f64) -> Override {
        Override::set(self.path.clone(), self.distribution.at(quantile))
    }

    /// Returns the unit that all values have; `None` if they have no common unit.
    pub(super) fn unit(&self) -> Option<Unit> {
        match &self.distribution {
            Distribution::Uniform(range) | Distribution::LogUniform(range) | Distribution::Integer(range) => {
                Some(range.unit)
            }
            Distribution::Choice(values) => axis::unit_of(values),
        }
    }
}

impl Distribution {
    fn at(&self, quantile: f64) -> Value {
        match self {
            Self::Uniform(Range { low, high, unit }) => unit.write(low + (high - low) * quantile),
            Self::LogUniform(Range { low, high, unit }) => unit.write(low * libm::pow(high / low, quantile)),
            Self::Integer(Range { low, high, unit }) => {
                let number = (low + (quantile * (high - low + 1.0)).floor()).min(*high);
                if *unit == Unit::Plain { Value::Integer(number as i64) } else { unit.write(number) }
            }
            Self::Choice(values) => {
                let last = values.len().saturating_sub(1);
                let place = ((quantile * values.len() as f64) as usize).min(last);
                // The parser guarantees that there is at least one value.
                values.get(place).cloned().unwrap_or_else(|| Value::String(String::new()))
            }
        }
    }
}

impl FromStr for Draw {
    type Err = DrawError;

    fn from_str(text: &str) -> Result<Self, DrawError> {
        let set: Override = text.parse().map_err(|error: SetError| AxisError::from(error))?;
        let value = set.value().and_then(Value::as_str).ok_or(DrawError::Form)?;
        let (name, arguments) = value.strip_suffix(')').and_then(|text| text.split_once('(')).ok_or(DrawError::Form)?;
        let path = set.path();
        if path == "seed" {
            return Err(AxisError::Seed.into());
        }
        let distribution = match name.trim() {
            "uniform" => Distribution::Uniform(range("uniform", path, arguments)?),
            "loguniform" => {
                let range = range("loguniform", path, arguments)?;
                if range.low <= 0.0 {
                    let low = axis::split(arguments).first().map_or("", |low| low.trim()).to_owned();
                    return Err(DrawError::NotPositive { low });
                }
                Distribution::LogUniform(range)
            }
            "integer" => Distribution::Integer(whole(path, arguments)?),
            "choice" => Distribution::Choice(format!("{path}={arguments}").parse::<axis::Axis>()?.values),
            other => {
                let similar = similar(other, KNOWN.split(", "));
                return Err(DrawError::Unknown { name: other.to_owned(), similar });
            }
        };
        Ok(Self { path: path.to_owned(), distribution })
    }
}

/// Parses two limits with the same unit; the first limit must be the lower one.
fn range(name: &'static str, path: &str, arguments: &str) -> Result<Range, DrawError> {
    let parts = axis::split(arguments);
    let [low_text, high_text] = parts.as_slice() else {
        return Err(DrawError::Arguments { name, found: parts.len() });
    };
    let [low_text, high_text] = [low_text.trim(), high_text.trim()];
    let end = |text: &str| {
        let set = format!("{path}={text}").parse::<Override>().ok();
        let quantity = set.as_ref().and_then(Override::value).and_then(Quantity::of);
        quantity.filter(|found| found.number.is_finite()).ok_or_else(|| DrawError::End { text: text.to_owned() })
    };
    let (low, high) = (end(low_text)?, end(high_text)?);
    let words = || (low_text.to_owned(), high_text.to_owned());
    if low.unit != high.unit {
        let (low, high) = words();
        return Err(DrawError::Kinds { low, high });
    }
    if low.number >= high.number {
        let (low, high) = words();
        return Err(DrawError::Order { low, high });
    }
    Ok(Range { low: low.number, high: high.number, unit: low.unit })
}

/// Parses two limits that are integers.
fn whole(path: &str, arguments: &str) -> Result<Range, DrawError> {
    let range = range("integer", path, arguments)?;
    let is_whole = |number: f64| number.fract().abs() <= 0.0;
    if matches!(range.unit, Unit::Plain | Unit::Packets | Unit::Size) && is_whole(range.low) && is_whole(range.high) {
        return Ok(range);
    }
    let mut ends = axis::split(arguments).into_iter().map(|end| end.trim().to_owned());
    Err(DrawError::NotWhole { low: ends.next().unwrap_or_default(), high: ends.next().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(text: &str) -> Draw {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn shown(text: &str, quantile: f64) -> String {
        draw(text).at(quantile).to_string()
    }

    /// The expected values follow from formulas: for example, the median of a log-uniform distribution is the geometric
    /// mean of its limits.
    #[test]
    fn quantiles_are_those_of_the_distribution() {
        assert_eq!(shown("link.l.rate=uniform(5 Mbit/s, 15 Mbit/s)", 0.5), "link.l.rate=10000000 bit/s");
        assert_eq!(shown("link.l.rate=loguniform(1 Mbit/s, 100 Mbit/s)", 0.5), "link.l.rate=10000000 bit/s");
        assert_eq!(shown("link.l.delay=uniform(500 us, 2.5 ms)", 0.25), "link.l.delay=1000000 ns");
        assert_eq!(shown("link.l.loss=uniform(0%, 2%)", 0.5), "link.l.loss=1%");
        assert_eq!(shown("link.l.queue=integer(10 packets, 12 packets)", 0.99), "link.l.queue=12 packets");
        assert_eq!(shown("flow.m.controller.b=integer(1, 3)", 0.5), "flow.m.controller.b=2");
        assert_eq!(shown("flow.m.controller.b=uniform(1, 3)", 0.25), "flow.m.controller.b=1.5");
        assert_eq!(shown("flow.m.controller.name=choice(ap, aimd)", 0.7), "flow.m.controller.name=aimd");
    }

    #[test]
    fn what_is_no_distribution_is_refused_with_what_would_be_one() {
        let cases = [
            ("link.l.rate=5M", "uniform, loguniform, integer, choice"),
            ("link.l.rate=unifrom(1M, 2M)", "a similar one exists: `uniform`"),
            ("link.l.rate=uniform(1M)", "takes two arguments"),
            ("link.l.rate=uniform(1M, 2 ms)", "different kinds"),
            ("link.l.rate=uniform(5m, 6m)", "`5m` is no number"),
            ("link.l.rate=uniform(2M, 1M)", "`2M` is not below `1M`"),
            ("link.l.loss=loguniform(0%, 1%)", "above zero"),
            ("flow.m.controller.b=integer(1, 2.5)", "to `2.5`"),
            ("link.l.delay=integer(1 ms, 2 ms)", "from `1 ms`"),
            ("seed=integer(1, 9)", "seeds of the runs"),
            ("=uniform(1, 2)", "chain of keys"),
        ];
        for (text, words) in cases {
            let refused = text.parse::<Draw>().expect_err(text).to_string();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }

    /// If this test fails, the random points of existing designs have changed.
    #[test]
    fn a_point_draws_the_same_values_for_good() {
        let rate = draw("link.l.rate=loguniform(1 Mbit/s, 50 Mbit/s)");
        let drawn = |place, point| rate.change(7, place, point).to_string();
        assert_eq!(drawn(0, 0), "link.l.rate=4492234 bit/s");
        assert_eq!(drawn(0, 1), "link.l.rate=26799705 bit/s");
        assert_ne!(drawn(0, 0), drawn(1, 0), "keys draw from streams of their own");
    }

    /// Each quarter of the range must contain a quarter of the 4000 draws, within five standard deviations.
    #[test]
    fn draws_fill_their_range_evenly() {
        let even = draw("flow.m.controller.b=uniform(0, 4)");
        let mut quarters = [0_u32; 4];
        for point in 0..4000 {
            let value = even.change(1, 3, point);
            let number = value.value().and_then(Value::as_float).expect("a number");
            quarters[number as usize] += 1;
        }
        assert!(quarters.iter().all(|count| count.abs_diff(1000) < 140), "{quarters:?}");
    }
}
