//! Reads published traces of video frame sizes.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use thiserror::Error;

use super::{Frame, FrameKind, Video};
use equipoise::units::{Size, Span};

/// Why a text is not a valid trace of frame sizes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {kind}")]
pub struct VideoError {
    /// The number of the line with the error, from 1; the last line if something is missing at the end of the text.
    pub line: usize,
    /// The error in that line.
    pub kind: VideoErrorKind,
}

/// The error in a line of a trace of frame sizes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VideoErrorKind {
    /// The number of columns matches no trace format, or the trace mixes lines of one column (terse) with lines of
    /// several columns (verbose).
    #[error(
        "{found} columns; a trace has one (bytes), four (number, type, ms, bytes) or six and more (number, ms, type, bits, quality)"
    )]
    Columns {
        /// Number of columns in the line.
        found: usize,
    },
    /// A column is not a valid number.
    #[error("`{text}` is no {field}")]
    NoNumber {
        /// The expected content of the column.
        field: &'static str,
        /// The text in the column.
        text: String,
    },
    /// The frame type is unknown.
    #[error("`{text}` is not a frame type; it must be I, IDR, P or B")]
    FrameType {
        /// The text in the column of the frame type.
        text: String,
    },
    /// The number of a frame is not the expected number.
    #[error("frame number {found} where {expected} is due; lines are missing or out of order")]
    Number {
        /// The number in the line.
        found: u64,
        /// The expected number.
        expected: u64,
    },
    /// A display time is not a multiple of the frame interval.
    #[error("the time of {found} ms is not a whole number of frame intervals of {interval}")]
    Time {
        /// The display time as written in the line.
        found: String,
        /// The frame interval, as computed from the display times.
        interval: Span,
    },
    /// Two frames have the same display time.
    #[error("another frame has the time of {found} ms")]
    Twice {
        /// The display time as written in the line.
        found: String,
    },
    /// The frame with this display time is missing, or comes after more than 32 frames with later display times.
    #[error("the frame of {at} does not come; the trace is cut off, or lines are missing")]
    Missing {
        /// The display time of the missing frame.
        at: Span,
    },
    /// The trace has no frames, or too few frames to compute the frame interval.
    #[error("a trace needs two frames at least")]
    Empty,
    /// The trace has too many frames.
    #[error("more than {most} frames")]
    TooLong {
        /// The maximum number of frames.
        most: usize,
    },
}

/// Maximum number of frames, which limits the memory. At 120 frames/s, this number lasts for almost ten hours.
const MOST_FRAMES: usize = 1 << 22;
/// Maximum number of frames that precede a frame in coding order although they are displayed later. Our choice: twice
/// the longest pyramid of B frames in use, which has 16 frames.
const REORDERED: usize = 32;
/// Maximum size of a frame: 16 MiB, which is larger than any coded frame.
const LARGEST_FRAME: u64 = 16 << 20;
/// Tolerance for rounded display times, as a share of the frame interval. If times are truncated to whole milliseconds
/// and the interval is 8 ms, the error is up to an eighth of the interval.
const ROUNDING: f64 = 0.15;

/// A parsed line of a verbose trace.
struct Row<'t> {
    line: usize,
    number: u64,
    /// Whether `number` counts the lines of the trace; if not, it counts frames in display order.
    counts_lines: bool,
    kind: FrameKind,
    time: &'t str,
    time_ms: f64,
    size: Size,
}

impl Video {
    /// Reads a trace of frame sizes. Empty lines and lines that begin with `#` are skipped. The number of columns
    /// determines which of three formats is read:
    ///
    /// - verbose (TU Berlin, Fitzek 2001): line number, frame type, display time in ms, size in bytes;
    /// - verbose (Arizona State University, Seeling 2012): number in display order, display time in ms, frame type,
    ///   size in bits, and columns of quality, which are ignored;
    /// - terse: only the size in bytes, one frame every `terse_interval`, in the order of the file.
    ///
    /// The lines of a verbose trace are in coding order, and the frames of the returned video are in the same order.
    /// Each display time must occur exactly once. In coding order, a frame may come after at most 32 frames with later
    /// display times.
    ///
    /// # Errors
    /// [`VideoError`] with the line number of the error.
    pub fn parse<'t>(lines: impl IntoIterator<Item = &'t str>, terse_interval: Span) -> Result<Self, VideoError> {
        let (mut rows, mut terse): (Vec<Row<'t>>, Vec<Frame>) = (Vec::new(), Vec::new());
        let mut last = 0;
        for (index, text) in lines.into_iter().enumerate() {
            let line = index + 1;
            let wrong = |kind| VideoError { line, kind };
            let columns: Vec<&str> = text.split_whitespace().take(MOST_COLUMNS).collect();
            if columns.first().is_none_or(|first| first.starts_with('#')) {
                continue;
            }
            last = line;
            match (columns.as_slice(), rows.is_empty(), terse.is_empty()) {
                ([bytes], true, _) => terse.push(Frame { kind: None, size: size(bytes, 1).map_err(wrong)? }),
                (&[number, kind, time, bytes], _, true) => rows.push(Row {
                    counts_lines: true,
                    ..row(line, [number, kind, time], size(bytes, 1)).map_err(wrong)?
                }),
                (&[number, time, kind, bits, _, _, ..], _, true) => rows.push(Row {
                    counts_lines: false,
                    ..row(line, [number, kind, time], size(bits, 8)).map_err(wrong)?
                }),
                (columns, ..) => return Err(wrong(VideoErrorKind::Columns { found: columns.len() })),
            }
            if rows.len().max(terse.len()) > MOST_FRAMES {
                return Err(wrong(VideoErrorKind::TooLong { most: MOST_FRAMES }));
            }
        }
        if terse.len() > 1 && terse_interval > Span::ZERO {
            return Ok(Self::new(terse_interval, terse));
        }
        let interval_ms = check(&rows, last)?;
        let interval = Span::from_nanos(libm::round(interval_ms * 1e6) as i64);
        Ok(Self::new(interval, rows.iter().map(|row| Frame { kind: Some(row.kind), size: row.size }).collect()))
    }
}

