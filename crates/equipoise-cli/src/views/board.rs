//! The current state of a run, for the terminal, the metrics and the final report.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use super::told::{Figures, Open, Start, Told, Way};
use super::trail::Trail;

/// The state of a run. Its size is bounded for runs of any length and with any number of sessions.
#[derive(Debug, Default)]
pub(crate) struct Board {
    pub(crate) start: Option<Start>,
    /// Series in progress, by number.
    pub(crate) open: BTreeMap<u64, Series>,
    /// The first series that ended, in order of their ends.
    pub(crate) ended: Vec<Series>,
    /// Number of later series that have ended.
    pub(crate) more_ended: u64,
    /// Totals by direction.
    pub(crate) sums: BTreeMap<Way, Total>,
    /// Time of the last event, in seconds since the run's start.
    pub(crate) at_s: f64,
    /// History of the total rate of all series, sent, received and carried, in bit/s.
    pub(crate) all: Trail,
    /// Total rate of all series, recent samples, in bit/s.
    pub(crate) recent: Recent,
}

/// Maximum number of ended series. Our choice: as many as in the results of `receive`.
const KEPT: usize = 1000;
/// Maximum number of series with a history, because charts with more series are unreadable.
pub(crate) const DRAWN: usize = 16;
/// Number of points of the history for the terminal. Our choice: about the number of its columns.
const RECENT: usize = 120;

/// A series: a session, a flow, or one direction of an emulated path.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) open: Open,
    /// Values of its last interval.
    pub(crate) now: Figures,
    pub(crate) total: Total,
    /// The circuit breaker that stopped the series; `None` if it is not stopped.
    pub(crate) stopped_by: Option<&'static str>,
    /// How often each circuit breaker stopped the series.
    pub(crate) breakers: BTreeMap<&'static str, u64>,
    /// The history of the series, if it is among the first [`DRAWN`] series.
    pub(crate) trail: Option<Trail>,
    pub(crate) recent: Recent,
    /// Time, in seconds since the run's start, and reason of the end.
    pub(crate) end: Option<(f64, &'static str)>,
}

/// Totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Total {
    /// Number of series that were opened.
    pub(crate) opened: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    /// Number of packets whose delay is known, and the sum of these delays in seconds.
    pub(crate) delayed: u64,
    pub(crate) delay_sum_s: f64,
}

/// Totals of each direction, for pages.
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

/// The last values of a quantity.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<f64>);

impl Recent {
    fn push(&mut self, value: f64) {
        if self.0.len() == RECENT {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    /// The maximum; 0 without values.
    pub(crate) fn most(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// The last `count` values, the oldest first.
    pub(crate) fn last(&self, count: usize) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().skip(self.0.len().saturating_sub(count)).copied()
    }
}

impl Board {
    /// Applies an event.
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

    /// The total rate of a direction, in bit/s; `None` without series.
    pub(crate) fn rate_bps(&self, way: Way) -> Option<f64> {
        let rates = self.open.values().filter(|series| series.open.direction == way).map(|series| series.now.rate_bps);
        rates.reduce(|sum, rate| sum + rate)
    }

    /// The number of series in a direction.
    pub(crate) fn count(&self, way: Way) -> usize {
        self.open.values().filter(|series| series.open.direction == way).count()
    }

    /// The sums over all series, as a line for pages.
    pub(crate) fn sums_line(&self) -> String {
        let [sent, received, carried] = Way::ALL.map(|way| Sum {
            open: self.count(way),
            rate_bps: self.rate_bps(way).unwrap_or(0.0),
            total: self.sums.get(&way).copied().unwrap_or_default(),
        });
        let sums = Sums { event: "sums", at_s: self.at_s, sent, received, carried };
        serde_json::to_string(&sums).unwrap_or_default()
    }

    /// Samples the sums over all series. Call it about once per second.
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
