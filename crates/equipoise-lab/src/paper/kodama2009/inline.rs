use super::series::{dropped, goodput_mbps, jain, mean_of, mean_of_link, samples, tcp};
use super::{Draft, FIG3, Found, INLINE, Lab, Options, parse};
use crate::paper::{Figure, Table};
use crate::result::{Run, TcpSample};
use crate::scenario::Scenario;
use crate::sim::SimError;
use crate::statistics::{Estimate, mean_95};

/// Runs of each setting (ours): the settings are many and are judged together.
const RUNS: u32 = 2;
/// Runs of Fig. 3 with measurement, which differ in the moment at which the second connection joins (ours).
const FIG3_RUNS: u32 = 5;
/// The last part of Fig. 3.
const FIG3_LAST: (f64, f64) = (150.0, 200.0);
/// The connection, in every scenario of this part.
const OWN: usize = 0;
/// Bits of an IP packet of 1500 bytes, and bytes of data in it without the headers of IP and TCP.
const PACKET_BITS: f64 = 12_000.0;
const PAYLOAD: u64 = 1460;
/// A finite transfer in segments (ours), and that many bytes.
const TRANSFER_SEGMENTS: u64 = 5000;
/// A step is found when the result is so near to the new truth, in per cent of the capacity (ours).
const NEAR: f64 = 15.0;

/// A path and a capacity in Mbit/s.
#[derive(Clone, Copy, PartialEq)]
struct Path {
    capacity: u64,
    round_trip_ms: u64,
    duration_s: u64,
}

const PATHS: [Path; 3] = [
    Path { capacity: 10, round_trip_ms: 120, duration_s: 120 },
    Path { capacity: 100, round_trip_ms: 120, duration_s: 60 },
    Path { capacity: 1000, round_trip_ms: 20, duration_s: 8 },
];
const TRAFFIC: [&str; 2] = ["constant", "poisson"];
/// Others' share of the capacity, in per cent.
const LOADS: [u64; 2] = [30, 70];
const ACKS: [&str; 2] = ["on", "off"];

/// What limits the connection.
#[derive(Clone, Copy, PartialEq)]
enum Own {
    /// The receiver, to a part of what is available, in per cent.
    Limited(u64),
    Symbiosis,
}

const OWNS: [Own; 3] = [Own::Limited(50), Own::Limited(100), Own::Symbiosis];

/// One setting of the experiment.
#[derive(Clone, Copy)]
struct Setting {
    path: Path,
    traffic: &'static str,
    load: u64,
    acks: &'static str,
    own: Own,
}

/// What a run of a setting found; parts of the capacity in per cent.
struct Outcome {
    capacity_bias: f64,
    available_bias: f64,
    spread: f64,
    round_trips: f64,
    /// In Mbit/s.
    goodput: f64,
}

/// What the runs of a setting found on the mean.
struct Row {
    setting: Setting,
    capacity_bias: f64,
    available_bias: f64,
    spread: f64,
    round_trips: f64,
    /// Loss of goodput by measuring, in per cent; none where the measurement decides the window.
    cost: Option<f64>,
}

impl Setting {
    fn all() -> impl Iterator<Item = Self> {
        PATHS.into_iter().flat_map(|path| {
            TRAFFIC.into_iter().flat_map(move |traffic| {
                LOADS.into_iter().flat_map(move |load| {
                    OWNS.into_iter()
                        .flat_map(move |own| ACKS.into_iter().map(move |acks| Self { path, traffic, load, acks, own }))
                })
            })
        })
    }

    const fn available(&self) -> u64 {
        self.path.capacity * (100 - self.load) / 100
    }

    /// What the connection's window may be, in segments.
    fn window(&self, part: u64) -> u64 {
        let rate = self.available() as f64 * 1e6 * part as f64 / 100.0;
        (rate * self.path.round_trip_ms as f64 / 1e3 / PACKET_BITS) as u64
    }

