//! Parses and prints quantities as text: a number, an optional space, and a unit.

use alloc::string::{String, ToString};
use core::fmt;

use thiserror::Error;

/// The reason why a text is not a valid quantity. The message shows what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnitError {
    /// The text is a number without a unit.
    #[error("`{text}` has no unit; write it as in \"{example}\"")]
    NoUnit {
        /// The text that was parsed.
        text: String,
        /// An example of the expected kind of quantity.
        example: &'static str,
    },
    /// The unit is not a unit of the expected kind of quantity.
    #[error("`{unit}` is not a unit of {kind}; use one of {units}{hint}")]
    UnknownUnit {
        /// The text that was found instead of a unit.
        unit: String,
        /// The kind of quantity that was expected.
        kind: &'static str,
        /// The usual units, separated by commas; other spellings are accepted too.
        units: &'static str,
        /// A hint at a likely confusion, or empty.
        hint: &'static str,
    },
    /// There is no valid number before the unit.
    #[error("`{text}` does not begin with a number; write {kind} as in \"{example}\"")]
    NoNumber {
        /// The text that was parsed.
        text: String,
        /// The kind of quantity that was expected.
        kind: &'static str,
        /// An example of the expected kind of quantity.
        example: &'static str,
    },
    /// The quantity is outside the range of its kind; for example, a rate cannot be negative.
    #[error("`{text}` is out of range for {kind}")]
    OutOfRange {
        /// The text that was parsed.
        text: String,
        /// The kind of quantity that was expected.
        kind: &'static str,
    },
}

/// A kind of quantity. `units` contains each unit with its factor to the base unit. Error messages show `name`,
/// `example` and `listed`.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    name: &'static str,
    example: &'static str,
    listed: &'static str,
    units: &'static [(&'static str, f64)],
    /// Unit spellings that are refused, with the reason.
    refused: &'static [(&'static str, &'static str)],
}

pub(super) const SPAN: Kind = Kind {
    name: "a time",
    example: "8.2 ms",
    listed: "ns, us, ms, s, min, h",
    units: &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 6e10), ("m", 6e10), ("h", 3.6e12)],
    refused: &[],
};

pub(super) const RATE: Kind = Kind {
    name: "a rate",
    example: "15 Mbit/s",
    listed: "bit/s, kbit/s, Mbit/s, Gbit/s",
    units: &[
        ("bit/s", 1.0),
        ("bit", 1.0),
        ("kbit/s", 1e3),
        ("kbit", 1e3),
        ("Mbit/s", 1e6),
        ("Mbit", 1e6),
        ("mbit", 1e6),
        ("Mbps", 1e6),
        ("Gbit/s", 1e9),
        ("Gbit", 1e9),
        ("gbit", 1e9),
        ("Gbps", 1e9),
        // Suffixes as in iperf3.
        ("K", 1e3),
        ("k", 1e3),
        ("M", 1e6),
        ("m", 1e6),
        ("G", 1e9),
        ("g", 1e9),
    ],
    refused: &[
        ("mbps", " (tc reads `mbps` as megabytes per second; write Mbit/s)"),
        ("bps", " (tc reads `bps` as bytes per second; write bit/s)"),
        ("kbps", " (tc reads `kbps` as kilobytes per second; write kbit/s)"),
        ("gbps", " (tc reads `gbps` as gigabytes per second; write Gbit/s)"),
    ],
};

pub(super) const SIZE: Kind = Kind {
    name: "a size",
    example: "1000 B",
    listed: "B, kB, MB, KiB, MiB",
    units: &[
        ("B", 1.0),
        ("byte", 1.0),
        ("bytes", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
    ],
    refused: &[],
};

/// Units for printing, largest first, with their size in the base unit; and the unit for zero.
type Units = (&'static [(u64, &'static str)], &'static str);

