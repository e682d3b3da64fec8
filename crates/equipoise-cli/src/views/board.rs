//! The current state of a run. The terminal view, the metrics and the report are made from this state.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use super::told::{Figures, Open, Start, Told, Way};
use super::trail::Trail;

/// The state of a run. Its size in memory is bounded by the number of open series, however long the run is and however
/// many series have ended.
#[derive(Debug, Default)]
pub(crate) struct Board {
    pub(crate) start: Option<Start>,
    /// Series that have not ended, by their numbers.
    pub(crate) open: BTreeMap<u64, Series>,
    /// The first series that ended, at most [`KEPT`], in the order in which they ended.
    pub(crate) ended: Vec<Series>,
    /// Number of ended series that are not in `ended`, because that list was full.
    pub(crate) more_ended: u64,
    /// Totals over all series of each direction, including series that have ended.
    pub(crate) sums: BTreeMap<Way, Total>,
    /// Time of the last event, in seconds since the run's start.
    pub(crate) at_s: f64,
    /// History of the sum of the rates of all series, in bit/s.
    pub(crate) all: Trail,
    /// The most recent samples of the sum of the rates of all series, in bit/s.
    pub(crate) recent: Recent,
}

/// Maximum number of ended sessions, flows and directions of emulated paths that are kept. Our choice: the same number
/// as in the results of `receive`.
const KEPT: usize = 1000;
/// Maximum number of series for which a history is kept, because a chart of more series is unreadable.
pub(crate) const DRAWN: usize = 16;
/// Maximum number of samples in a chart of the terminal. Our choice: about the number of the terminal's columns.
const RECENT: usize = 120;

/// A series: a session, a flow, or one direction of an emulated path.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) open: Open,
    /// The measured values of the series' last interval.
    pub(crate) now: Figures,
    pub(crate) total: Total,
    /// The circuit breaker that has stopped the media; `None` if the media is not stopped.
    pub(crate) stopped_by: Option<&'static str>,
    /// Number of times that each circuit breaker stopped the media.
    pub(crate) breakers: BTreeMap<&'static str, u64>,
    /// The history of the series. At most [`DRAWN`] series have one.
    pub(crate) trail: Option<Trail>,
    pub(crate) recent: Recent,
    /// The time at which the series ended, in seconds since the run's start, and the reason; `None` if it has not
    /// ended.
    pub(crate) end: Option<(f64, &'static str)>,
}

/// Totals of one series, or of all series with the same [`Way`]. A series is a session, a flow, or one direction of an
/// emulated path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Total {
    /// Number of series (sessions, flows, or directions of emulated paths) that were opened in this direction; 0 in the
    /// totals of a single series.
    pub(crate) opened: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    /// Number of packets in the intervals whose mean delay is known.
    pub(crate) delayed: u64,
    /// Sum of the delays of the packets in `delayed`, in seconds.
    pub(crate) delay_sum_s: f64,
}

/// Totals of each direction, as an event for the live pages.
#[derive(Serialize)]
struct Sums {
    event: &'static str,
    at_s: f64,
    sent: Sum,
    received: Sum,
    carried: Sum,
}

#[derive(Serialize)]
struct Sum {
    open: usize,
    rate_bps: f64,
    #[serde(flatten)]
    total: Total,
}

impl Total {
    fn add(&mut self, figures: &Figures) {
        self.packets += figures.packets;
        self.bytes += figures.bytes;
        self.lost += figures.lost;
        if let Some(mean_s) = figures.delay_mean_s {
            self.delayed += figures.packets;
            self.delay_sum_s += mean_s * figures.packets as f64;
        }
    }
}

/// The most recent values of a quantity.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<f64>);