    fn scenario(&self, measures: bool, more: &[(&str, &str)]) -> Scenario {
        let Self { path, traffic, load, acks, own } = *self;
        let law = if own == Own::Symbiosis {
            "{ name = \"symbiosis\", noise_aware = \"off\" }"
        } else {
            "{ name = \"reno\" }"
        };
        let limit = match own {
            Own::Limited(part) => format!("receive_window = {}, ", self.window(part).max(1)),
            Own::Symbiosis => String::new(),
        };
        let changes = [
            ("duration = \"60 s\"", format!("duration = \"{} s\"", path.duration_s)),
            ("warm_up = \"6 s\"", format!("warm_up = \"{} s\"", path.duration_s as f64 / 5.0)),
            ("interval = \"60 ms\"", format!("interval = \"{} ms\"", path.round_trip_ms / 2)),
            // The bottleneck before the wire: either's old rate may be the other's new one.
            ("\"100 Mbit/s\"", format!("\"{} Mbit/s\"", path.capacity)),
            ("\"1000 Mbit/s\"", format!("\"{} Mbit/s\"", 10 * path.capacity)),
            ("delay = \"10 ms\"", format!("delay = \"{:.3} ms\"", path.round_trip_ms as f64 / 12.0)),
            ("delay = \"50 ms\"", format!("delay = \"{:.3} ms\"", path.round_trip_ms as f64 * 5.0 / 12.0)),
            ("{ name = \"reno\" }", law.to_owned()),
            ("receive_window = 291, ", limit),
            ("delayed_acks = \"on\"", format!("delayed_acks = \"{acks}\"")),
            ("kind = \"constant\"", format!("kind = \"{traffic}\"")),
            ("\"30 Mbit/s\"", format!("\"{} Mbit/s\"", path.capacity * load / 100)),
        ];
        let measured = if measures { "bandwidth = { kind = \"inline\" }" } else { "" };
        let text = changes.iter().fold(INLINE.to_owned(), |text, (from, to)| text.replacen(from, to, 1));
        let text = text.replacen("bandwidth = { kind = \"inline\" }", measured, 1);
        parse(&more.iter().fold(text, |text, (from, to)| text.replacen(from, to, 1)))
    }

    fn name(&self) -> String {
        let own = match self.own {
            Own::Limited(part) => format!("{part} % of what is available"),
            Own::Symbiosis => "Symbiosis".to_owned(),
        };
        format!("{} Mbit/s, others {} at {} %, {own}", self.path.capacity, self.traffic, self.load)
    }

    /// A result of the measurement, in per cent of the capacity: the capacity's error and the available bandwidth.
    fn result(&self, sample: &TcpSample) -> Option<(f64, f64)> {
        let part = |bps: f64| bps / (self.path.capacity as f64 * 1e6) * 100.0;
        Some((part(sample.capacity_bps?) - 100.0, part(sample.available_bps?)))
    }

    fn outcome(&self, run: &Run) -> Outcome {
        let from = self.path.duration_s as f64 / 5.0;
        let results: Vec<_> = samples(run, OWN)
            .iter()
            .filter(|sample| sample.at_s > from)
            .filter_map(|sample| self.result(sample))
            .collect();
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| results.iter().map(of).sum::<f64>() / results.len() as f64;
        let available = mean(&|result| result.1);
        // A result that repeats the one before to the last bit is the same one.
        let new = results.windows(2).filter(|pair| matches!(pair, [one, two] if one != two)).count();
        let round_trips = (self.path.duration_s as f64 - from) * 1e3 / self.path.round_trip_ms as f64;
        Outcome {
            capacity_bias: mean(&|result| result.0),
            available_bias: available - (100 - self.load) as f64,
            spread: mean(&|result| (result.1 - available).powi(2)).sqrt(),
            round_trips: round_trips / new as f64,
            goodput: goodput_mbps(run, OWN, (from, self.path.duration_s as f64)),
        }
    }
}

pub(super) fn planned(options: &Options) -> u32 {
    let limited = Setting::all().filter(|setting| setting.own != Own::Symbiosis).count() as u32;
    let steps = Setting::all().filter(is_stepped).count() as u32;
    let runs = options.runs(RUNS, 1);
    runs * (Setting::all().count() as u32 + limited + steps) + transfers().count() as u32 + options.runs(FIG3_RUNS, 2)
}

