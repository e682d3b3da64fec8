use alloc::string::ToString;
use core::fmt;
use core::str::FromStr;

use super::parse::UnitError;

/// A share of a whole, or a probability: 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// The share zero, 0 %.
    pub const NONE: Self = Self(0.0);
    /// The whole, 100 %.
    pub const ALL: Self = Self(1.0);

    /// Returns a share from 0 to 1; `None` for other values and for NaN.
    pub fn from_fraction(fraction: f64) -> Option<Self> {
        (0.0..=1.0).contains(&fraction).then_some(Self(fraction))
    }

    /// Returns the share as a number from 0 to 1.
    pub const fn as_fraction(self) -> f64 {
        self.0
    }
}

/// Writes the share in percent.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0 * 100.0)
    }
}

/// Reads `"1 %"`, `"0.1%"`.
///
/// A bare number is refused: `tc` reads `1` as one percent, and other tools as 100 %.
impl FromStr for Share {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const KIND: &str = "a share";
        const EXAMPLE: &str = "1 %";
        let trimmed = text.trim();
        let no_number = || UnitError::NoNumber { text: text.to_string(), kind: KIND, example: EXAMPLE };
        let Some(number) = trimmed.strip_suffix('%') else {
            return match trimmed.parse::<f64>() {
                Ok(_) => Err(UnitError::NoUnit { text: text.to_string(), example: EXAMPLE }),
                Err(_) => Err(no_number()),
            };
        };
        let percent: f64 = number.trim_end().parse().map_err(|_| no_number())?;
        Self::from_fraction(percent / 100.0).ok_or_else(|| UnitError::OutOfRange { text: text.to_string(), kind: KIND })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_share_is_a_percentage_from_0_to_100() {
        assert_eq!("1%".parse(), Ok(Share(0.01)));
        assert_eq!("0.1 %".parse(), Ok(Share(0.001)));
        assert_eq!("100 %".parse(), Ok(Share::ALL));
        assert_eq!(Share(0.25).to_string(), "25 %");
        assert!(matches!("0.01".parse::<Share>(), Err(UnitError::NoUnit { .. })));
        assert!(matches!("101 %".parse::<Share>(), Err(UnitError::OutOfRange { .. })));
        assert!(matches!("-1%".parse::<Share>(), Err(UnitError::OutOfRange { .. })));
        assert!(matches!("NaN %".parse::<Share>(), Err(UnitError::OutOfRange { .. })));
        assert!(matches!("much".parse::<Share>(), Err(UnitError::NoNumber { .. })));
    }
}
