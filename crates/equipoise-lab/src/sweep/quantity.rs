//! Values of scenario keys as numbers with units. In the table of a sweep, the name of a key's column ends with the
//! unit.

use equipoise::units::{Rate, Share, Size, Span};
use toml::Value;

/// The unit of a column of the table, which determines the end of the column's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A rate in bit/s.
    Rate,
    /// A time in seconds.
    Time,
    /// A size in bytes.
    Size,
    /// A ratio from 0 to 1.
    Share,
    /// A number of packets.
    Packets,
    /// A plain number without a unit.
    Plain,
}

impl Unit {
    /// Returns the suffix that a column's name has if the column's values have this unit.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Rate => "_bps",
            Self::Time => "_s",
            Self::Size => "_bytes",
            Self::Share => "_share",
            Self::Packets => "_packets",
            Self::Plain => "",
        }
    }

    /// Formats a number in this unit as in a scenario file. Rates, sizes and packets are rounded to integers, and times
    /// to whole nanoseconds.
    pub(super) fn write(self, number: f64) -> Value {
        match self {
            Self::Rate => format!("{} bit/s", number.round()).into(),
            Self::Time => format!("{} ns", (number * 1e9).round()).into(),
            Self::Size => format!("{} B", number.round()).into(),
            Self::Share => format!("{}%", number * 100.0).into(),
            Self::Packets => format!("{} packets", number.round()).into(),
            Self::Plain => number.into(),
        }
    }
}

/// A value of a key that is a number with a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantity {
    pub(super) number: f64,
    pub(super) unit: Unit,
}

impl Quantity {
    /// Returns a value as a number with a unit. `None` if the value is not a number, or is an ambiguous string: `5m` is
    /// a rate for one key and a time for another.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(number) => Some(Self { number: *number as f64, unit: Unit::Plain }),
            Value::Float(number) => Some(Self { number: *number, unit: Unit::Plain }),
            Value::String(text) => Self::read(text),
            _ => None,
        }
    }

    fn read(text: &str) -> Option<Self> {
        let rate = text.parse::<Rate>().ok().map(|rate| (rate.as_bps_f64(), Unit::Rate));
        let time = text.parse::<Span>().ok().map(|time| (time.as_secs_f64(), Unit::Time));
        let size = text.parse::<Size>().ok().map(|size| (size.as_bytes() as f64, Unit::Size));
        let share = text.parse::<Share>().ok().map(|share| (share.as_fraction(), Unit::Share));
        let packets = text.strip_suffix("packets").and_then(|number| number.trim().parse::<u32>().ok());
        let packets = packets.map(|number| (f64::from(number), Unit::Packets));
        let mut readings = [rate, time, size, share, packets].into_iter().flatten();
        let (number, unit) = readings.next()?;
        readings.next().is_none().then_some(Self { number, unit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_number_in_the_unit_of_its_text() {
        let cases = [
            ("15 Mbit/s", 15e6, Unit::Rate),
            ("15M", 15e6, Unit::Rate),
            ("8.2 ms", 0.0082, Unit::Time),
            ("64 KiB", 65_536.0, Unit::Size),
            ("0.5%", 0.005, Unit::Share),
            ("1000 packets", 1000.0, Unit::Packets),
        ];
        for (text, number, unit) in cases {
            assert_eq!(Quantity::of(&text.into()), Some(Quantity { number, unit }), "{text}");
        }
        assert_eq!(Quantity::of(&300.into()), Some(Quantity { number: 300.0, unit: Unit::Plain }));
        for text in ["5m", "ap", "2 ms normal", "1% 25%", "", "packets"] {
            assert_eq!(Quantity::of(&text.into()), None, "{text}");
        }
        assert_eq!(Quantity::of(&true.into()), None);
    }

    /// If this test fails, a column shows a different number than the run used.
    #[test]
    fn what_is_written_is_read_again() {
        for (unit, number) in [
            (Unit::Rate, 12_345_678.0),
            (Unit::Time, 0.008_123_456),
            (Unit::Size, 1500.0),
            (Unit::Share, 0.0125),
            (Unit::Packets, 77.0),
            (Unit::Plain, 0.1),
        ] {
            let read = Quantity::of(&unit.write(number)).expect("a quantity");
            assert!(read.unit == unit && (read.number - number).abs() <= 1e-15 * number, "{read:?}");
        }
    }
}