/// The measurement alone, and Fig. 3 with it.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let rows = Setting::all().map(|setting| row(lab, setting)).collect::<Result<Vec<_>, _>>()?;
    errors(lab, &rows, found);
    costs(lab, &rows, found);
    found.claims.push(steps(lab)?);
    found.claims.push(extra_packets(lab)?);
    found.claims.push(fig3(lab)?);
    found.figures.push(Figure {
        name: "Sec. 2.2.1".to_owned(),
        title: "Inline measurement".to_owned(),
        text: "K and A as a connection finds them by its own segments, beside others at a known rate.".to_owned(),
        charts: Vec::new(),
        tables: vec![table(&rows)],
    });
    Ok(())
}

fn row(lab: &Lab<'_>, setting: Setting) -> Result<Row, SimError> {
    let runs = lab.options.runs(RUNS, 1);
    let outcome = |run: &Run| setting.outcome(run);
    let measured = lab.runs(&setting.scenario(true, &[]), runs, outcome)?;
    let mean =
        |outcomes: &[Outcome], of: fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64;
    let cost = if setting.own == Own::Symbiosis {
        None
    } else {
        let plain = lab.runs(&setting.scenario(false, &[]), runs, outcome)?;
        let goodput = |outcomes| mean(outcomes, |outcome| outcome.goodput);
        Some((1.0 - goodput(&measured) / goodput(&plain)) * 100.0)
    };
    let of = |of| mean(&measured, of);
    Ok(Row {
        setting,
        capacity_bias: of(|outcome| outcome.capacity_bias),
        available_bias: of(|outcome| outcome.available_bias),
        spread: of(|outcome| outcome.spread),
        round_trips: of(|outcome| outcome.round_trips),
        cost,
    })
}

fn draft(lab: &Lab<'_>, id: &'static str, statement: &str, paper: Option<f64>, unit: &'static str) -> Draft {
    let runs = lab.options.runs(RUNS, 1);
    Draft { id, figure: "Sec. 2.2.1", statement: statement.to_owned(), paper, unit, runs }
}

/// The mean over what is a number: a window too small for a stream has no result.
fn mean_of_rows(values: impl Iterator<Item = f64>) -> Option<Estimate> {
    mean_95(&values.filter(|value| value.is_finite()).collect::<Vec<_>>())
}

fn errors(lab: &Lab<'_>, rows: &[Row], found: &mut Found) {
    let bias = draft(
        lab,
        "inline.bias",
        "The results are right on the mean. Rule: the bias of A, averaged over the settings without its sign, is below 3 % of \
         the capacity.",
        None,
        "% of the capacity",
    );
    let worst = |of: fn(&Row) -> f64| rows.iter().map(of).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let note = format!(
        "The largest of one setting is {:.1} %; of K, {:.1} %.",
        worst(|row| row.available_bias.abs()),
        worst(|row| row.capacity_bias.abs())
    );
    let ours = mean_of_rows(rows.iter().map(|row| row.available_bias.abs()));
    found.claims.push(bias.decide(ours, |ours| ours.ci95[1] < 3.0, note));
    let interval = draft(
        lab,
        "inline.interval",
        "A result comes every three to four round trips. Rule: below 4.5 on the mean over the settings of 100 and 1000 Mbit/s \
         in which the connection takes what is available.",
        Some(3.5),
        "round trips",
    );
    let large = |row: &&Row| row.setting.path.capacity >= 100 && row.setting.own != Own::Limited(50);
    let ours = mean_of_rows(rows.iter().filter(large).map(|row| row.round_trips));
    found.claims.push(interval.decide(
        ours,
        |ours| ours.ci95[1] < 4.5,
        "Smaller windows wait longer: a stream is a larger part of them, and no more than a hundredth is held on the mean.",
    ));
}

