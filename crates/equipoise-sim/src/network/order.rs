//! Computes the order in which links are advanced. Also computes, for each link and each session, the time up to which
//! all arrivals are known. The input of this computation is the time up to which all packets from sessions are known.

use equipoise::units::Span;

use super::{From, Link, LinkId, Network};
use crate::observer::Time;
use crate::world::TICK;

impl Network {
    /// Computes the order of the links. Must be called after all routes were added.
    ///
    /// # Errors
    /// A link in a cycle of links without delay. In such a cycle, the order of packets is undefined.
    pub(crate) fn arrange(&mut self) -> Result<(), LinkId> {
        (self.order, self.has_ring) = (Vec::new(), false);
        let mut marks = vec![Mark::New; self.links.len()];
        for link in 0..self.links.len() {
            // A link without feeders is skipped, because no packet ever arrives at it.
            if !self.links[link].feeders.is_empty() {
                self.visit(link, &mut marks, &mut Vec::new())?;
            }
        }
        self.links.iter_mut().for_each(|link| link.is_adrift = false);
        self.ahead = self.links_ahead();
        if self.ahead.contains(&Span::MAX) {
            for (link, ahead) in self.links.iter_mut().zip(&self.ahead) {
                link.is_adrift = *ahead == Span::MAX;
            }
            self.ahead = self.links_ahead();
        }
        Ok(())
    }

    /// Visits links by depth-first search against the direction of the packets. `trail` has the links from the start of
    /// the search to this link, each with its minimum delay.
    fn visit(&mut self, link: usize, marks: &mut [Mark], trail: &mut Vec<(usize, Span)>) -> Result<(), LinkId> {
        match marks[link] {
            Mark::Done => return Ok(()),
            Mark::Open => {
                self.has_ring = true;
                let around = trail.iter().rev().take_while(|(above, _)| *above != link).map(|(_, delay)| *delay);
                let delay = around.chain([self.least_delay(link)]).fold(Span::ZERO, |sum, delay| sum + delay);
                return if delay > Span::ZERO { Ok(()) } else { Err(LinkId(link)) };
            }
            Mark::New => marks[link] = Mark::Open,
        }
        trail.push((link, self.least_delay(link)));
        for feeder in 0..self.links[link].feeders.len() {
            if let From::Link(feeding) = self.links[link].feeders[feeder].from {
                self.visit(feeding, marks, trail)?;
            }
        }
        trail.pop();
        marks[link] = Mark::Done;
        self.order.push(link);
        Ok(())
    }

    fn least_delay(&self, link: usize) -> Span {
        self.links[link].carrier.least_delay()
    }

    /// Returns a span d: if all packets that sessions send before a time t are known, then all arrivals at sessions
    /// before the time t + d are known. `None` if there are no sessions.
    ///
    /// The span d is at most the minimum time from the sending to the arrival of a session's packet. It may be less:
    /// some sessions may send directly into a link in the middle of another session's route. At this link, only the
    /// arrivals before the time t are known.
    pub(crate) fn look_ahead(&self) -> Option<Span> {
        let sessions = self.routes.iter().filter(|route| route.thing.is_some());
        let last = sessions.filter_map(|route| route.hops.last()).map(|hop| hop.link);
        last.map(|last| self.ahead[last] + self.least_delay(last)).min()
    }

    fn links_ahead(&self) -> Vec<Span> {
        let mut ahead = vec![Span::MAX; self.links.len()];
        self.lower(&mut ahead, Span::ZERO, |feeding, ahead| match ahead {
            Span::MAX => Span::MAX,
            ahead => ahead + self.least_delay(feeding),
        });
        ahead
    }

    /// For networks with cycles of links: computes for each link the time before which all arrivals at the link are
    /// known. A packet needs at least a link's minimum delay to reach the next link. Therefore these times are lengths
    /// of shortest paths. They start at the maximum and are lowered, as in the Bellman-Ford algorithm. If they started
    /// at zero and were raised, each pass would raise them only by the delay of a cycle, which may be 1 ns.
    pub(super) fn all_known(&self, known: &mut Vec<Time>) {
        known.clear();
        known.resize(self.links.len(), Time::MAX);
        self.lower(known, self.known, |feeding, known| match self.next_known_at(feeding) {
            Some(next) => known.min(next - TICK) + self.least_delay(feeding),
            None => known + self.least_delay(feeding),
        });
    }

    /// Sets the value of each link to the minimum over its feeders: the sessions and links that send into the link. For
    /// a session, the value `sessions` is used. For a feeding link, `over(index, value)` is used, with the index and
    /// the current value of the feeding link. All links are computed again until no value changes. Without cycles of
    /// links, the first pass computes the final values.
    fn lower<T: Ord + Copy>(&self, values: &mut [T], sessions: T, over: impl Fn(usize, T) -> T) {
        for _ in 0..=self.links.len() {
            let mut changed = false;
            for &link in &self.order {
                let found = self.feeders_at(link, sessions, |feeding| over(feeding, values[feeding]));
                changed |= found != values[link];
                values[link] = found;
            }
            if !changed {
                break;
            }
        }
    }

    /// Returns the minimum of the values of a link's feeders. Sessions have the value `sessions`, and a feeding link
    /// has the value that `of_link` returns. Streams do not count, because their sending times depend on no other
    /// packets. If all feeders are streams, the result is `sessions`. If apart from streams only a cycle of links feeds
    /// the link, the result is at most `sessions`. Otherwise such links would be advanced without limit.
    fn feeders_at<T: Ord + Copy>(&self, link: usize, sessions: T, of_link: impl Fn(usize) -> T) -> T {
        let Link { feeders, is_adrift, .. } = &self.links[link];
        let least = feeders.iter().filter_map(|feeder| match feeder.from {
            From::Sessions => Some(sessions),
            From::Stream(_) => None,
            From::Link(feeding) => Some(of_link(feeding)),
        });
        least.chain(is_adrift.then_some(sessions)).min().unwrap_or(sessions)
    }

    /// For networks without cycles of links: computes the time up to which all arrivals at a link are known. The times
    /// of the links that feed this link must already be computed.
    pub(super) fn feeders_known(&self, link: usize) -> Time {
        self.feeders_at(link, self.known, |feeding| self.links[feeding].known + self.least_delay(feeding))
    }
}

#[derive(Clone, Copy)]
enum Mark {
    New,
    /// The search is visiting the links that feed this link.
    Open,
    Done,
}