impl Recent {
    fn push(&mut self, value: f64) {
        if self.0.len() == RECENT {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    /// Returns the largest of the values; 0 if there are no values.
    pub(crate) fn most(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the last `count` values, the oldest value first.
    pub(crate) fn last(&self, count: usize) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().skip(self.0.len().saturating_sub(count)).copied()
    }
}

impl Board {
    /// Updates the state with an event.
    pub(crate) fn take(&mut self, told: &Told) {
        match told {
            Told::Start(start) => self.start = Some(start.clone()),
            Told::Open(open) => {
                self.pass(open.at_s);
                self.sums.entry(open.direction).or_default().opened += 1;
                let drawn = self.open.values().chain(&self.ended).filter(|series| series.trail.is_some()).count();
                self.open.insert(open.series, Series::new(open.clone(), drawn < DRAWN));
            }
            Told::Interval(interval) => {
                self.pass(interval.at_s);
                let Some(series) = self.open.get_mut(&interval.series) else { return };
                let figures = interval.measured.figures();
                series.take(interval.at_s, &figures);
                self.sums.entry(series.open.direction).or_default().add(&figures);
            }
            Told::Breaker { series, at_s, breaker } => {
                self.pass(*at_s);
                let Some(series) = self.open.get_mut(series) else { return };
                series.stopped_by = *breaker;
                if let Some(breaker) = breaker {
                    *series.breakers.entry(breaker).or_default() += 1;
                }
            }
            Told::End { series, at_s, why } => {
                self.pass(*at_s);
                let Some(mut series) = self.open.remove(series) else { return };
                series.end = Some((*at_s, *why));
                series.recent = Recent::default();
                if self.ended.len() < KEPT {
                    self.ended.push(series);
                } else {
                    self.more_ended += 1;
                }
            }
            Told::Over { at_s, .. } => self.pass(*at_s),
        }
    }

    fn pass(&mut self, at_s: f64) {
        self.at_s = self.at_s.max(at_s);
    }

    /// Returns the sum of the rates of all open series with the direction `way`, in bit/s; `None` if there are no such
    /// series. A series is a session, a flow or one direction of an emulated path.
    pub(crate) fn rate_bps(&self, way: Way) -> Option<f64> {
        let rates = self.open.values().filter(|series| series.open.direction == way).map(|series| series.now.rate_bps);
        rates.reduce(|sum, rate| sum + rate)
    }

    /// Returns the number of open series of a direction.
    pub(crate) fn count(&self, way: Way) -> usize {
        self.open.values().filter(|series| series.open.direction == way).count()
    }

    /// Returns the totals of each direction as one line of JSON. The line is an event for the live pages.
    pub(crate) fn sums_line(&self) -> String {
        let [sent, received, carried] = Way::ALL.map(|way| Sum {
            open: self.count(way),
            rate_bps: self.rate_bps(way).unwrap_or(0.0),
            total: self.sums.get(&way).copied().unwrap_or_default(),
        });
        let sums = Sums { event: "sums", at_s: self.at_s, sent, received, carried };
        serde_json::to_string(&sums).unwrap_or_default()
    }

    /// Records the current sum of the rates of all series. It must be called about once per second.
    pub(crate) fn sample(&mut self) {
        let [sent, received, carried] = Way::ALL.map(|way| self.rate_bps(way));
        let rate_bps = [sent, received, carried].into_iter().flatten().sum();
        self.all.push(self.at_s, &Figures { rate_bps, ..Figures::default() });
        self.recent.push(rate_bps);
    }
}

impl Series {
    fn new(open: Open, is_drawn: bool) -> Self {
        Self {
            open,
            now: Figures::default(),
            total: Total::default(),
            stopped_by: None,
            breakers: BTreeMap::new(),
            trail: is_drawn.then(Trail::default),
            recent: Recent::default(),
            end: None,
        }
    }

    fn take(&mut self, at_s: f64, figures: &Figures) {
        self.now = *figures;
        self.total.add(figures);
        self.recent.push(figures.rate_bps);
        if let Some(trail) = &mut self.trail {
            trail.push(at_s, figures);
        }
    }
}