fn costs(lab: &Lab<'_>, rows: &[Row], found: &mut Found) {
    let cost = draft(
        lab,
        "inline.mean_rate",
        "Measuring does not change the connection's mean rate. Rule: a window-limited connection loses less than 2 % on the \
         mean over the settings.",
        Some(0.0),
        "% of the goodput lost",
    );
    let worst = rows.iter().filter_map(|row| row.cost).fold(0.0, f64::max);
    found.claims.push(cost.decide(
        mean_of_rows(rows.iter().filter_map(|row| row.cost)),
        |ours| ours.ci95[1] < 2.0,
        format!("It costs the wait of the segments that are held, and is most in small windows: {worst:.1} %."),
    ));
}

/// Where a step of the others is looked for: in a window that is within the smaller of both available bandwidths.
fn is_stepped(setting: &Setting) -> bool {
    setting.path.capacity >= 100 && setting.own == Own::Limited(100) && setting.load == 70
}

/// The others' rate steps from 70 to 30 % in the middle of the run.
fn steps(lab: &Lab<'_>) -> Result<crate::paper::Claim, SimError> {
    let mut times = Vec::new();
    let mut missed = 0;
    for setting in Setting::all().filter(is_stepped) {
        let (capacity, middle) = (setting.path.capacity, setting.path.duration_s as f64 / 2.0);
        let before = format!("rate = \"{} Mbit/s\" }}", capacity * 70 / 100);
        let step = format!("steps = [{{ at = \"{middle} s\", rate = \"{} Mbit/s\" }}]", capacity * 30 / 100);
        let after = format!("rate = \"{} Mbit/s\", {step} }}", capacity * 70 / 100);
        let scenario = setting.scenario(true, &[(&before, &after)]);
        let found = lab.runs(&scenario, lab.options.runs(RUNS, 1), |run| {
            let near = |sample: &&TcpSample| {
                sample.at_s > middle && setting.result(sample).is_some_and(|result| (result.1 - 70.0).abs() < NEAR)
            };
            let at = samples(run, OWN).iter().find(near)?.at_s;
            Some((at - middle) * 1e3 / setting.path.round_trip_ms as f64)
        })?;
        missed += found.iter().filter(|time| time.is_none()).count();
        times.extend(found.into_iter().flatten());
    }
    let statement = "A step of the others from 70 to 30 % is found in a few measurements. Rule: within 15 % of the capacity \
                     after less than 24 round trips on the mean, six measurements of four each, and in every run.";
    let most = times.iter().copied().fold(0.0, f64::max);
    Ok(draft(lab, "inline.step_rtts", statement, None, "round trips").decide(
        mean_95(&times),
        |ours| ours.ci95[1] < 24.0 && missed == 0,
        format!("The longest took {most:.0} round trips; {missed} runs did not find it."),
    ))
}

/// Paths and acknowledgements of the finite transfers.
fn transfers() -> impl Iterator<Item = Setting> {
    Setting::all()
        .filter(|setting| setting.own == Own::Limited(100) && setting.load == 30 && setting.traffic == "poisson")
}

/// Packets sent beyond data over segment size and what was sent again.
fn extra_packets(lab: &Lab<'_>) -> Result<crate::paper::Claim, SimError> {
    let mut extra = Vec::new();
    let transfer = format!("{{ transfer = \"{} B\", receive_window", TRANSFER_SEGMENTS * PAYLOAD);
    for setting in transfers() {
        let scenario = setting.scenario(true, &[("{ receive_window", &transfer)]);
        extra.extend(lab.runs(&scenario, 1, |run| {
            let (flow, tcp) = (run.flows.get(OWN)?, tcp(run, OWN)?);
            tcp.finished_s?;
            let measured = samples(run, OWN).iter().any(|sample| sample.available_bps.is_some());
            let again = tcp.resent_in_recovery + tcp.resent_after_timeout;
            measured.then(|| flow.packets_sent as f64 - (TRANSFER_SEGMENTS + again) as f64)
        })?);
    }
    let complete = extra.iter().all(Option::is_some);
    let most = extra.iter().flatten().copied().map(f64::abs).fold(0.0, f64::max);
    let statement = "The measurement sends no packet of its own. Rule: a transfer sends as many as its data have segments, in \
                     every setting.";
    Ok(draft(lab, "inline.no_extra_packets", statement, Some(0.0), "packets, the most of any run").decide(
        complete.then_some(Estimate { value: most, ci95: [most, most] }),
        |ours| ours.ci95[1] < 0.5,
        "",
    ))
}

