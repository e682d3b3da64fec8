//! Reads files that the program rtpdump wrote. They contain the packets to one address, with their times in
//! milliseconds.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::super::datagram::Datagram;
use super::super::error::CaptureError;

/// The magic number of a file: the first bytes of its first line.
pub(in super::super) const MAGIC: &[u8] = b"#!rtpplay1.0 ";
/// Maximum length of the rest of a file's first line, after the magic number, in bytes. The rest contains an address
/// and a port.
const MOST_LINE: usize = 100;
/// Length of the file's header in bytes: start time in seconds and microseconds, source address and port, two bytes of
/// padding.
const HEADER: usize = 16;
/// Length of the header of an entry, in bytes. The header contains the length of the entry, the length of the packet,
/// and the time since the start time in milliseconds.
const ENTRY: usize = 8;
/// Length of the IP and UDP headers in bytes. The file does not contain these headers.
const IPV4_UDP: u32 = 28;

/// Calls `take` for each packet after the magic number. Returns why reading ended, if it ended before the end of the
/// file.
///
/// # Errors
/// [`CaptureError::NotACapture`] if the first line is too long, or if the header is incomplete.
pub(super) fn each(mut source: impl Read, mut take: impl FnMut(&Datagram<'_>)) -> Result<Option<String>, CaptureError> {
    let mut line = Vec::new();
    let mut byte = [0];
    while byte != *b"\n" {
        source.read_exact(&mut byte).map_err(|_| CaptureError::NotACapture)?;
        line.push(byte[0]);
        if line.len() > MOST_LINE {
            return Err(CaptureError::NotACapture);
        }
    }
    let line = String::from_utf8_lossy(&line);
    let unspecified = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let to = line.trim().replacen('/', ":", 1).parse().unwrap_or(unspecified);
    let mut header = [0; HEADER];
    source.read_exact(&mut header).map_err(|_| CaptureError::NotACapture)?;
    let host = Ipv4Addr::from([header[8], header[9], header[10], header[11]]);
    let from = SocketAddr::new(IpAddr::V4(host), u16::from_be_bytes([header[12], header[13]]));
    let mut position = line.len() + HEADER + MAGIC.len();
    let mut packet = Vec::new();
    loop {
        let mut entry = Vec::new();
        let Ok(read) = source.by_ref().take(ENTRY as u64).read_to_end(&mut entry) else {
            return Ok(Some(format!("unreadable from byte {position} on")));
        };
        let cut = || Ok(Some(format!("cut off, its last whole packet ends at byte {position}")));
        let [high, low, whole_high, whole_low, ms @ ..] = entry.as_slice() else {
            return if read == 0 { Ok(None) } else { cut() };
        };
        let Ok(ms) = <[u8; 4]>::try_from(ms) else { return cut() };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some(kept) = length.checked_sub(ENTRY) else {
            return Ok(Some(format!("damaged at byte {position}: an entry of {length} bytes")));
        };
        packet.clear();
        let read = source.by_ref().take(kept as u64).read_to_end(&mut packet);
        if read.unwrap_or(0) < kept {
            return cut();
        }
        // For RTCP, the file states a packet length of zero. In this case the number of captured bytes is used.
        let whole = u32::from(u16::from_be_bytes([*whole_high, *whole_low])).max(kept as u32);
        let at_ns = i64::from(u32::from_be_bytes(ms)) * 1_000_000;
        take(&Datagram { at_ns, interface: 0, from, to, size: whole + IPV4_UDP, payload: &packet });
        position += length;
    }
}
