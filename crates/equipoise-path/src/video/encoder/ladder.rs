use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use thiserror::Error;

use equipoise::units::{Rate, Size};

/// Traces of one video at several bit rates: the sizes of the frames when encoded at each rate (RFC 8593, Sec. 6.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    /// The bit rates, in ascending order.
    rates: Arc<[Rate]>,
    /// Frame sizes in bytes: for each frame, the sizes at all rates.
    sizes: Arc<[u32]>,
}

/// Why a text is not a valid set of video traces.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {kind}")]
pub struct LadderError {
    /// The number of the line with the error, from 1; the last line if something is missing at the end of the text.
    pub line: usize,
    /// The error in that line.
    pub kind: LadderErrorKind,
}

/// The error in a line of video traces.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LadderErrorKind {
    /// A column is not a non-negative integer, or the integer is too large.
    #[error("`{text}` is no {field}")]
    NoNumber {
        /// The expected content of the column.
        field: &'static str,
        /// The text in the column.
        text: String,
    },
    /// The rates are not in ascending order.
    #[error("the rates must ascend from above zero, and {found} kbit/s follows {previous} kbit/s")]
    Order {
        /// The rate that is out of order, in kbit/s.
        found: u64,
        /// The rate before the wrong rate, in kbit/s; zero if the wrong rate is the first.
        previous: u64,
    },
    /// A line does not have one frame size for each rate.
    #[error("{found} sizes; each frame has one for each of the {expected} rates")]
    Columns {
        /// Number of sizes in the line.
        found: usize,
        /// Number of rates in the first line.
        expected: usize,
    },
    /// There are too many rates or frames.
    #[error("more than {most} {what}")]
    TooMany {
        /// What is too many: rates or frames.
        what: &'static str,
        /// The maximum allowed number.
        most: usize,
    },
    /// The traces are too short to be repeated.
    #[error("{found} frames; traces are repeated after the first {skipped}, and need more than these")]
    TooShort {
        /// Number of frames in the traces.
        found: usize,
        /// Number of frames skipped when a trace repeats.
        skipped: usize,
    },
}

/// Maximum number of rates: more than any encoder offers. This limit and the maximum number of frames limit the memory.
const MOST_RATES: usize = 256;
/// Maximum number of frames: an hour at 30 frames/s.
const MOST_FRAMES: usize = 108_000;

impl Ladder {
    /// Number of frames at the start of the traces that are skipped when the traces repeat. These frames include a
    /// large I frame (RFC 8593, Sec. 6.2.1, `SkipFrames`).
    pub const SKIPPED: usize = 20;
    /// Minimum and maximum frame size in bytes (RFC 8593, Sec. 6.2.1, `fs_min` and `fs_max`).
    const SMALLEST: f64 = 10.0;
    const LARGEST: f64 = 1_000_000.0;

    /// Reads traces. The first line has the bit rates in kbit/s, ascending. Each further line has the sizes of one
    /// frame at these rates, in bytes. Columns are separated by commas, semicolons, spaces or tabs. Empty lines and
    /// lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`LadderError`] for the first line with an error.
    pub fn parse<'t>(lines: impl IntoIterator<Item = &'t str>) -> Result<Self, LadderError> {
        let mut rates: Vec<u64> = Vec::new();
        let mut sizes = Vec::new();
        let mut last = 1;
        for (line, text) in (1..).zip(lines) {
            last = line;
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let row =
                if rates.is_empty() { read_rates(text, &mut rates) } else { read_sizes(text, rates.len(), &mut sizes) };
            row.map_err(|kind| LadderError { line, kind })?;
        }
        let found = sizes.len().checked_div(rates.len()).unwrap_or(0);
        if found <= Self::SKIPPED {
            return Err(LadderError { line: last, kind: LadderErrorKind::TooShort { found, skipped: Self::SKIPPED } });
        }
        let rates = rates.into_iter().map(|kbps| Rate::from_bps(kbps.saturating_mul(1000))).collect();
        Ok(Self { rates, sizes: sizes.into() })
    }

    /// Number of frames in the traces; more than [`SKIPPED`](Self::SKIPPED).
    pub fn frames(&self) -> usize {
        self.sizes.len() / self.rates.len()
    }

    /// The lowest and the highest bit rate of the traces.
    pub fn range(&self) -> (Rate, Rate) {
        let end = |rate: Option<&Rate>| rate.copied().unwrap_or(Rate::ZERO);
        (end(self.rates.first()), end(self.rates.last()))
    }

    /// Returns the index of the frame after frame `index`. The traces repeat after their last frame (RFC 8593, Sec.
    /// 6.2.1).
    pub(super) fn after(&self, index: usize) -> usize {
        if index < Self::SKIPPED {
            index + 1
        } else {
            (index + 1 - Self::SKIPPED) % (self.frames() - Self::SKIPPED) + Self::SKIPPED
        }
    }

    /// The size of frame `index` at a rate. The size is interpolated between the sizes at the two neighbouring rates of
    /// the traces. Below the lowest rate, the size at the lowest rate is scaled in proportion to the rate. Above the
    /// highest rate, the size at the highest rate is scaled (RFC 8593, Sec. 6.2.1, cases a to c).
    pub(super) fn size(&self, index: usize, rate: Rate) -> Size {
        let above = self.rates.partition_point(|it| *it <= rate);
        let bytes = match (above.checked_sub(1), above) {
            (None, _) => self.at(index, 0) * self.share(rate, 0),
            (Some(last), above) if above == self.rates.len() => self.at(index, last) * self.share(rate, last),
            (Some(low), high) => {
                let (from, to) = (self.rates[low].as_bps_f64(), self.rates[high].as_bps_f64());
                let distance = (rate.as_bps_f64() - from) / (to - from);
                self.at(index, high) * distance + self.at(index, low) * (1.0 - distance)
            }
        };
        Size::from_bytes(libm::round(bytes.clamp(Self::SMALLEST, Self::LARGEST)) as u64)
    }

    fn share(&self, rate: Rate, of: usize) -> f64 {
        rate.as_bps_f64() / self.rates[of].as_bps_f64()
    }

    fn at(&self, index: usize, rate: usize) -> f64 {
        f64::from(self.sizes.get(index * self.rates.len() + rate).copied().unwrap_or(0))
    }
}

