use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use flate2::read::MultiGzDecoder;

const GZIP: [u8; 2] = [0x1F, 0x8B];
/// Maximum length of a text in bytes. No trace needs more. Without this limit, the text might not fit into memory: a
/// compressed file may expand a thousandfold, and a device or a pipe may have no end.
const LARGEST: u64 = 256 << 20;

/// Reads the text of a trace file, which may be compressed by gzip.
///
/// # Errors
/// [`io::Error`] if the file cannot be read, is not text, or is longer than `LARGEST`.
pub(crate) fn read(file: &Path) -> io::Result<String> {
    let mut open = File::open(file)?;
    let mut magic = Vec::new();
    (&mut open).take(GZIP.len() as u64).read_to_end(&mut magic)?;
    let is_gzip = magic == GZIP;
    let whole = io::Cursor::new(magic).chain(open);
    if is_gzip { bounded(MultiGzDecoder::new(whole), LARGEST) } else { bounded(whole, LARGEST) }
}

/// Reads a whole text; fails if it is longer than `most` bytes.
fn bounded(from: impl io::Read, most: u64) -> io::Result<String> {
    let mut text = String::new();
    // Reads one byte more than the maximum, so that a text that is too long is detected.
    if from.take(most + 1).read_to_string(&mut text)? as u64 > most {
        let problem = format!("it is longer than {} MB, which no trace is", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        assert_eq!(bounded(&b"abc"[..], 3).expect("just as long"), "abc");
        for source in [io::repeat(b'a').take(u64::MAX), io::repeat(b'\n').take(4)] {
            assert_eq!(bounded(source, 3).expect_err("too long").kind(), io::ErrorKind::FileTooLarge);
        }
    }
}
