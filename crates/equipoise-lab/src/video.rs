//! Reads traces of frame sizes from files.

use std::io;
use std::path::{Path, PathBuf};

use equipoise::units::Span;
use equipoise_path::video::{SyntheticError, Video, VideoError};
use thiserror::Error;

use crate::text_file;

/// Why the frames of a video cannot be read or generated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read.
    #[error("{} cannot be read", file.display())]
    Read {
        /// The path of the file.
        file: PathBuf,
        /// Why the file cannot be read.
        source: io::Error,
    },
    /// The content of the file is not a trace.
    #[error("{} is no trace of frame sizes", file.display())]
    Trace {
        /// The path of the file.
        file: PathBuf,
        /// What is wrong with the content.
        source: VideoError,
    },
    /// No synthetic video can have the given properties.
    #[error(transparent)]
    Synthetic(#[from] SyntheticError),
}

/// Reads a trace file in any format of [`Video::parse`]. The file may be compressed by gzip. `terse_interval` is the
/// frame interval of traces that do not specify one.
///
/// # Errors
/// [`TraceError`] if the file cannot be read or is not a trace.
pub fn read(file: &Path, terse_interval: Span) -> Result<Video, TraceError> {
    let text = text_file::read(file).map_err(|source| TraceError::Read { file: file.to_owned(), source })?;
    Video::parse(text.lines(), terse_interval).map_err(|source| TraceError::Trace { file: file.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs::File;
    use std::io::Write as _;

    use super::*;

    /// Expected values from the list that comes with the traces: name, number of frames, mean and largest frame size in
    /// bytes, and coefficient of variation of the sizes.
    const KNOWN: [(&str, usize, f64, u64, f64); 7] = [
        ("star-wars-iv", 89_998, 1376.0, 9370, 0.66),
        ("jurassic-park", 89_998, 3831.0, 16_745, 0.59),
        ("soccer", 89_998, 5533.0, 17_927, 0.41),
        ("silence-of-the-lambs", 89_998, 2876.0, 22_239, 0.80),
        ("formula1", 44_998, 4178.0, 14_431, 0.42),
        ("ard-news", 22_498, 3613.0, 17_055, 0.70),
        ("terminator2-h264-hd", 17_998, 119_212.0, 405_006, 0.44),
    ];

    #[test]
    fn published_traces_are_read_whole_and_have_their_known_moments() {
        let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        let folder = env::var_os("EQUIPOISE_TEST_DATA").map_or(default, PathBuf::from).join("video");
        if !folder.is_dir() {
            println!("skipped: test data (EQUIPOISE_TEST_DATA): video traces at {}", folder.display());
            return;
        }
        let mut read_files = 0;
        for entry in folder.read_dir().expect("a folder") {
            let path = entry.expect("readable").path();
            let video = read(&path, Span::from_millis(40)).unwrap_or_else(|error| panic!("{error:?}"));
            read_files += 1;
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(known) = KNOWN.iter().find(|known| name.starts_with(known.0)) else { continue };
            let (mean, deviation) = video.moments().mean().zip(video.moments().standard_deviation()).expect("frames");
            assert_eq!((video.frames().len(), video.peak().as_bytes()), (known.1, known.3), "{name}");
            assert!((mean - known.2).abs() < 1.0 && (deviation / mean - known.4).abs() < 0.006, "{name}: {mean}");
            let rate = video.moments().count() as f64 / video.length().as_secs_f64();
            assert!((rate - if name.starts_with("term") { 30.0 } else { 25.0 }).abs() < 0.001, "{name}: {rate}");
        }
        assert!(read_files > 0, "an empty folder");
    }

    #[test]
    fn packed_or_plain_a_trace_is_the_same_and_a_damaged_one_names_file_and_line() {
        let folder = env::temp_dir().join(format!("equipoise-video-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let (plain, packed) = (folder.join("plain.txt"), folder.join("packed.gz"));
        std::fs::write(&plain, "1 I 0 900\n2 P 40 300\n").expect("written");
        let mut encoder =
            flate2::write::GzEncoder::new(File::create(&packed).expect("a file"), flate2::Compression::fast());
        encoder.write_all(b"1 I 0 900\n2 P 40 300\n").and_then(|()| encoder.finish().map(drop)).expect("written");
        let read = |file: &Path| read(file, Span::from_millis(40));
        assert_eq!(read(&plain).expect("a trace"), read(&packed).expect("a trace"));
        std::fs::write(&plain, "1 I 0 900\n2 P 40 3x\n").expect("written");
        let error = read(&plain).expect_err("damaged");
        assert!(error.to_string().contains("plain.txt"), "{error}");
        let reason = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(reason.as_deref(), Some("line 2: `3x` is no size in bytes"));
        std::fs::remove_dir_all(&folder).expect("removed");
        assert!(matches!(read(&plain), Err(TraceError::Read { .. })));
    }
}
