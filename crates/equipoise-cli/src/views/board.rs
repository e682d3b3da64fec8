//! What is known of a run at a moment: what the terminal and the metrics show, and the report in the end.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use super::told::{Figures, Open, Start, Told, Way};
use super::trail::Trail;

/// What of a run is kept, whatever its length and however many sessions it has.
#[derive(Debug, Default)]
pub(crate) struct Board {
    pub(crate) start: Option<Start>,
    /// What goes on, by number.
    pub(crate) open: BTreeMap<u64, Series>,
    /// What is over, in that order: the first of all.
    pub(crate) ended: Vec<Series>,
    /// How many are over beyond these.
    pub(crate) more_ended: u64,
    /// Of each way, all that there was.
    pub(crate) sums: BTreeMap<Way, Total>,
    /// When the last thing happened, in seconds since the run's start.
    pub(crate) at_s: f64,
    /// The same for all together: sent, received and carried, in bit/s.
    pub(crate) all: Trail,
    /// Rates of the last minute, of all together.
    pub(crate) recent: Recent,
}

/// Series that are kept when they are over. Ours: as many as the results of `receive` have.
const KEPT: usize = 1000;
/// Series of which there is a history: charts of more cannot be read.
pub(crate) const DRAWN: usize = 16;
/// Points of the history for the terminal. Ours: about the columns of one.
const RECENT: usize = 120;

/// One of them.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) open: Open,
    /// Of its last interval.
    pub(crate) now: Figures,
    pub(crate) total: Total,
    /// The breaker that stopped it; `None` while it goes on.
    pub(crate) stopped_by: Option<&'static str>,
    /// How often each breaker stopped it.
    pub(crate) breakers: BTreeMap<&'static str, u64>,
    /// What it did over time, if it is one of the first.
    pub(crate) trail: Option<Trail>,
    pub(crate) recent: Recent,
    /// When and why it ended.
    pub(crate) end: Option<(f64, &'static str)>,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Total {
    /// How many there were.
    pub(crate) opened: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    /// Packets whose delay is known, and the sum of these delays in seconds.
    pub(crate) delayed: u64,
    pub(crate) delay_sum_s: f64,
}

/// All that goes each way, for pages.
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

/// The last values of something.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<f64>);

impl Recent {
    fn push(&mut self, value: f64) {
        if self.0.len() == RECENT {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    /// The greatest of them; 0 of none.
    pub(crate) fn most(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// The last `count` of them, the oldest first.
    pub(crate) fn last(&self, count: usize) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().skip(self.0.len().saturating_sub(count)).copied()
    }
}

impl Board {
    /// Takes what was told.
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

    /// The rate of all that goes a way, in bit/s; `None` if nothing does.
    pub(crate) fn rate_bps(&self, way: Way) -> Option<f64> {
        let rates = self.open.values().filter(|series| series.open.direction == way).map(|series| series.now.rate_bps);
        rates.reduce(|sum, rate| sum + rate)
    }

    /// How many go a way.
    pub(crate) fn count(&self, way: Way) -> usize {
        self.open.values().filter(|series| series.open.direction == way).count()
    }

    /// What all do together, as a line for pages.
    pub(crate) fn sums_line(&self) -> String {
        let [sent, received, carried] = Way::ALL.map(|way| Sum {
            open: self.count(way),
            rate_bps: self.rate_bps(way).unwrap_or(0.0),
            total: self.sums.get(&way).copied().unwrap_or_default(),
        });
        let sums = Sums { event: "sums", at_s: self.at_s, sent, received, carried };
        serde_json::to_string(&sums).unwrap_or_default()
    }

    /// Notes what all do together; to be called about once in a second.
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
