use std::io::{self, BufReader, Read};
use std::sync::{Arc, OnceLock};

use flate2::read::MultiGzDecoder;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

use super::error::CaptureError;
use super::rtp;

/// A frame of a capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// Capture time, in nanoseconds since 1970.
    pub(super) at_ns: i64,
    pub(super) link: Linktype,
    /// Number of the network interface that captured the frame; 0 in a pcap file.
    pub(super) interface: u32,
    /// The bytes of the frame that were captured.
    pub(super) data: &'a [u8],
}

/// Reads the frames of a capture file in order.
pub(super) struct Frames<'a> {
    reader: Box<dyn PcapReaderIterator + Send + 'a>,
    /// The link type in the file's header. It is used only for pcap files.
    link: Linktype,
    nanos_per_tick: i64,
    /// The interfaces of the current section. They are used only for pcapng files.
    interfaces: Vec<Interface>,
    failed: Failure,
}

/// The first error that occurred while the file was read, if any.
type Failure = Arc<OnceLock<io::ErrorKind>>;

#[derive(Clone, Copy)]
struct Interface {
    link: Linktype,
    /// Timestamp ticks per second.
    resolution: u64,
    offset_s: i64,
}

/// Size of the read buffer in bytes. A frame must fit. The formats usually limit frames to 262 144 bytes.
const BUFFER: usize = 1 << 19;
/// Maximum number of interfaces in a section of a file. Real sections have few. A larger number means that the file is
/// damaged.
const MOST_INTERFACES: usize = 65_536;
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// The kind of a file that was opened.
pub(super) enum Opened<'a> {
    /// A capture file, pcap or pcapng.
    Capture(Frames<'a>),
    /// A file that rtpdump wrote. The reader is positioned after the file's magic number.
    RtpDump(Box<dyn Read + Send + 'a>),
}

/// Returns a reader of the file's content, decompressed if necessary. An empty file is an error.
fn plain<'a>(source: impl Read + Send + 'a) -> Result<Box<dyn Read + Send + 'a>, CaptureError> {
    let mut source = BufReader::new(source);
    let mut magic = Vec::new();
    source.by_ref().take(GZIP.len() as u64).read_to_end(&mut magic)?;
    if magic.is_empty() {
        return Err(CaptureError::Empty);
    }
    let whole = io::Cursor::new(magic.clone()).chain(source);
    Ok(if magic == GZIP { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}

impl<'a> Frames<'a> {
    /// Opens a capture file, pcap or pcapng, which may be compressed with gzip.
    pub(super) fn open(source: impl Read + Send + 'a) -> Result<Self, CaptureError> {
        Self::of_plain(plain(source)?)
    }

    /// Opens a capture file or a file that rtpdump wrote. The file may be compressed with gzip.
    pub(super) fn open_any(source: impl Read + Send + 'a) -> Result<Opened<'a>, CaptureError> {
        let mut source = plain(source)?;
        let mut magic = Vec::new();
        source.by_ref().take(rtp::DUMP_MAGIC.len() as u64).read_to_end(&mut magic)?;
        if magic == rtp::DUMP_MAGIC {
            return Ok(Opened::RtpDump(source));
        }
        Ok(Opened::Capture(Self::of_plain(Box::new(io::Cursor::new(magic).chain(source)))?))
    }

    fn of_plain(source: Box<dyn Read + Send + 'a>) -> Result<Self, CaptureError> {
        let failed = Failure::default();
        let reader = create_reader(BUFFER, Whole { source, failed: Arc::clone(&failed) });
        let reader = reader.map_err(|error| match (failed.get(), error) {
            (Some(&kind), _) => CaptureError::Read(kind.into()),
            (None, PcapError::Eof) => CaptureError::Empty,
            (None, _) => CaptureError::NotACapture,
        })?;
        Ok(Self { reader, link: Linktype::NULL, nanos_per_tick: 1000, interfaces: Vec::new(), failed })
    }

    /// Calls `take` for each frame. Returns why reading ended, if it ended before the end of the file.
    pub(super) fn each(&mut self, mut take: impl FnMut(&Frame<'_>)) -> Option<String> {
        let mut position = 0u64;
        loop {
            match self.reader.next() {
                Ok((length, block)) => {
                    let (link, nanos) = (&mut self.link, &mut self.nanos_per_tick);
                    if let Some(frame) = Self::frame(&block, link, nanos, &mut self.interfaces) {
                        take(&frame);
                    }
                    position += length as u64;
                    self.reader.consume(length);
                }
                Err(PcapError::Eof) => return self.failed.get().map(|kind| failure(*kind, position)),
                Err(PcapError::Incomplete(_)) => {
                    if self.reader.reader_exhausted() || self.reader.refill().is_err() {
                        return Some(format!("cut off in the middle of a frame, at byte {position}"));
                    }
                }
                Err(PcapError::UnexpectedEof) => {
                    return Some(format!("cut off in the middle of a frame, at byte {position}"));
                }
                Err(PcapError::BufferTooSmall) => {
                    return Some(format!("damaged at byte {position}: a frame of more than {BUFFER} bytes"));
                }
                Err(_) => return Some(format!("damaged at byte {position}: what stands there is no frame")),
            }
        }
    }

    fn frame<'b>(
        block: &PcapBlockOwned<'b>,
        link: &mut Linktype,
        nanos_per_tick: &mut i64,
        interfaces: &mut Vec<Interface>,
    ) -> Option<Frame<'b>> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                *link = header.network;
                *nanos_per_tick = if header.is_nanosecond_precision() { 1 } else { 1000 };
                None
            }
            PcapBlockOwned::Legacy(frame) => {
                let at_ns = i64::from(frame.ts_sec) * 1_000_000_000 + i64::from(frame.ts_usec) * *nanos_per_tick;
                let kept = (frame.caplen as usize).min(frame.data.len());
                Some(Frame { at_ns, link: *link, interface: 0, data: &frame.data[..kept] })
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                interfaces.clear();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                if interfaces.len() < MOST_INTERFACES {
                    let resolution = interface.ts_resolution().unwrap_or(1_000_000).max(1);
                    interfaces.push(Interface {
                        link: interface.linktype,
                        resolution,
                        offset_s: interface.if_tsoffset,
                    });
                }
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = interfaces.get(packet.if_id as usize)?;
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let kept = (packet.caplen as usize).min(packet.data.len());
                let (at_ns, link) = (interface.nanos(ticks), interface.link);
                Some(Frame { at_ns, link, interface: packet.if_id, data: &packet.data[..kept] })
            }
            // A simple packet block of pcapng contains no capture time, so it is skipped.
            PcapBlockOwned::NG(_) => None,
        }
    }
}

impl Interface {
    /// Converts a timestamp in ticks to nanoseconds since 1970. The result saturates if it does not fit.
    fn nanos(&self, ticks: u64) -> i64 {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.resolution);
        i64::try_from(nanos).unwrap_or(i64::MAX).saturating_add(self.offset_s.saturating_mul(1_000_000_000))
    }
}

/// Returns the text that says why reading ended after the last complete frame.
fn failure(kind: io::ErrorKind, position: u64) -> String {
    match kind {
        io::ErrorKind::UnexpectedEof => format!("cut off, its last whole frame ends at byte {position}"),
        _ => format!("unreadable from byte {position} on"),
    }
}

/// Fills the parser's buffer as far as possible, because the parser refuses a file whose header is not complete after
/// the first read.
///
/// Presents a read error as the end of the file, so that the parser still parses the bytes before the error. The error
/// is stored in `failed`.
struct Whole<R> {
    source: R,
    failed: Failure,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() && self.failed.get().is_none() {
            match self.source.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // `set` does not fail, because nothing is read after the first error.
                Err(error) => _ = self.failed.set(error.kind()),
            }
        }
        Ok(filled)
    }
}
