use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use equipoise::units::Size;
use equipoise_path::link::Capacity;

use crate::Time;

/// Measures the offered load of a route in one direction, between two calls of [`load`](Self::load). If the route has
/// several links, the load of the most loaded link counts.
///
/// An endpoint on a real network cannot measure this load. A controller that uses the exact load
/// ([`PathLoad`](equipoise::control::PathLoad)) serves as an ideal for comparison, as in Waki 2013, Sec. 6.1.2.
#[derive(Debug)]
pub struct LoadProbe {
    /// The capacity of each link over time.
    links: Arc<[Capacity]>,
    origin: Time,
    /// For each link, the bytes that have arrived at it since the emulator's start.
    offered: Arc<[AtomicU64]>,
    /// The measured links. For each link: its number, and the value of its counter in `offered` at the last call of
    /// [`load`](Self::load).
    seen: Vec<(usize, u64)>,
    since: Time,
}

impl LoadProbe {
    /// Creates a probe of all `links`. The links' capacities may vary over time; they are given for the time since
    /// `origin`. The first measurement begins at `origin`.
    pub(super) fn new(origin: Time, links: Vec<Capacity>) -> Self {
        let offered = links.iter().map(|_| AtomicU64::new(0)).collect();
        let seen = (0..links.len()).map(|link| (link, 0)).collect();
        Self { links: links.into(), origin, offered, seen, since: origin }
    }

    /// The byte counters, which the relay updates.
    pub(super) fn offered(&self) -> Arc<[AtomicU64]> {
        self.offered.clone()
    }

    /// Returns a probe that measures only the links with the numbers `links`.
    pub(super) fn along(&self, links: &[usize]) -> Self {
        let seen = links.iter().map(|&link| (link, 0)).collect();
        Self { links: self.links.clone(), offered: self.offered.clone(), seen, ..*self }
    }

    /// Returns the number of bytes that arrived at the link since the last call, divided by the number of bytes that
    /// the link could send in this time. The first call counts from the emulator's origin. The result is above 1 in
    /// overload. For several links, the result is the maximum.
    ///
    /// `None` if no time has passed since the last call, if each link is unlimited or had an outage all the time, or if
    /// there are no links.
    pub fn load(&mut self, now: Time) -> Option<f64> {
        let since = self.since;
        self.since = since.max(now);
        let mut largest: Option<f64> = None;
        for (link, seen) in &mut self.seen {
            let (Some(model), Some(offered)) = (self.links.get(*link), self.offered.get(*link)) else {
                continue;
            };
            let offered = offered.load(Ordering::Relaxed);
            let news = Size::from_bytes(offered - std::mem::replace(seen, offered));
            if let Some(load) = model.load(since - self.origin, now - self.origin, news) {
                largest = Some(largest.map_or(load, |other| other.max(load)));
            }
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use equipoise::units::{Rate, Span};

    use super::*;

    /// A probe of two links with 8 and 4 Mbit/s, which is 1000 and 500 bytes per millisecond.
    fn probe() -> LoadProbe {
        let link = |mbps: u64| Capacity::Rate(Rate::from_bps(mbps * 1_000_000).into());
        LoadProbe::new(Time::ZERO, vec![link(8), link(4)])
    }

    fn millis(millis: i64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn the_load_is_of_the_fullest_link_since_the_last_question() {
        let all = probe();
        let mut both = all.along(&[0, 1]);
        all.offered[0].store(5000, Ordering::Relaxed);
        all.offered[1].store(4000, Ordering::Relaxed);
        assert_eq!(both.load(millis(10)), Some(0.8));
        assert_eq!(both.load(millis(10)), None, "no time has passed");
        all.offered[0].store(17_000, Ordering::Relaxed);
        assert_eq!(both.load(millis(20)), Some(1.2));
    }

    #[test]
    fn other_routes_links_do_not_count() {
        let all = probe();
        all.offered[1].store(4000, Ordering::Relaxed);
        assert_eq!(all.along(&[0]).load(millis(10)), Some(0.0));
        assert_eq!(all.along(&[]).load(millis(10)), None);
    }
}
