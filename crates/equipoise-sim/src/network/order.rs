//! In which order links are served, and how far ahead of the sessions' time that may go.

use equipoise::units::Span;

use super::{From, LinkId, Network};
use crate::observer::Time;

impl Network {
    /// Puts the links into order once all routes are laid.
    ///
    /// Returns a link of a ring without delay, in which no packet could be said to come first.
    pub(crate) fn arrange(&mut self) -> Result<(), LinkId> {
        (self.order, self.has_ring) = (Vec::new(), false);
        let mut marks = vec![Mark::New; self.links.len()];
        for link in 0..self.links.len() {
            self.visit(link, &mut marks, &mut Vec::new())?;
        }
        self.ahead = self.links_ahead();
        Ok(())
    }

    /// Depth first against the direction of the packets; `trail` are the delays on the way here from each link above.
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

    /// How far behind what is known of the sessions' packets all arrivals at sessions are known; `None` without sessions.
    ///
    /// That is the least time between a session's sending and its peer's receiving, or less: what sessions send straight into a link in
    /// the middle of a route may come before what is still on its way there.
    pub(crate) fn look_ahead(&self) -> Option<Span> {
        let sessions = self.routes.iter().filter(|route| route.thing.is_some());
        let last = sessions.filter_map(|route| route.hops.last()).map(|hop| hop.link);
        last.map(|last| self.ahead[last] + self.least_delay(last)).min()
    }

    fn links_ahead(&self) -> Vec<Span> {
        let mut ahead = vec![Span::MAX; self.links.len()];
        // Delays along the ways to each link: in the order behind the feeders once is enough, but for rings.
        for _ in 0..self.links.len() {
            let mut changed = false;
            for &link in &self.order {
                let found = self.feeders_at(link, Span::ZERO, |feeding| match ahead[feeding] {
                    Span::MAX => Span::MAX,
                    ahead => ahead + self.least_delay(feeding),
                });
                changed |= found != ahead[link];
                ahead[link] = found;
            }
            if !changed {
                break;
            }
        }
        ahead
    }

    /// The least of what holds for a link's feeders: `sessions` for these, and what is said for links. Streams need not be waited for, as
    /// nobody's packets change theirs; but a link that has no other feeder would be taken to the end of time.
    fn feeders_at<T: Ord + Copy>(&self, link: usize, sessions: T, of_link: impl Fn(usize) -> T) -> T {
        let least = self.links[link].feeders.iter().filter_map(|feeder| match feeder.from {
            From::Sessions => Some(sessions),
            From::Stream(_) => None,
            From::Link(feeding) => Some(of_link(feeding)),
        });
        least.min().unwrap_or(sessions)
    }

    /// The moment before which a link's feeders have given it all there is, where nothing of what is known happens anywhere until `idle`.
    pub(super) fn feeders_known(&self, link: usize, idle: Time) -> Time {
        let of_link = |feeding: usize| {
            let undisturbed = idle.min(self.known + self.ahead[feeding]);
            self.links[feeding].known.max(undisturbed) + self.least_delay(feeding)
        };
        self.feeders_at(link, self.known, of_link)
    }
}

#[derive(Clone, Copy)]
enum Mark {
    New,
    /// Its feeders are being visited.
    Open,
    Done,
}