/// Columns of a line after the first 16 are ignored; no format has more columns.
const MOST_COLUMNS: usize = 16;

fn row(
    line: usize,
    [number, kind, time]: [&str; 3],
    size: Result<Size, VideoErrorKind>,
) -> Result<Row<'_>, VideoErrorKind> {
    let no = |field, text: &str| VideoErrorKind::NoNumber { field, text: text.to_string() };
    let kind = match kind {
        "I" | "IDR" => FrameKind::I,
        "P" => FrameKind::P,
        "B" => FrameKind::B,
        _ => return Err(VideoErrorKind::FrameType { text: kind.to_string() }),
    };
    let number = number.parse().map_err(|_| no("frame number", number))?;
    let time_ms: f64 = time.parse().map_err(|_| no("time in ms", time))?;
    if !(0.0..1e12).contains(&time_ms) {
        return Err(no("time in ms", time));
    }
    Ok(Row { line, number, counts_lines: true, kind, time, time_ms, size: size? })
}

/// Parses a size in bytes or, if `per_byte` is 8, in bits. Returns the size rounded up to whole bytes.
fn size(text: &str, per_byte: u64) -> Result<Size, VideoErrorKind> {
    let units: Option<u64> = text.parse().ok();
    let bytes = units.map(|units| units.div_ceil(per_byte)).filter(|bytes| *bytes <= LARGEST_FRAME);
    let field = if per_byte == 1 { "size in bytes" } else { "size in bits" };
    bytes.map(Size::from_bytes).ok_or_else(|| VideoErrorKind::NoNumber { field, text: text.to_string() })
}