/// Fig. 3, where each connection measures for itself.
fn fig3(lab: &Lab<'_>) -> Result<crate::paper::Claim, SimError> {
    let runs = lab.options.runs(FIG3_RUNS, 2);
    let measuring = FIG3.replace("kind = \"known\", interval = \"420 ms\"", "kind = \"inline\"");
    let mut outcomes = Vec::new();
    for number in 0..runs {
        let start = format!("start = \"{:.3} s\"", 50.0 + 0.12 * f64::from(number) / f64::from(runs));
        let scenario = parse(&measuring.replacen("start = \"50 s\"", &start, 1));
        outcomes.extend(lab.runs(&scenario, 1, |run| {
            let window = |flow| mean_of(run, flow, FIG3_LAST, |sample| Some(sample.window_segments));
            let utilisation = mean_of_link(run, "E0-E1", FIG3_LAST, |sample| sample.utilisation);
            (jain(&[window(0), window(1)]), utilisation, dropped(run))
        })?);
    }
    let lost: u64 = outcomes.iter().map(|outcome| outcome.2).sum();
    let least = outcomes.iter().map(|outcome| outcome.1).fold(1.0, f64::min);
    let draft = Draft {
        id: "fig3.inline_jain",
        figure: "Fig. 3",
        statement: "Both windows become equal where each connection measures for itself. Rule: Jain's index of their means over \
                    the last 50 s is above 0.95, the link used above 95 %, and no packet lost."
            .to_owned(),
        paper: Some(1.0),
        unit: "Jain's index",
        runs,
    };
    Ok(draft.decide(
        mean_95(&outcomes.iter().map(|outcome| outcome.0).collect::<Vec<_>>()),
        |ours| ours.ci95[0] > 0.95 && least > 0.95 && lost == 0,
        format!("The link was used {:.1} % at least; {lost} packets were lost.", 100.0 * least),
    ))
}

/// A row for both kinds of acknowledgements.
fn table(rows: &[Row]) -> Table {
    let cell = |pair: &[Row], of: &dyn Fn(&Row) -> Option<f64>, decimals: usize| {
        let number = |row: &Row| match of(row).filter(|value| value.is_finite()) {
            Some(value) => format!("{value:.decimals$}"),
            None => "–".to_owned(),
        };
        pair.iter().map(number).collect::<Vec<_>>().join(" / ")
    };
    let row = |pair: &[Row]| {
        vec![
            pair.first().map(|row| row.setting.name()).unwrap_or_default(),
            cell(pair, &|row| Some(row.capacity_bias), 1),
            cell(pair, &|row| Some(row.available_bias), 1),
            cell(pair, &|row| Some(row.spread), 1),
            cell(pair, &|row| Some(row.round_trips), 1),
            cell(pair, &|row| row.cost, 2),
        ]
    };
    Table {
        caption: "Delayed acknowledgements / one for every segment; per cent of the capacity".to_owned(),
        columns: [
            "setting",
            "bias of K (%)",
            "bias of A (%)",
            "spread of A (%)",
            "round trips per result",
            "goodput lost (%)",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: rows.chunks(ACKS.len()).map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim;

    #[test]
    fn every_setting_is_a_scenario_and_differs_from_the_others() {
        let texts: std::collections::BTreeSet<_> =
            Setting::all().map(|setting| format!("{:?}", setting.scenario(true, &[]))).collect();
        assert_eq!(texts.len(), Setting::all().count());
    }

    #[test]
    fn two_connections_that_measure_share_a_link_nearly_equally_without_loss() {
        let scenario = parse(&FIG3.replace("kind = \"known\", interval = \"420 ms\"", "kind = \"inline\""));
        let run = sim::simulate(&scenario, 1, &mut |_| {}).unwrap();
        let window = |flow| mean_of(&run, flow, FIG3_LAST, |sample| Some(sample.window_segments));
        assert!(jain(&[window(0), window(1)]) > 0.95, "{} {}", window(0), window(1));
        assert_eq!(dropped(&run), 0);
    }
}
