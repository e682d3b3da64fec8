//! Writes one line of CSV for every media packet of a run: when the packet was sent, when it arrived, and whether it
//! was lost.

use std::collections::BTreeMap;

use equipoise::units::{Instant, SenderClock, Span};
use equipoise_session::{Ecn, Event};

use crate::csv::Row;

/// Combines the events that both endpoints of each flow report about the flow's packets. Packets that do not arrive are
/// kept until the end of the run.
#[derive(Debug, Default)]
pub struct PacketLines {
    /// The packets in flight of each flow, by the flow's name.
    flows: BTreeMap<String, UnderWay>,
    line: String,
}

/// The packets of a flow that have been sent and have not yet arrived.
#[derive(Debug, Default)]
struct UnderWay {
    packets: BTreeMap<Key, Sent>,
    paths: Vec<String>,
}

/// Identifies a sent packet within its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The 16-bit sequence number in the packet; sender and receiver extend this number to 64 bits from different
    /// starting points.
    sequence: u16,
    /// The sender's 64-bit number of the packet.
    number: u64,
    /// Index of the packet's path in the flow; `None` for a flow with one path.
    path: Option<usize>,
}

/// A packet that was sent: time since the run's start, and size.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Span,
    bytes: u64,
}

impl PacketLines {
    /// Names of the columns. A column that does not apply to a packet is empty.
    pub const HEADER: &str = "flow,path,number,sent_s,received_s,delay_s,size_bytes,marked,lost\n";

    /// Returns the line of a packet if `event` is the packet's arrival; `None` for every other event. Times in the line
    /// are relative to the run's start, which is `origin`.
    pub fn line(
        &mut self,
        at: Span,
        (flow, path): (&str, Option<&str>),
        origin: Instant<SenderClock>,
        event: &Event,
    ) -> Option<&str> {
        match *event {
            Event::MediaSent { sequence, size, .. } => {
                if !self.flows.contains_key(flow) {
                    self.flows.insert(flow.to_owned(), UnderWay::default());
                }
                let under_way = self.flows.get_mut(flow)?;
                let path = path.map(|path| under_way.place_of(path));
                let key = Key { sequence: sequence as u16, number: sequence, path };
                under_way.packets.insert(key, Sent { at, bytes: size.as_bytes() });
                None
            }
            Event::MediaReceived { sequence, sent, delay, size, ecn } => {
                let under_way = self.flows.get_mut(flow);
                let number = under_way.and_then(|under_way| under_way.take(sequence, sent - origin));
                self.line.clear();
                Row::after(&mut self.line)
                    .text(flow)
                    .text(path.unwrap_or_default())
                    .number(number.unwrap_or(sequence))
                    .number(format_args!("{:.9}", (sent - origin).as_secs_f64()))
                    .number(format_args!("{:.9}", at.as_secs_f64()))
                    .number(format_args!("{:.9}", delay.as_secs_f64()))
                    .number(size.as_bytes())
                    .number(u8::from(ecn == Ecn::Marked))
                    .number(0)
                    .end();
                Some(&self.line)
            }
            _ => None,
        }
    }

    /// Returns the lines of the packets that did not arrive. The lines are grouped by flow, and each group is in the
    /// order of sending.
    pub fn finish(self) -> String {
        let mut text = String::new();
        for (flow, UnderWay { packets, paths }) in self.flows {
            let mut left: Vec<_> = packets.into_iter().collect();
            left.sort_by_key(|(key, sent)| (sent.at, key.number));
            for (Key { number, path, .. }, Sent { at, bytes }) in left {
                let path = path.and_then(|path| paths.get(path)).map_or("", String::as_str);
                Row::after(&mut text)
                    .text(&flow)
                    .text(path)
                    .number(number)
                    .number(format_args!("{:.9}", at.as_secs_f64()))
                    .text("")
                    .text("")
                    .number(bytes)
                    .text("")
                    .number(1)
                    .end();
            }
        }
        text
    }
}

impl UnderWay {
    /// Returns the index of a path in this flow. Adds the path if it is new. A linear search is fast enough, because a
    /// flow has few paths.
    fn place_of(&mut self, path: &str) -> usize {
        self.paths.iter().position(|known| known == path).unwrap_or_else(|| {
            self.paths.push(path.to_owned());
            self.paths.len() - 1
        })
    }

    /// Removes an arrived packet and returns the sender's number of the packet. If several packets have the 16-bit
    /// sequence number in `sequence`, the packet sent nearest to the time `sent` is removed.
    fn take(&mut self, sequence: u64, sent: Span) -> Option<u64> {
        let sequence = sequence as u16;
        let first = Key { sequence, number: 0, path: None };
        let candidates = self.packets.range(first..=Key { number: u64::MAX, path: Some(usize::MAX), ..first });
        let distance = |candidate: &Sent| (candidate.at - sent).as_nanos().unsigned_abs();
        let key = *candidates.min_by_key(|(_, candidate)| distance(candidate))?.0;
        self.packets.remove(&key).map(|_| key.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEMO_SHORT, Progress, scenario::Scenario, sim};

    /// If this test fails, a packet has no line or several lines, or a line lacks columns.
    #[test]
    fn the_lines_are_the_packets_of_the_result() {
        let text = DEMO_SHORT.replace("queue = \"1000 packets\"", "queue = \"4 packets\"");
        let scenario = Scenario::parse(&text).expect("a right scenario");
        let (mut lines, mut text) = (PacketLines::default(), String::new());
        let run = sim::simulate(&scenario, 1, &mut |progress| {
            if let Progress::Event { at, origin, flow, event, .. } = progress {
                let name = scenario.flows[flow].name.as_str();
                text.extend(lines.line(at, (name, None), origin, &event));
            }
        });
        let flow = &run.expect("it runs").flows[0];
        text.push_str(&lines.finish());
        let media = || text.lines().filter(|line| line.starts_with("media,"));
        assert!(media().all(|line| line.matches(',').count() == PacketLines::HEADER.matches(',').count()));
        assert_eq!(media().filter(|line| line.ends_with(",0")).count() as u64, flow.packets_received);
        assert_eq!(media().filter(|line| line.ends_with(",1")).count() as u64, flow.packets_lost);
        assert!(flow.packets_lost > 0, "a queue of four packets is too short");
    }
}