fn columns(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\t', ';']).filter(|column| !column.is_empty())
}

fn read_rates(text: &str, rates: &mut Vec<u64>) -> Result<(), LadderErrorKind> {
    for column in columns(text) {
        let no_number = || LadderErrorKind::NoNumber { field: "rate in kbit/s", text: column.to_string() };
        let found: u64 = column.parse().map_err(|_| no_number())?;
        let previous = rates.last().copied().unwrap_or(0);
        if found <= previous {
            return Err(LadderErrorKind::Order { found, previous });
        }
        if rates.len() == MOST_RATES {
            return Err(LadderErrorKind::TooMany { what: "rates", most: MOST_RATES });
        }
        rates.push(found);
    }
    Ok(())
}

fn read_sizes(text: &str, expected: usize, sizes: &mut Vec<u32>) -> Result<(), LadderErrorKind> {
    if sizes.len() / expected == MOST_FRAMES {
        return Err(LadderErrorKind::TooMany { what: "frames", most: MOST_FRAMES });
    }
    let found = columns(text).count();
    if found != expected {
        return Err(LadderErrorKind::Columns { found, expected });
    }
    for column in columns(text) {
        let no_number = || LadderErrorKind::NoNumber { field: "size in bytes", text: column.to_string() };
        let size: u32 = column.parse().map_err(|_| no_number())?;
        sizes.push(size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    /// Traces in which frame n has 100 + n bytes at 200 kbit/s and 3 · (100 + n) bytes at 600 kbit/s.
    fn ladder(frames: usize) -> Ladder {
        let rows: Vec<String> = (0..frames).map(|n| format!("{},{}", 100 + n, 3 * (100 + n))).collect();
        let head = ["# kbit/s", "200, 600"];
        Ladder::parse(head.into_iter().chain(rows.iter().map(String::as_str))).expect("traces")
    }

    fn bytes(ladder: &Ladder, index: usize, kbps: u64) -> u64 {
        ladder.size(index, Rate::from_bps(kbps * 1000)).as_bytes()
    }

    #[test]
    fn sizes_lie_between_those_of_the_neighbouring_rates_and_are_scaled_beyond() {
        let ladder = ladder(30);
        assert_eq!([200, 300, 400, 599].map(|kbps| bytes(&ladder, 0, kbps)), [100, 150, 200, 300]);
        assert_eq!([600, 1200, 100, 1].map(|kbps| bytes(&ladder, 0, kbps)), [300, 600, 50, 10]);
        assert_eq!(bytes(&ladder, 29, 600), 387);
        assert_eq!(ladder.size(29, Rate::from_bps(u64::MAX)).as_bytes(), 1_000_000);
    }

    #[test]
    fn traces_begin_anew_behind_their_first_frames() {
        let ladder = ladder(23);
        let order: Vec<usize> = core::iter::successors(Some(17), |index| Some(ladder.after(*index))).take(9).collect();
        assert_eq!(order, [17, 18, 19, 20, 21, 22, 20, 21, 22]);
    }

    #[test]
    fn what_is_no_traces_is_refused_by_line() {
        let refused = |text: &str| Ladder::parse(text.lines()).expect_err("wrong").to_string();
        assert_eq!(
            refused("200,100"),
            "line 1: the rates must ascend from above zero, and 100 kbit/s follows 200 kbit/s"
        );
        assert_eq!(refused("0,100"), "line 1: the rates must ascend from above zero, and 0 kbit/s follows 0 kbit/s");
        assert_eq!(refused("\n200,x"), "line 2: `x` is no rate in kbit/s");
        assert_eq!(refused("200,600\n1"), "line 2: 1 sizes; each frame has one for each of the 2 rates");
        assert_eq!(refused("200,600\n1 -5"), "line 2: `-5` is no size in bytes");
        let short = "line 2: 1 frames; traces are repeated after the first 20, and need more than these";
        assert_eq!(refused("200,600\n1,2"), short);
        assert!(refused("").contains("0 frames"));
    }
}
