use super::Mean;
use equipoise_lab::result::Run;
use equipoise_lab::scenario::Scenario;

/// `T_o`: the playing time of every content, in seconds.
pub(super) const UNHINDERED_S: f64 = 30.0;

/// The values that the claims use, computed from one run (Subramanya 2003, Sec. 4.2).
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Time at which the sources start, in seconds.
    start_s: f64,
    /// Number of dropped packets divided by the number of packets sent.
    pub(super) loss_ratio: f64,
    /// Transmission delay (Eq. 7) of the source that completes last; `None` if a source has not completed when the run
    /// ends.
    pub(super) delay: Option<f64>,
    /// Mean transmission delay (Eq. 7) of the sources that completed; 0 if none completed.
    pub(super) mean_delay: f64,
    /// For each sampling time, in seconds since the start of the run, the number of packets dropped so far.
    pub(super) losses: Vec<(f64, f64)>,
    /// For each sampling time, the number of packets in the queue of the bottleneck.
    pub(super) queue: Vec<(f64, f64)>,
    /// For each sampling time, the utilisation of the bottleneck.
    pub(super) utilisation: Vec<(f64, f64)>,
    /// For each sampling time, the congestion window of the first flow, in segments; empty if the flow has no window.
    pub(super) window: Vec<(f64, f64)>,
}

impl Outcome {
    /// Computes the results of a run whose flows started at `start_s`. `link` is the name of the bottleneck whose queue
    /// and utilisation are in the results.
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
            start_s,
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

impl Outcome {
    /// Returns the number of packets dropped between two times, which are in seconds.
    pub(super) fn lost(&self, from_s: f64, to_s: f64) -> f64 {
        let by = |at_s: f64| self.losses.iter().take_while(|(at, _)| *at <= at_s).last().map_or(0.0, |(_, lost)| *lost);
        by(to_s) - by(from_s)
    }

    /// Returns the share of the bottleneck's packets that were dropped between two times, in percent; 0 if there were
    /// no packets. `rate` returns the bottleneck's rate in packets/s at a time in seconds.
    pub(super) fn loss_percent_within(&self, (from_s, to_s): (f64, f64), rate: impl Fn(f64) -> f64) -> f64 {
        let within = |at: f64| at > from_s && at <= to_s;
        let pairs = self.utilisation.windows(2).filter(|pair| within(pair[1].0));
        let served: f64 = pairs.map(|pair| pair[1].1 * rate(pair[0].0) * (pair[1].0 - pair[0].0)).sum();
        let lost = self.lost(from_s, to_s);
        if lost > 0.0 { 100.0 * lost / (lost + served) } else { 0.0 }
    }

    /// Returns by how much the transmission time in case I exceeds its minimum, as a multiple of the content's playing
    /// time.
    ///
    /// At `cut_s`, the rate of the bottleneck is cut to a quarter. From then on, the transmission of the rest of the
    /// content takes at least four times the playing time of the rest.
    pub(super) fn excess_over_quarter(&self, cut_s: f64) -> Option<f64> {
        let before_s = cut_s - self.start_s;
        let least_s = before_s + 4.0 * (UNHINDERED_S - before_s);
        Some(self.delay? - (least_s / UNHINDERED_S - 1.0))
    }
}

/// All runs of one method in one case.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Name of the method, as tables show it.
    pub(super) name: String,
    /// Sum of the rates of all contents that are sent, in Mbit/s.
    pub(super) rate_mbps: f64,
    pub(super) outcomes: Vec<Outcome>,
}

impl Row {
    pub(super) fn new(name: &str, scenario: &Scenario, outcomes: Vec<Outcome>) -> Self {
        let rates = scenario.flows.iter().filter_map(|flow| flow.content());
        let rate_mbps = rates.map(|content| content.rate.as_mbps_f64()).sum();
        Self { name: name.to_owned(), rate_mbps, outcomes }
    }

