use equipoise::units::{Instant, ReceiverClock, Span};

use super::recorder::Recorder;
use crate::Ecn;
use crate::wire::feedback::{FeedbackError, TransportHead, encode_congestion_feedback, encode_transport_feedback};

/// How a receiver sends per-packet reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reporting {
    /// The format of the reports.
    pub format: Format,
    /// The minimum time between reports, [`SHORTEST`](Self::SHORTEST) to [`LONGEST`](Self::LONGEST).
    pub interval: Span,
}

impl Reporting {
    /// The shortest interval between reports that can be configured.
    pub const SHORTEST: Span = Span::from_millis(5);
    /// The longest interval between reports that can be configured. Per-packet control laws already react slowly if
    /// reports are more than 250 ms apart.
    pub const LONGEST: Span = Span::from_millis(500);
    /// The usual interval between reports. Our choice: a value between the 40 ms of `SCReAM`
    /// (draft-ietf-ccwg-rfc8298bis-screamv2-01) and the 100 ms of NADA (RFC 8698, Table 2).
    pub const INTERVAL: Span = Span::from_millis(50);
}

/// A format of per-packet feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// RFC 8888. Packets are identified by the sequence numbers of each stream. Reports contain congestion marks, and
    /// arrival times in units of 1/1024 s. A packet may be reported more than once.
    CongestionFeedback,
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01. Packets are identified by numbers that count all packets of
    /// the transport. Reports contain arrival times in units of 250 µs, but no congestion marks. Each packet is
    /// reported once, unless packets arrive out of order.
    TransportWide,
}

impl Format {
    /// Resolution of arrival times (RFC 8888, Sec. 3.1; draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 3.1).
    pub const fn quantum(self) -> Span {
        match self {
            Self::CongestionFeedback => Span::from_nanos(976_563),
            Self::TransportWide => Span::from_micros(250),
        }
    }
}

/// Decides when a report on the packets of one stream is due, and writes it.
///
/// The first packet is reported immediately. A later packet is reported as soon as one interval has passed since the
/// last report. In the format of RFC 8888, a report repeats the last `OVERLAP` packets of the previous report.
/// Therefore the loss of a single report does no harm if the lost report covers at most `OVERLAP` packets.
#[derive(Clone, Debug)]
pub struct Reporter {
    reporting: Reporting,
    recorder: Recorder,
    /// The highest transport-wide number, extended beyond 16 bits.
    highest: Option<u64>,
    last: Option<Instant<ReceiverClock>>,
    due: Option<Instant<ReceiverClock>>,
    /// Number of transport-wide feedback packets that were written so far, modulo 256.
    count: u8,
}

/// Number of packets that a reporter remembers: half a second of 1500-byte packets at 100 Mbit/s.
const WINDOW: u16 = 4096;
/// Number of packets of a report that the next report repeats.
const OVERLAP: u64 = 16;

impl Reporter {
    /// Creates a reporter without arrivals.
    pub fn new(reporting: Reporting) -> Self {
        Self { reporting, recorder: Recorder::new(WINDOW), highest: None, last: None, due: None, count: 0 }
    }

    /// Records that a packet arrived at `now`: `sequence` is the packet's number in its stream, `transport` its
    /// transport-wide number. Returns whether the packet has the number that the configured report format uses.
    pub fn on_arrival(
        &mut self,
        now: Instant<ReceiverClock>,
        (sequence, transport): (u64, Option<u16>),
        ecn: Ecn,
    ) -> bool {
        let number = match self.reporting.format {
            Format::CongestionFeedback => Some(sequence),
            Format::TransportWide => transport.map(|transport| self.unwrap(transport)),
        };
        let Some(number) = number else { return false };
        self.recorder.on_arrival(number, now, ecn);
        let soonest = self.last.map_or(now, |last| last + self.reporting.interval);
        self.due.get_or_insert(soonest.max(now));
        true
    }

