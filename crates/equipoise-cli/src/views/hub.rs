//! What pages that follow the run are told, each by a bounded queue of its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::board::DRAWN;
use super::told::Told;

/// Lines that wait for a page; one that has more to read is let go. Ours: ten seconds of all that it is told.
const MOST_WAITING: usize = 256;
/// Bytes of what happened that a page gets which comes later. Ours: some minutes of the most that it is told.
const MOST_KEPT: usize = 1 << 20;

/// All that pages are told.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    start: Option<Arc<str>>,
    /// Of what goes on and is told of, how it began.
    open: BTreeMap<u64, Arc<str>>,
    /// The same of what is over, the last of them.
    ended: VecDeque<Arc<str>>,
    /// What happened last, the oldest first, and its size.
    kept: VecDeque<Arc<str>>,
    bytes: usize,
    pages: Vec<SyncSender<Arc<str>>>,
    is_closed: bool,
}

impl Hub {
    /// Tells of what happened. Of more sessions than can be drawn only the first ones are told of; sums tell of the others.
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
                    self.open.insert(open.series, line.clone());
                    self.post(&line);
                }
            }
            Told::Interval(interval) if self.open.contains_key(&interval.series) => self.tell(line()),
            Told::Breaker { series, .. } if self.open.contains_key(series) => self.tell(line()),
            Told::End { series, .. } => {
                if let Some(open) = self.open.remove(series) {
                    self.tell(line());
                    self.ended.push_back(open);
                    if self.ended.len() > DRAWN {
                        self.ended.pop_front();
                    }
                }
            }
            Told::Over { .. } => self.tell(line()),
            Told::Interval(_) | Told::Breaker { .. } => {}
        }
    }

    /// Tells a line, and keeps it for those who come later.
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
        // One that does not read, or has gone, is told nothing more.
        self.pages.retain(|page| page.try_send(line.clone()).is_ok());
    }

    /// What happened so far, and where the rest will come.
    pub(crate) fn follow(&mut self) -> (Vec<Arc<str>>, Receiver<Arc<str>>) {
        let (page, news) = sync_channel(MOST_WAITING);
        if !self.is_closed {
            self.pages.push(page);
        }
        let so_far =
            self.start.iter().chain(&self.ended).chain(self.open.values()).chain(&self.kept).cloned().collect();
        (so_far, news)
    }

    /// There is nothing more to come.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.pages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::samples;

    /// If it fails, a page that nobody looks at any more takes all memory, or stops the others.
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
        let (so_far, _) = hub.follow();
        assert!(so_far[0].contains("\"start\"") && so_far[1].contains("\"open\""));
        assert!(so_far[so_far.len() - 1].contains("\"at_s\":19983"), "{}", so_far[so_far.len() - 1]);
        hub.close();
        assert!(quick.recv().is_err());
    }
}
