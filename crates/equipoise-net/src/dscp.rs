use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The class of service in IP headers: the DSCP of RFC 2474, six bits.
///
/// Each network decides how it treats a class. Most networks ignore the class, and some clear it. For interactive media
/// of high priority, RFC 8837, Sec. 5 recommends `ef` for audio and `af41` or `af42` for video.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

/// The error of parsing a text that is not a class of service.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{found:?} is not a class of service (DSCP); use a number of 0 to 63, or df, le, ef, va, cs0 to cs7, or afXY with X of 1 to 4 and Y of 1 to 3"
)]
pub struct DscpError {
    /// The text that names no class.
    pub found: String,
}

impl Dscp {
    /// Default forwarding, for packets that need no special class (RFC 2474, Sec. 4.1).
    pub const DEFAULT: Self = Self(0);
    /// Expedited forwarding (RFC 3246): low delay, low jitter and low loss.
    pub const EF: Self = Self(46);

    /// The class with this number; `None` for numbers above 63.
    pub const fn new(number: u8) -> Option<Self> {
        if number < 64 { Some(Self(number)) } else { None }
    }

    /// The number of the class, 0 to 63.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The class with this name, which must be in lower case.
    fn named(name: &str) -> Option<Self> {
        let digit = |at: usize, range: std::ops::RangeInclusive<u8>| {
            let digit = name.as_bytes().get(at)?.checked_sub(b'0')?;
            range.contains(&digit).then_some(digit)
        };
        match (name, name.get(..2), name.len()) {
            ("df", ..) => Some(Self::DEFAULT),
            // The classes of RFC 8622 (`le`), RFC 3246 (`ef`) and RFC 5865 (`va`).
            ("le", ..) => Some(Self(1)),
            ("ef", ..) => Some(Self::EF),
            ("va", ..) => Some(Self(44)),
            // The classes `cs0` to `cs7` of RFC 2474, Sec. 4.2.2, and `af11` to `af43` of RFC 2597, Sec. 6.
            (_, Some("cs"), 3) => Some(Self(digit(2, 0..=7)? * 8)),
            (_, Some("af"), 4) => Some(Self(digit(2, 1..=4)? * 8 + digit(3, 1..=3)? * 2)),
            _ => None,
        }
    }
}

impl FromStr for Dscp {
    type Err = DscpError;

    /// Parses a number or a common name of a class, such as `ef`, `af41` or `cs5`.
    fn from_str(text: &str) -> Result<Self, DscpError> {
        let number = text.parse().ok().and_then(Self::new);
        let class = number.or_else(|| Self::named(&text.to_ascii_lowercase()));
        class.ok_or_else(|| DscpError { found: text.to_owned() })
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_read_by_number_and_by_name_and_others_are_refused() {
        for (text, number) in [
            ("0", 0),
            ("63", 63),
            ("df", 0),
            ("LE", 1),
            ("ef", 46),
            ("va", 44),
            ("cs0", 0),
            ("CS7", 56),
            ("af11", 10),
            ("af41", 34),
            ("AF43", 38),
        ] {
            assert_eq!(text.parse(), Ok(Dscp(number)), "{text}");
        }
        for wrong in ["64", "-1", "", "af", "af51", "af40", "af14", "af411", "cs8", "cs", "csé", "be", "46.0"] {
            assert_eq!(wrong.parse::<Dscp>(), Err(DscpError { found: wrong.to_owned() }), "{wrong}");
        }
    }
}