    pub(super) fn mean(&self, of: impl Fn(&Outcome) -> Option<f64>) -> Mean {
        let values: Option<Vec<f64>> = self.outcomes.iter().map(of).collect();
        Mean::of(&values.unwrap_or_default())
    }

    /// Returns the mean packet loss, in percent.
    pub(super) fn loss_percent(&self) -> Mean {
        self.mean(|outcome| Some(100.0 * outcome.loss_ratio))
    }

    pub(super) fn delay(&self) -> Mean {
        self.mean(|outcome| outcome.delay)
    }

    /// Returns the mean power (Eq. 9), in Mbit/s: the rate of all contents divided by the transmission delay. The
    /// transmission delay (Eq. 7) is a ratio without a unit.
    pub(super) fn power(&self) -> Mean {
        self.mean(|outcome| outcome.delay.filter(|delay| *delay > 0.0).map(|delay| self.rate_mbps / delay))
    }

    pub(super) fn mean_delay(&self) -> Mean {
        self.mean(|outcome| Some(outcome.mean_delay))
    }

    /// Returns the share of the runs in which all sources completed.
    pub(super) fn complete(&self) -> f64 {
        let complete = self.outcomes.iter().filter(|outcome| outcome.delay.is_some()).count();
        complete as f64 / self.outcomes.len().max(1) as f64
    }

    /// The headings of the table columns that [`cells`](Self::cells) fills.
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

/// Returns a row of the paper's table, in the format of our rows.
pub(super) fn printed(name: &str, [loss, delay, power]: [f64; 3]) -> Vec<String> {
    let number = |value: f64, decimals: usize| format!("{value:.decimals$}");
    vec![format!("{name}, paper"), number(loss, 3), number(delay, 4), String::new(), number(power, 4), String::new()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(start_s: f64, delay: Option<f64>) -> Outcome {
        Outcome {
            start_s,
            loss_ratio: 0.0,
            delay,
            mean_delay: 0.0,
            losses: vec![(1.0, 0.0), (2.0, 3.0), (3.0, 5.0)],
            queue: Vec::new(),
            utilisation: vec![(1.0, 1.0), (2.0, 0.5), (3.0, 1.0)],
            window: Vec::new(),
        }
    }

    /// Table 1: the content plays for 30 s. After 15 s, the rate is cut to a quarter. The first half of the content
    /// takes at least 15 s, and the second half takes at least 60 s. So the minimum transmission delay (Eq. 7) is
    /// 75 s / 30 s - 1 = 1.5, and a delay of 1.5033 exceeds this minimum by 0.0033. If the source starts 0.1 s later,
    /// it sends at the full rate for 0.1 s less, and the transmission takes at least 0.3 s longer.
    #[test]
    fn excess_is_counted_from_what_the_cut_alone_costs() {
        let excess = |start_s, delay| outcome(start_s, Some(delay)).excess_over_quarter(15.0).expect("a delay");
        assert!((excess(0.0, 1.5033) - 0.0033).abs() < 1e-9);
        assert!((excess(0.1, 1.51) - 0.0).abs() < 1e-9);
        assert_eq!(outcome(0.0, None).excess_over_quarter(15.0), None);
    }

    /// The link can forward 10 packets per second. From 1 s to 2 s its utilisation is a half, so it forwards 5 packets.
    /// 3 more packets are lost, so the loss is 3 of 8 packets. From 2 s to 3 s the link forwards 10 packets, and 2 more
    /// packets are lost.
    #[test]
    fn the_loss_of_a_stretch_is_that_of_its_packets() {
        let outcome = outcome(0.0, None);
        let lost = [(0.0, 9.0), (2.0, 9.0), (0.0, 1.5)].map(|(from, to)| outcome.lost(from, to).to_string());
        assert_eq!(lost, ["5", "2", "0"]);
        let percent = |from, to| outcome.loss_percent_within((from, to), |_| 10.0);
        assert!((percent(1.0, 2.0) - 37.5).abs() < 1e-9, "3 of 8");
        assert!((percent(1.0, 3.0) - 25.0).abs() < 1e-9, "5 of 20");
    }
}