    /// Returns the number whose lower 16 bits are `sequence` and that is nearest to the highest number so far.
    fn unwrap(&mut self, sequence: u16) -> u64 {
        // The first number is extended to at least 2¹⁶, so that packets that were sent earlier but arrive later get
        // numbers above zero.
        let highest = self.highest.unwrap_or(u64::from(sequence) + (1 << 16));
        let ahead = i64::from(sequence.wrapping_sub(highest as u16).cast_signed());
        let number = highest.saturating_add_signed(ahead);
        self.highest = Some(highest.max(number));
        number
    }

    /// Forgets all arrivals and the report that is due, because the stream restarted with other packet numbers.
    pub fn begin_anew(&mut self) {
        *self = Self { count: self.count, last: self.last, ..Self::new(self.reporting) };
    }

    /// Returns when the next report is due; `None` while there is nothing to report.
    pub const fn due(&self) -> Option<Instant<ReceiverClock>> {
        self.due
    }

    /// Writes the report that is due by `now`, if any. Its sender is `ssrc`, and it is about the packets of the stream
    /// `media`. The report is split into feedback packets of at most `limit` bytes. `emit` is called once per feedback
    /// packet, with a function that writes this packet.
    ///
    /// # Errors
    /// [`FeedbackError`] if not even one packet's status fits into the limit.
    pub fn report(
        &mut self,
        now: Instant<ReceiverClock>,
        (ssrc, media): (u32, u32),
        limit: usize,
        mut emit: impl FnMut(&mut dyn FnMut(&mut alloc::vec::Vec<u8>)),
    ) -> Result<(), FeedbackError> {
        if self.due.is_none_or(|due| due > now) {
            return Ok(());
        }
        (self.due, self.last) = (None, Some(now));
        let mut told = Ok(1);
        match self.reporting.format {
            Format::CongestionFeedback => {
                let mut packets = self.recorder.report(OVERLAP);
                while packets.len() > 0 && told.is_ok_and(|count| count > 0) {
                    emit(&mut |out| {
                        told = encode_congestion_feedback(ssrc, now, limit, out, |writer| {
                            writer.stream(media, &mut packets)
                        });
                    });
                }
            }
            Format::TransportWide => {
                let mut packets = self.recorder.report(0);
                while packets.len() > 0 && told.is_ok_and(|count| count > 0) {
                    let head = TransportHead { ssrc, media_ssrc: media, number: self.count, at: now };
                    emit(&mut |out| told = encode_transport_feedback(&head, &mut packets, limit, out));
                    self.count = self.count.wrapping_add(1);
                }
            }
        }
        told.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::wire::feedback::ArrivalFeedback;
    use crate::wire::rtcp::parse_compound;

    const MS: Span = Span::from_millis(1);

    fn at(millis: i64) -> Instant<ReceiverClock> {
        Instant::ZERO + MS * millis
    }

    fn reporter(format: Format) -> Reporter {
        Reporter::new(Reporting { format, interval: MS * 50 })
    }

    /// The datagrams of the report that is due by `now`.
    fn datagrams(reporter: &mut Reporter, now: Instant<ReceiverClock>, limit: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let write = |write: &mut dyn FnMut(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            all.push(out);
        };
        reporter.report(now, (9, 7), limit, write).expect("room");
        all
    }

    /// Returns the sequence numbers that a feedback datagram reports as arrived.
    fn arrived(datagram: &[u8]) -> Vec<u16> {
        let mut packets = parse_compound(datagram).expect("a compound");
        let feedback = ArrivalFeedback::of(&packets.next().expect("a packet")).expect("feedback").expect("whole");
        let near = at(0);
        match feedback {
            ArrivalFeedback::Congestion(it) => it
                .streams()
                .flat_map(|stream| stream.report(near).packets)
                .filter_map(|status| status.arrival.map(|_| status.sequence))
                .collect(),
            ArrivalFeedback::Transport(it) => {
                it.report(near).packets.filter_map(|status| status.arrival.map(|_| status.sequence)).collect()
            }
        }
    }

    #[test]
    fn the_first_packet_is_reported_on_at_once_and_the_others_once_in_an_interval() {
        for format in [Format::CongestionFeedback, Format::TransportWide] {
            let mut reporter = reporter(format);
            assert_eq!(reporter.due(), None);
            reporter.on_arrival(at(3), (70_000, Some(4)), Ecn::NotCapable);
            assert_eq!(reporter.due(), Some(at(3)));
            assert_eq!(datagrams(&mut reporter, at(3), 128).len(), 1);
            reporter.on_arrival(at(5), (70_001, Some(5)), Ecn::NotCapable);
            reporter.on_arrival(at(9), (70_002, Some(6)), Ecn::NotCapable);
            assert_eq!(reporter.due(), Some(at(53)), "{format:?}");
            assert!(datagrams(&mut reporter, at(52), 128).is_empty());
            let second = datagrams(&mut reporter, at(53), 128);
            let numbers = match format {
                Format::CongestionFeedback => [4464, 4465, 4466].to_vec(),
                Format::TransportWide => [5, 6].to_vec(),
            };
            assert_eq!(arrived(&second[0]), numbers, "RFC 8888 tells twice");
            assert_eq!(reporter.due(), None, "nothing has come since");
            reporter.on_arrival(at(500), (70_003, Some(7)), Ecn::NotCapable);
            assert_eq!(reporter.due(), Some(at(500)), "an interval has passed long ago");
        }
    }

    /// If this test fails, packets that do not fit into the first feedback packet of a report are never acknowledged.
    #[test]
    fn what_does_not_fit_into_one_packet_goes_into_several() {
        for format in [Format::CongestionFeedback, Format::TransportWide] {
            let mut reporter = reporter(format);
            for number in 0..1000u16 {
                reporter.on_arrival(at(i64::from(number) / 20), (u64::from(number), Some(number)), Ecn::NotCapable);
            }
            let all = datagrams(&mut reporter, at(50), 128);
            assert!(all.len() > 5 && all.iter().all(|datagram| datagram.len() <= 128), "{}", all.len());
            let numbers: Vec<u16> = all.iter().flat_map(|datagram| arrived(datagram)).collect();
            assert_eq!(numbers, (0..1000).collect::<Vec<u16>>());
        }
    }

    #[test]
    fn transport_wide_numbers_are_counted_over_their_wrap_in_either_order() {
        let mut reporter = reporter(Format::TransportWide);
        assert!(!reporter.on_arrival(at(0), (1, None), Ecn::NotCapable), "a packet without a number");
        for number in [0, 65_535, 1, 65_534] {
            reporter.on_arrival(at(0), (1, Some(number)), Ecn::NotCapable);
        }
        assert_eq!(arrived(&datagrams(&mut reporter, at(0), 128)[0]), [65_534, 65_535, 0, 1]);
    }

    #[test]
    fn a_stream_that_begins_anew_is_reported_on_by_its_new_numbers() {
        let mut reporter = reporter(Format::CongestionFeedback);
        reporter.on_arrival(at(0), (50_000, None), Ecn::NotCapable);
        datagrams(&mut reporter, at(0), 128);
        reporter.begin_anew();
        reporter.on_arrival(at(10), (7, None), Ecn::NotCapable);
        assert_eq!(reporter.due(), Some(at(50)));
        assert_eq!(arrived(&datagrams(&mut reporter, at(50), 128)[0]), [7]);
    }

    #[test]
    fn a_limit_that_nothing_fits_into_is_an_error() {
        let mut reporter = reporter(Format::CongestionFeedback);
        reporter.on_arrival(at(0), (1, None), Ecn::NotCapable);
        let result = reporter.report(at(0), (9, 7), 12, |write| write(&mut Vec::new()));
        assert!(matches!(result, Err(FeedbackError::NoRoom { .. })), "{result:?}");
    }
}
