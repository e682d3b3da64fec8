use equipoise::control::Fate;
use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_session::Ecn;
use equipoise_session::feedback::{History, Outcome, Recorder, Scope};
use equipoise_session::wire::feedback::{ArrivalReport, ArrivalTime, PacketArrival, PacketStatus};

/// Runs a receiver's recorder of arrivals and a sender's packet history with any order of departures, arrivals and
/// reports, including forged reports.
///
/// The input is a list of operations, of two bytes each: a packet is sent, with or without a gap in the packet numbers;
/// a packet arrives, possibly late or twice; the recorder sends a report, which arrives or is lost; a forged report
/// arrives.
///
/// # Panics
/// If the history's bytes in flight differ from the packets in flight, if a report changes the state of a packet in a
/// way that is not allowed, if the history applies a report to a packet that was not sent, or if the history refuses a
/// report of the recorder.
pub fn packet_history(operations: &[u8]) {
    let mut ends = Ends::new();
    for operation in operations.chunks_exact(2) {
        ends.step(operation[0], u64::from(operation[1]));
        ends.check();
    }
}

const CAPACITY: u64 = 64;
const PACKET: Size = Size::from_bytes(100);

struct Ends {
    history: History,
    recorder: Recorder,
    now: Instant<SenderClock>,
    next: u64,
    /// The numbers of all packets that were sent.
    sent: Vec<u64>,
    /// Numbers of recent packets and of the next 9 packets, with the state of each packet before the last report.
    before: Vec<(u64, Option<Outcome>)>,
}

impl Ends {
    fn new() -> Self {
        Self {
            history: History::new(Scope::Stream(1), CAPACITY as u16),
            recorder: Recorder::new(48),
            now: Instant::from_nanos(1 << 60),
            next: 65_500,
            sent: Vec::new(),
            before: Vec::new(),
        }
    }

    fn step(&mut self, operation: u8, argument: u64) {
        self.now = self.now + Span::from_micros(100);
        match operation >> 5 {
            0..=2 => {
                self.next += argument / 64 * u64::from(operation & 0x1F);
                self.history.on_sent(self.next, PACKET, self.now);
                self.sent.push(self.next);
                self.next += 1;
            }
            3 | 4 => {
                let back = (argument as usize % 80).min(self.sent.len().saturating_sub(1));
                let Some(number) = self.sent.iter().rev().nth(back) else { return };
                self.recorder.on_arrival(*number, self.now.assume_clock(), Ecn::from_bits(operation));
            }
            5 | 6 => {
                let stretch = self.recorder.report(argument % 64);
                if operation.is_multiple_of(4) {
                    return;
                }
                let packets: Vec<_> = stretch.collect();
                let is_taken = self.report(1, &packets);
                assert!(is_taken, "an honest report is refused");
            }
            _ => {
                let begin = (self.next as u16).wrapping_sub((argument as u16) << (operation & 7));
                let arrival = PacketArrival { time: ArrivalTime::At(self.now.assume_clock()), ecn: Ecn::Marked };
                let status = |offset: u16| PacketStatus {
                    sequence: begin.wrapping_add(offset),
                    arrival: (argument >> (offset & 7) & 1 == 0).then_some(arrival),
                };
                let packets: Vec<_> = (0..u16::from(operation & 0x1F)).map(status).collect();
                self.report(u32::from(operation & 8 == 0), &packets);
            }
        }
    }

    /// Passes a report to the history. Returns whether the history accepts the report.
    fn report(&mut self, ssrc: u32, packets: &[PacketStatus]) -> bool {
        let oldest = self.next.saturating_sub(2 * CAPACITY);
        self.before = (oldest..self.next + 9).map(|number| (number, self.history.outcome(number))).collect();
        let made = Some(self.now.assume_clock());
        let report = ArrivalReport { ssrc, made, packets: packets.iter().copied() };
        let Ok(joined) = self.history.on_report(self.now + Span::from_millis(9), &report) else {
            assert!(self.before.iter().all(|(number, known)| self.history.outcome(*number) == *known));
            return false;
        };
        assert!(joined.packets.is_sorted_by(|a, b| a.number < b.number) && joined.packets.len() <= packets.len());
        for packet in joined.packets {
            let before = self.before.iter().find(|(number, _)| *number == packet.number).and_then(|(_, known)| *known);
            let is_allowed = match packet.fate {
                Fate::Lost => matches!(before, Some(Outcome::UnderWay | Outcome::Unknown)),
                _ => matches!(before, Some(Outcome::UnderWay | Outcome::Unknown | Outcome::Lost)),
            };
            assert!(is_allowed, "{packet:?} was {before:?}");
        }
        true
    }

    fn check(&self) {
        let recent = self.sent.iter().rev().take_while(|number| **number + CAPACITY >= self.next);
        let under_way = recent.filter(|number| self.history.outcome(**number) == Some(Outcome::UnderWay)).count();
        assert_eq!(self.history.in_flight(), Size::from_bytes(PACKET.as_bytes() * under_way as u64));
        let counts = self.history.counts();
        assert!(counts.unknown <= self.sent.len() as u64, "{counts:?}");
    }
}
