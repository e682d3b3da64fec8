//! The order in which links are served, and how far they may be ahead of the sessions' time.

use equipoise::units::Span;

use super::{From, Link, LinkId, Network};
use crate::observer::Time;
use crate::world::TICK;

impl Network {
    /// Orders the links after all routes were added.
    ///
    /// # Errors
    /// A link of a ring without delay, in which no packet order is defined.
    pub(crate) fn arrange(&mut self) -> Result<(), LinkId> {
        (self.order, self.has_ring) = (Vec::new(), false);
        let mut marks = vec![Mark::New; self.links.len()];
        for link in 0..self.links.len() {
            // Packets never arrive at a link without feeders.
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

    /// Depth-first search against the direction of the packets; `trail` has the delays from each visited link to this
    /// one.
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

    /// How far beyond the known time of the sessions all arrivals at sessions are known; `None` without sessions.
    ///
    /// This is the minimum time between sending and arrival of a session's packet, or less: packets that sessions send
    /// directly into a link in the middle of a route may arrive before packets still in flight to it.
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

    /// For networks with rings: computes the time before which all arrivals at each link are known. No packet leaves a
    /// link before the packets that wait there, or may still arrive, have passed the link. The computation uses
    /// shortest paths, because iterating around a ring with a short delay would take one round per nanosecond.
    pub(super) fn all_known(&self, known: &mut Vec<Time>) {
        known.clear();
        known.resize(self.links.len(), Time::MAX);
        self.lower(known, self.known, |feeding, known| match self.next_known_at(feeding) {
            Some(next) => known.min(next - TICK) + self.least_delay(feeding),
            None => known + self.least_delay(feeding),
        });
    }

    /// Lowers the value of each link to the minimum over its feeders, until nothing changes. Sessions have the value
    /// `sessions`, and a feeding link has `over` of its own value. Without rings, one pass in the order of feeders is
    /// enough.
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

    /// The minimum over a link's feeders: `sessions` for sessions, and `of_link` for links. Streams do not count,
    /// because no other packets affect them. But a link that only streams feed must not be advanced to the end of time.
    fn feeders_at<T: Ord + Copy>(&self, link: usize, sessions: T, of_link: impl Fn(usize) -> T) -> T {
        let Link { feeders, is_adrift, .. } = &self.links[link];
        let least = feeders.iter().filter_map(|feeder| match feeder.from {
            From::Sessions => Some(sessions),
            From::Stream(_) => None,
            From::Link(feeding) => Some(of_link(feeding)),
        });
        least.chain(is_adrift.then_some(sessions)).min().unwrap_or(sessions)
    }

    /// For networks without rings: the time up to which a link's feeders, which were already served, have delivered all
    /// their packets.
    pub(super) fn feeders_known(&self, link: usize) -> Time {
        self.feeders_at(link, self.known, |feeding| self.links[feeding].known + self.least_delay(feeding))
    }
}

#[derive(Clone, Copy)]
enum Mark {
    New,
    /// The link's feeders are being visited.
    Open,
    Done,
}