/// Checks that every frame occurs exactly once. Returns the frame interval in ms.
fn check(rows: &[Row<'_>], last: usize) -> Result<f64, VideoError> {
    let at_end = |kind| VideoError { line: last.max(1), kind };
    // The smallest display time above 0 is the frame interval. Its row is expected among the first `REORDERED` rows,
    // because reordering delays a frame by few rows.
    let first = rows.iter().take(REORDERED).map(|row| row.time_ms).filter(|time| *time > 0.0).reduce(f64::min);
    let coarse = first.ok_or_else(|| at_end(VideoErrorKind::Empty))?;
    // The frame interval is computed from the latest display time, because the smallest display time above 0 has a
    // larger relative rounding error.
    let intervals = rows.iter().map(|row| row.time_ms).fold(0.0, f64::max) / coarse;
    let whole = libm::round(intervals);
    let interval_ms = if (intervals - whole).abs() < ROUNDING { coarse * intervals / whole } else { coarse };
    let interval = Span::from_nanos(libm::round(interval_ms * 1e6) as i64);
    let shown_at = |place: usize| interval * i64::try_from(place).unwrap_or(i64::MAX);
    let (mut due, mut early) = (0, BTreeSet::new());
    for (index, row) in rows.iter().enumerate() {
        let wrong = |kind| VideoError { line: row.line, kind };
        let place = libm::round(row.time_ms / interval_ms);
        if (row.time_ms / interval_ms - place).abs() > ROUNDING {
            return Err(wrong(VideoErrorKind::Time { found: row.time.to_string(), interval }));
        }
        let place = place as usize;
        let expected = if row.counts_lines { index as u64 + 1 } else { place as u64 };
        if row.number != expected {
            return Err(wrong(VideoErrorKind::Number { found: row.number, expected }));
        }
        if place < due || !early.insert(place) {
            return Err(wrong(VideoErrorKind::Twice { found: row.time.to_string() }));
        }
        while early.remove(&due) {
            due += 1;
        }
        if early.len() > REORDERED {
            return Err(wrong(VideoErrorKind::Missing { at: shown_at(due) }));
        }
    }
    if early.is_empty() { Ok(interval_ms) } else { Err(at_end(VideoErrorKind::Missing { at: shown_at(due) })) }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    const INTERVAL: Span = Span::from_millis(40);

    fn parse(text: &str) -> Result<Video, VideoError> {
        Video::parse(text.lines(), INTERVAL)
    }

    fn sizes(video: &Video) -> Vec<u64> {
        video.frames().iter().map(|frame| frame.size.as_bytes()).collect()
    }

    const VERBOSE: &str = "1\tI\t\t0\t\t919\n2\tP\t\t120\t\t1161\n3\tB\t\t40\t\t302\n4\tB\t\t80\t\t432\n";
    const BITS: &str = "# Frame Time [ms] Type Size [Bit] PSNR-Y PSNR-U PSNR-V\n\
                        0\t0.00000\tIDR\t1290616\t53.1\t53.0\t53.5\n\
                        3\t100.00000\tP\t914160\t51.8\t52.4\t52.9\n\
                        1\t33.33333\tB\t420536\t50.5\t51.8\t52.3\n\
                        2\t66.66667\tB\t439073\t50.5\t51.8\t52.3\n";

    #[test]
    fn both_verbose_formats_are_read_in_coding_order() {
        let bytes = parse(VERBOSE).expect("a trace");
        assert_eq!((sizes(&bytes), bytes.interval()), (vec![919, 1161, 302, 432], INTERVAL));
        let kinds: Vec<_> = bytes.frames().iter().filter_map(|frame| frame.kind).collect();
        assert_eq!(kinds, [FrameKind::I, FrameKind::P, FrameKind::B, FrameKind::B]);
        let bits = parse(BITS).expect("a trace");
        assert_eq!(sizes(&bits), [161_327, 114_270, 52_567, 54_885], "bits are rounded up to bytes");
        assert_eq!(bits.interval(), Span::from_nanos(33_333_333));
        assert_eq!(bits.frames()[0].kind, Some(FrameKind::I));
    }

    #[test]
    fn a_terse_trace_has_sizes_only() {
        let video = parse("18059\n7274\n\n8825\n").expect("a trace");
        assert_eq!((sizes(&video), video.interval()), (vec![18_059, 7274, 8825], INTERVAL));
        assert_eq!(video.frames()[0].kind, None);
        assert_eq!(video.length(), Span::from_millis(120));
    }

    #[test]
    fn damaged_traces_are_refused_with_line_and_reason() {
        let without =
            |number: &str| VERBOSE.lines().filter(|line| !line.starts_with(number)).collect::<Vec<_>>().join("\n");
        let cases = [
            (String::new(), "line 1: a trace needs two"),
            ("# nothing\n".into(), "line 1: a trace needs two"),
            ("919\n".into(), "line 1: a trace needs two"),
            (VERBOSE.replace("302", "3o2"), "line 3: `3o2` is no size in bytes"),
            (VERBOSE.replace("302", "-302"), "line 3: `-302` is no size"),
            (VERBOSE.replace("302", "99999999999"), "line 3: `99999999999` is no size"),
            (VERBOSE.replace("\t40\t", "\tforty\t"), "line 3: `forty` is no time"),
            (VERBOSE.replace("\t40\t", "\t-40\t"), "line 3: `-40` is no time"),
            (VERBOSE.replace("\t40\t", "\tNaN\t"), "line 3: `NaN` is no time"),
            (VERBOSE.replace('P', "Q"), "line 2: `Q` is not a frame type"),
            (VERBOSE.replace("\t80\t", "\t40\t"), "line 4: another frame has the time of 40 ms"),
            (VERBOSE.replace("120", "100"), "line 2: the time of 100 ms is not a whole number"),
            (without("2"), "line 2: frame number 3 where 2 is due"),
            (without("4"), "line 3: the frame of 80 ms does not come"),
            (BITS.replace("\n2\t66", "\n5\t66"), "line 5: frame number 5 where 2 is due"),
            (VERBOSE.replace("\t\t432", ""), "line 4: 3 columns"),
            (format!("{VERBOSE}17\n"), "line 5: 1 columns"),
        ];
        for (text, expected) in cases {
            let error = parse(&text).expect_err(expected).to_string();
            assert!(error.starts_with(expected), "{error}; expected {expected}");
        }
    }

    proptest! {
        /// For any text, the parser returns a video, or an error with the number of a line in the text; it never
        /// panics.
        #[test]
        fn any_text_gives_a_video_or_a_line(text in "([0-9 \tIPB#.\n-]|IDR){0,200}") {
            match parse(&text) {
                Ok(video) => prop_assert!(video.frames().len() >= 2 && video.interval() > Span::ZERO),
                Err(error) => prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1)),
            }
        }
    }
}
