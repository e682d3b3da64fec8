//! Every packet of a run as a line of CSV, with when it was sent, when it came, and whether it was lost.

use std::collections::BTreeMap;

use equipoise::units::{Instant, SenderClock, Span};
use equipoise_session::{Ecn, Event};

use crate::csv::quoted;

/// Puts together what both ends of the flows say of their packets. What is lost, or was never seen to arrive, is kept to the end.
#[derive(Debug, Default)]
pub struct PacketLines {
    /// By flow and 16-bit sequence number: sender and receiver extend that number to 64 bits from different starting points.
    under_way: BTreeMap<(String, u16), Vec<Sent>>,
}

/// A packet that was sent.
#[derive(Debug)]
struct Sent {
    number: u64,
    at: Span,
    path: String,
    bytes: u64,
}

impl PacketLines {
    /// Names of the columns. What a packet does not have stays empty.
    pub const HEADER: &str = "flow,path,number,sent_s,received_s,delay_s,size_bytes,marked,lost\n";

    /// The line of a packet that has come; `None` for every other event. Times count from the run's start, which was at `origin`.
    pub fn line(
        &mut self,
        at: Span,
        (flow, path): (&str, Option<&str>),
        origin: Instant<SenderClock>,
        event: &Event,
    ) -> Option<String> {
        let path = path.map(quoted).unwrap_or_default();
        match *event {
            Event::MediaSent { sequence, size, .. } => {
                let sent = Sent { number: sequence, at, path, bytes: size.as_bytes() };
                self.under_way.entry((flow.to_owned(), sequence as u16)).or_default().push(sent);
                None
            }
            Event::MediaReceived { sequence, sent, delay, size, ecn } => {
                let number = self.take(flow, sequence, sent - origin).unwrap_or(sequence);
                let (sent_s, received_s) = ((sent - origin).as_secs_f64(), at.as_secs_f64());
                let (delay_s, bytes) = (delay.as_secs_f64(), size.as_bytes());
                let marked = u8::from(ecn == Ecn::Marked);
                let flow = quoted(flow);
                Some(format!("{flow},{path},{number},{sent_s:.9},{received_s:.9},{delay_s:.9},{bytes},{marked},0\n"))
            }
            _ => None,
        }
    }

    /// The lines of what did not come, flow by flow in the order in which it was sent.
    pub fn finish(self) -> String {
        let all = self
            .under_way
            .into_iter()
            .flat_map(|((flow, _), sent)| sent.into_iter().map(move |sent| (flow.clone(), sent)));
        let mut all: Vec<_> = all.collect();
        all.sort_by(|(flow, sent), (other, later)| (flow, sent.at, sent.number).cmp(&(other, later.at, later.number)));
        let line = |(flow, Sent { number, at, path, bytes }): (String, Sent)| {
            format!("{},{path},{number},{:.9},,,{bytes},,1\n", quoted(&flow), at.as_secs_f64())
        };
        all.into_iter().map(line).collect()
    }

    /// A packet has come that was sent at this time: takes it out, and returns the sender's number of it.
    fn take(&mut self, flow: &str, sequence: u64, sent: Span) -> Option<u64> {
        let key = (flow.to_owned(), sequence as u16);
        let found = self.under_way.get_mut(&key)?;
        let distance = |candidate: &Sent| (candidate.at - sent).as_nanos().unsigned_abs();
        let (place, _) = found.iter().enumerate().min_by_key(|(_, candidate)| distance(candidate))?;
        let taken = found.swap_remove(place);
        if found.is_empty() {
            self.under_way.remove(&key);
        }
        Some(taken.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEMO_SHORT, Progress, scenario::Scenario, sim};

    /// As many lines as the result has packets, and the mean of their delays.
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
