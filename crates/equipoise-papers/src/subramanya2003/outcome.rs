use super::Mean;
use equipoise_lab::result::Run;
use equipoise_lab::scenario::Scenario;

/// `T_o`: the length of every content.
pub(super) const UNHINDERED_S: f64 = 30.0;

/// What counts of a run (Subramanya 2003, Sec. 4.2).
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Packets dropped over packets sent.
    pub(super) loss_ratio: f64,
    /// Eq. 7 of the source that is complete last; `None` where one is not by the end of the run.
    pub(super) delay: Option<f64>,
    /// Mean of Eq. 7 over the sources that were complete.
    pub(super) mean_delay: f64,
    /// When packets were dropped: seconds since the start, and how many so far.
    pub(super) losses: Vec<(f64, f64)>,
    /// Waiting packets of the first bottleneck.
    pub(super) queue: Vec<(f64, f64)>,
    /// Its utilisation.
    pub(super) utilisation: Vec<(f64, f64)>,
    /// Congestion window of the first flow, where it has one.
    pub(super) window: Vec<(f64, f64)>,
}

impl Outcome {
    /// Of a run whose flows began at `start_s`, and whose bottleneck is `link`.
    pub(super) fn of(run: &Run, start_s: f64, link: &str) -> Self {
        let sent: u64 = run.flows.iter().map(|flow| flow.packets_sent).sum();
        let dropped: u64 = run.links.iter().map(|link| link.packets_dropped).sum();
        let finished = run.flows.iter().map(|flow| match (&flow.tcp, &flow.playout) {
            (Some(tcp), _) => tcp.finished_s,
            (None, egress) => egress.as_ref()?.finished_s,
        });
        let delays: Vec<Option<f64>> =
            finished.map(|finished| Some((finished? - start_s - UNHINDERED_S) / UNHINDERED_S)).collect();
        let complete: Vec<f64> = delays.iter().flatten().copied().collect();
        let all: Option<Vec<f64>> = delays.into_iter().collect();
        let bottleneck = run.links.iter().find(|found| found.name == link);
        let samples = bottleneck.map(|link| link.samples.as_slice()).unwrap_or_default();
        let samples_of_all = run.links.iter().map(|link| link.samples.len()).min().unwrap_or(0);
        let losses = (0..samples_of_all).filter_map(|index| {
            let at = run.links.iter().find_map(|link| link.samples.get(index)).map(|sample| sample.at_s)?;
            let dropped = run.links.iter().filter_map(|link| link.samples.get(index));
            Some((at, dropped.map(|sample| sample.packets_dropped).sum::<u64>() as f64))
        });
        let window = run.flows.first().and_then(|flow| flow.tcp.as_ref());
        let window = window.map(|tcp| tcp.samples.iter().map(|sample| (sample.at_s, sample.window_segments)).collect());
        Self {
            loss_ratio: dropped as f64 / sent.max(1) as f64,
            delay: all.and_then(|all| all.into_iter().reduce(f64::max)),
            mean_delay: complete.iter().sum::<f64>() / complete.len().max(1) as f64,
            losses: losses.collect(),
            queue: samples.iter().filter_map(|sample| Some((sample.at_s, sample.queue_packets?))).collect(),
            utilisation: samples.iter().filter_map(|sample| Some((sample.at_s, sample.utilisation?))).collect(),
            window: window.unwrap_or_default(),
        }
    }
}

/// All runs of one method in one case.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// What it is, for tables.
    pub(super) name: String,
    /// The content's rate, in Mbit/s.
    pub(super) rate_mbps: f64,
    pub(super) outcomes: Vec<Outcome>,
}

impl Row {
    pub(super) fn new(name: &str, scenario: &Scenario, outcomes: Vec<Outcome>) -> Self {
        let rates = scenario.flows.iter().filter_map(|flow| flow.content());
        let rate_mbps = rates.map(|content| content.rate.as_mbps_f64()).sum();
        Self { name: name.to_owned(), rate_mbps, outcomes }
    }

    fn mean(&self, of: impl Fn(&Outcome) -> Option<f64>) -> Mean {
        let values: Option<Vec<f64>> = self.outcomes.iter().map(of).collect();
        Mean::of(&values.unwrap_or_default())
    }

    /// In per cent.
    pub(super) fn loss_percent(&self) -> Mean {
        self.mean(|outcome| Some(100.0 * outcome.loss_ratio))
    }

    pub(super) fn delay(&self) -> Mean {
        self.mean(|outcome| outcome.delay)
    }

    /// Eq. 9, in Mbit/s.
    pub(super) fn power(&self) -> Mean {
        self.mean(|outcome| outcome.delay.filter(|delay| *delay > 0.0).map(|delay| self.rate_mbps / delay))
    }

    pub(super) fn mean_delay(&self) -> Mean {
        self.mean(|outcome| Some(outcome.mean_delay))
    }

    /// Share of the runs in which all sources were complete.
    pub(super) fn complete(&self) -> f64 {
        let complete = self.outcomes.iter().filter(|outcome| outcome.delay.is_some()).count();
        complete as f64 / self.outcomes.len().max(1) as f64
    }

    /// Heads of [`cells`](Self::cells).
    pub(super) const COLUMNS: [&str; 6] = [
        "",
        "packet loss ratio (%)",
        "transmission delay, last source",
        "mean of the sources",
        "power (Mbit/s)",
        "complete runs",
    ];

    pub(super) fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.loss_percent().words(3),
            self.delay().words(4),
            self.mean_delay().words(4),
            self.power().words(4),
            format!("{:.2}", self.complete()),
        ]
    }
}

/// A printed row of the paper's tables, as one of ours.
pub(super) fn printed(name: &str, [loss, delay, power]: [f64; 3]) -> Vec<String> {
    let number = |value: f64, decimals: usize| format!("{value:.decimals$}");
    vec![format!("{name}, paper"), number(loss, 3), number(delay, 4), String::new(), number(power, 4), String::new()]
}