pub(super) const SPAN_UNITS: Units = (&[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")], "s");
pub(super) const RATE_UNITS: Units =
    (&[(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")], "bit/s");

/// Returns the quantity in base units, rounded to a whole number. An absolute value of 9.2 · 10¹⁸ or more is out of
/// range, so the result fits into an `i64`.
pub(super) fn signed(text: &str, kind: Kind) -> Result<i128, UnitError> {
    let trimmed = text.trim();
    let split =
        trimmed.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_'))).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim_start();
    let value: f64 = number.replace('_', "").parse().map_err(|_| UnitError::NoNumber {
        text: text.to_string(),
        kind: kind.name,
        example: kind.example,
    })?;
    if unit.is_empty() {
        return Err(UnitError::NoUnit { text: text.to_string(), example: kind.example });
    }
    let factor = kind.units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor).ok_or_else(|| {
        let hint = kind.refused.iter().find(|(name, _)| *name == unit).map_or("", |(_, hint)| *hint);
        UnitError::UnknownUnit { unit: unit.to_string(), kind: kind.name, units: kind.listed, hint }
    })?;
    let scaled = libm::round(value * factor);
    if scaled.abs() < 9.2e18 {
        Ok(scaled as i128)
    } else {
        Err(UnitError::OutOfRange { text: text.to_string(), kind: kind.name })
    }
}

/// Like [`signed`], for quantities that cannot be negative.
pub(super) fn unsigned(text: &str, kind: Kind) -> Result<u64, UnitError> {
    u64::try_from(signed(text, kind)?).map_err(|_| UnitError::OutOfRange { text: text.to_string(), kind: kind.name })
}

/// Prints the quantity `value`, which is in base units. It is printed exactly, without trailing zeros, in the largest
/// unit that is not above `value`. Zero is printed in `zero_unit`.
pub(super) fn write_scaled(
    f: &mut fmt::Formatter<'_>,
    value: u64,
    negative: bool,
    (units, zero_unit): Units,
) -> fmt::Result {
    let sign = if negative { "-" } else { "" };
    if value == 0 {
        return write!(f, "0 {zero_unit}");
    }
    let (scale, unit) = units.iter().find(|(scale, _)| value >= *scale).copied().unwrap_or((1, ""));
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{sign}{whole} {unit}");
    }
    let width = scale.ilog10() as usize;
    let digits = alloc::format!("{rest:0width$}");
    write!(f, "{sign}{whole}.{} {unit}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Rate, Size, Span};
    use super::UnitError;

    #[test]
    fn quantities_read_as_people_write_them() {
        assert_eq!("8.2 ms".parse(), Ok(Span::from_micros(8200)));
        assert_eq!("40s".parse(), Ok(Span::from_secs(40)));
        assert_eq!("-3 us".parse(), Ok(Span::from_nanos(-3000)));
        assert_eq!("15 Mbit/s".parse(), Ok(Rate::from_bps(15_000_000)));
        assert_eq!("0.1mbit".parse(), Ok(Rate::from_bps(100_000)));
        assert_eq!("15M".parse(), Ok(Rate::from_bps(15_000_000)));
        assert_eq!("2.5 G".parse(), Ok(Rate::from_bps(2_500_000_000)));
        assert_eq!("800k".parse(), Ok(Rate::from_bps(800_000)));
        assert_eq!("1000 B".parse(), Ok(Size::from_bytes(1000)));
        assert_eq!("64 KiB".parse(), Ok(Size::from_bytes(65_536)));
    }

    #[test]
    fn a_bare_number_a_wrong_unit_and_a_wrong_sign_are_refused_by_name() {
        assert!(matches!("15".parse::<Rate>(), Err(UnitError::NoUnit { .. })));
        assert!(matches!("15 ms".parse::<Rate>(), Err(UnitError::UnknownUnit { .. })));
        assert!(matches!("fast".parse::<Rate>(), Err(UnitError::NoNumber { .. })));
        assert!(matches!("-1 Mbit/s".parse::<Rate>(), Err(UnitError::OutOfRange { .. })));
        assert!(matches!("1e300 s".parse::<Span>(), Err(UnitError::UnknownUnit { .. })));
        let refused = "15 mbps".parse::<Rate>().expect_err("ambiguous between tc and everybody else");
        assert!(alloc::format!("{refused}").contains("megabytes"));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back_exactly_up_to_2_to_the_51(nanos in 0u64..(1 << 51), bps in 0u64..(1 << 51)) {
            let span = Span::from_nanos(nanos as i64);
            prop_assert_eq!(alloc::format!("{span}").parse::<Span>(), Ok(span));
            let rate = Rate::from_bps(bps);
            prop_assert_eq!(alloc::format!("{rate}").parse::<Rate>(), Ok(rate));
        }
    }
}
