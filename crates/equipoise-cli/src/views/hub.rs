//! Sends the events of a run to the pages in browsers. Each page has a bounded queue.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::board::DRAWN;
use super::told::Told;

/// Capacity of a page's queue, in lines. If the queue is full, the page is disconnected. Our choice: about 15 seconds,
/// if each of 16 series has one event per second.
const MOST_WAITING: usize = 256;
/// Maximum size, in bytes, of the past events that are kept for pages that connect later. Our choice: room for the
/// events of about two minutes, if each of 16 series has one event of 500 bytes per second.
const MOST_KEPT: usize = 1 << 20;

/// The queues of the connected browser pages, and the past events (as JSON lines) that a new page receives first.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    start: Option<Arc<str>>,
    /// For each open series: its `Open` event, and the last event of its circuit breaker, if any. Each event is a line
    /// of JSON.
    open: BTreeMap<u64, (Arc<str>, Option<Arc<str>>)>,
    /// For each of the last [`DRAWN`] series (sessions, flows or path directions) that ended: its `Open` event and its
    /// `End` event, each as a line of JSON.
    ended: VecDeque<[Arc<str>; 2]>,
    /// The last lines that [`tell`](Self::tell) sent to the pages, the oldest first.
    kept: VecDeque<Arc<str>>,
    /// Total size of the lines in `kept`, in bytes.
    bytes: usize,
    pages: Vec<SyncSender<Arc<str>>>,
    is_closed: bool,
}

impl Hub {
    /// Sends an event to all pages. At most [`DRAWN`] open series are sent; the events of further series are ignored.
    pub(crate) fn take(&mut self, told: &Told) {
        let line = || -> Arc<str> { serde_json::to_string(told).unwrap_or_default().into() };
        match told {
            Told::Start(_) => {
                let line = line();
                self.start = Some(line.clone());
                self.post(&line);
            }
            Told::Open(open) => {
                if self.open.len() < DRAWN {
                    let line = line();
                    self.open.insert(open.series, (line.clone(), None));
                    self.post(&line);
                }
            }
            Told::Interval(interval) if self.open.contains_key(&interval.series) => self.tell(line()),
            Told::Breaker { series, .. } => {
                if let Some((_, breaker)) = self.open.get_mut(series) {
                    let line = line();
                    *breaker = Some(line.clone());
                    self.post(&line);
                }
            }
            Told::End { series, .. } => {
                if let Some((open, _)) = self.open.remove(series) {
                    let line = line();
                    self.post(&line);
                    self.ended.push_back([open, line]);
                    if self.ended.len() > DRAWN {
                        self.ended.pop_front();
                    }
                }
            }
            Told::Over { .. } => self.tell(line()),
            Told::Interval(_) => {}
        }
    }

    /// Sends a line to all pages, and keeps it for pages that connect later.
    pub(crate) fn tell(&mut self, line: Arc<str>) {
        self.post(&line);
        self.bytes += line.len();
        self.kept.push_back(line);
        while self.bytes > MOST_KEPT
            && let Some(oldest) = self.kept.pop_front()
        {
            self.bytes -= oldest.len();
        }
    }

    fn post(&mut self, line: &Arc<str>) {
        // A page that does not read, or that has disconnected, is removed from the list.
        self.pages.retain(|page| page.try_send(line.clone()).is_ok());
    }

    /// Returns the past events for a new page, and the channel on which the page receives later events.
    pub(crate) fn follow(&mut self) -> (Vec<Arc<str>>, Receiver<Arc<str>>) {
        let (page, news) = sync_channel(MOST_WAITING);
        if !self.is_closed {
            self.pages.push(page);
        }
        // The `Interval` events are in the kept lines, which come last. The page can plot the intervals of a series
        // even after the series' `End` event.
        let open = self.open.values().flat_map(|(open, breaker)| [Some(open), breaker.as_ref()]).flatten();
        let so_far =
            self.start.iter().chain(self.ended.iter().flatten()).chain(open).chain(&self.kept).cloned().collect();
        (so_far, news)
    }

    /// Disconnects all pages. Each page still receives the events in its queue.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.pages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::samples;

    /// If this test fails, a page that no longer reads uses memory without limit or blocks the other pages, or a page
    /// that connects later lacks the past events.
    #[test]
    fn a_page_that_does_not_read_is_let_go_and_one_that_comes_later_knows_what_goes_on() {
        let mut hub = Hub::default();
        hub.take(&samples::start());
        for series in 0..2 * DRAWN as u64 {
            hub.take(&samples::open(series));
        }
        let (_, slow) = hub.follow();
        let (so_far, quick) = hub.follow();
        assert_eq!(so_far.len(), 1 + DRAWN, "the start, and those that are drawn");
        for second in 0..20_000u32 {
            hub.take(&samples::interval(u64::from(second) % 32, f64::from(second)));
            quick.try_iter().for_each(drop);
        }
        assert_eq!(slow.try_iter().count(), MOST_WAITING);
        assert!(slow.recv().is_err(), "it is let go");
        assert_eq!(hub.pages.len(), 1);
        assert!(hub.bytes <= MOST_KEPT && hub.kept.iter().map(|line| line.len()).sum::<usize>() == hub.bytes);
        for series in 0..2 {
            hub.take(&Told::Breaker { series, at_s: 1.0, breaker: Some("media timeout") });
        }
        hub.take(&Told::End { series: 0, at_s: 2.0, why: "over" });
        for second in 20_000..40_000u32 {
            hub.take(&samples::interval(2, f64::from(second)));
            quick.try_iter().for_each(drop);
        }
        let (so_far, _) = hub.follow();
        let about = |event: &str| so_far.iter().filter(|line| line.contains(&format!("\"event\":\"{event}\""))).count();
        assert_eq!((about("end"), about("breaker")), (1, 1), "however long ago");
        assert!(so_far[0].contains("\"start\"") && so_far[1].contains("\"open\""));
        assert!(so_far[so_far.len() - 1].contains("\"at_s\":39999"), "{}", so_far[so_far.len() - 1]);
        hub.close();
        assert!(quick.recv().is_err());
    }
}
