//! Repeats the three cases of Subramanya 2003 in real time: TQ over real sockets, and the kernel's TCP with the same
//! content.

use std::sync::atomic::AtomicBool;

use super::cases::{Compared, Printed, claims, compared, over_time, table};
use super::outcome::{Outcome, Row};
use super::part::Part;
use super::scenarios::{CASE1, CASE2, CASE3, METHODS};
use super::{Found, Options, parse_with, table1, table4, table6};
use crate::experiment::live::LiveLab;
use crate::{ExperimentError, Figure, Results};
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim;

/// The parts of the paper that can also be run live, in real time.
pub const LIVE: &[Part] = &[Part::Table1, Part::Table4, Part::Table6];

const RUNS: u32 = 3;

const ASSUMPTIONS: &[&str] = &[
    "The hosts are network namespaces of this machine, and the routers are the emulator of `equipoise live`; the paper has a \
     simulation only. What the machine does besides shows.",
    "Scenarios, content and TQ's parameters are those of the simulated runs; see there. A run ends some time behind the last \
     transmission.",
    "TQ's egress buffer (the queue in front of Link0; in case III that of a path's last link) is the receiver's, which serves it at that \
     link's rate; the emulator has the links before it. In the simulation it is the same.",
    "NewReno is the kernel's reno, which has selective acknowledgements, delayed acknowledgements and its own timers; the \
     application writes the content to a socket as it comes to be; its receivers offer 20 segments. The simulated NewReno is as ns-2 had it.",
    "Packet loss ratio: what the emulator's links and the egress buffer dropped, over packets sent; of the kernel's, segments.",
];

const TABLE1: Compared =
    compared(["table1.live_plr", "table1.live_td", "table1.live_power"], "Table 1, live", &table1::PAPER);
const TABLE4: Compared =
    compared(["table4.live_plr", "table4.live_td", "table4.live_power"], "Table 4, live", &table4::PAPER);

const TABLE6: Compared =
    compared(["table6.live_plr", "table6.live_td", "table6.live_power"], "Table 6, live", &table6::PAPER);

/// A case of the paper, with its parameters and claims.
struct Case {
    texts: [&'static str; 2],
    /// Length of a run, live or simulated. It replaces the longer duration in the scenario file.
    duration: &'static str,
    printed: Printed,
    compared: Compared,
    figure: &'static str,
    title: &'static str,
    /// Name of the bottleneck link whose queue and utilisation the charts show.
    link: &'static str,
    least_delay: f64,
    marks: &'static [(f64, &'static str)],
}

impl Case {
    /// Returns the case of a part of the paper; `None` if the part can only be simulated.
    fn of(part: Part) -> Option<Self> {
        match part {
            Part::Table1 => Some(Self {
                texts: CASE1,
                duration: "85 s",
                printed: table1::PAPER,
                compared: TABLE1,
                figure: "Table 1, live",
                title: "Case I: one source, the bottleneck cut to a quarter at 15 s",
                link: "Link0",
                least_delay: table1::LEAST_DELAY,
                marks: &[(10.0, "buffer"), (5.0, "x_d")],
            }),
            Part::Table4 => Some(Self {
                texts: CASE2,
                duration: "60 s",
                printed: table4::PAPER,
                compared: TABLE4,
                figure: "Table 4, live",
                title: "Case II: six sources over one bottleneck",
                link: "Link0",
                least_delay: table4::LEAST_DELAY,
                marks: &[(60.0, "buffer"), (30.0, "sum of all x_d")],
            }),
            Part::Table6 => Some(Self {
                texts: CASE3,
                duration: "90 s",
                printed: table6::PAPER,
                compared: TABLE6,
                figure: "Table 6, live",
                title: "Case III: four bottlenecks in a row",
                link: "Link3",
                least_delay: table6::LEAST_DELAY,
                marks: &[(50.0, "buffer")],
            }),
            Part::Fig6 => None,
        }
    }

    fn scenario(&self, method: usize) -> Scenario {
        parse_with(self.texts[method], &[Override::set("duration", self.duration)])
    }
}

/// Runs the requested cases between network namespaces, in real time. One run of both methods takes 3 minutes in cases
/// I and III, and 2 minutes in case II. Calls `progress` with the share of the runs that are done. If `stop` is set,
/// returns the results so far.
///
/// # Errors
/// [`ExperimentError`] if the system refuses to create namespaces, sockets or threads.
pub fn run(
    parts: &[Part],
    options: &Options,
    stop: &AtomicBool,
    progress: &dyn Fn(f64),
) -> Result<Results, ExperimentError> {
    let runs = options.runs(RUNS, 1);
    let mut parts = parts.to_vec();
    parts.sort_unstable();
    parts.dedup();
    let cases: Vec<_> = parts.into_iter().filter_map(Case::of).collect();
    let lab = LiveLab::new(options, cases.len() as u32 * 2 * runs, stop, progress);
    let mut found = Found::default();
    for case in &cases {
        one_case(&lab, case, runs, &mut found)?;
    }
    Ok(found.live_results("Subramanya 2003", options, ASSUMPTIONS))
}

/// Runs a case. Live runs alternate between the two methods, so that other load on the machine affects the methods
/// equally.
fn one_case(lab: &LiveLab<'_>, case: &Case, runs: u32, found: &mut Found) -> Result<(), ExperimentError> {
    let scenarios = [case.scenario(0), case.scenario(1)];
    let (mut live, mut simulated) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for number in 0..runs {
        for (method, scenario) in scenarios.iter().enumerate() {
            live[method].extend(lab.run(scenario, number)?.map(|run| Outcome::of(&run, 0.0, case.link)));
        }
    }
    for number in 0..runs {
        let seed = lab.options.seed.wrapping_add(number.into());
        for (method, scenario) in scenarios.iter().enumerate() {
            simulated[method].push(Outcome::of(&sim::simulate(scenario, seed, &mut |_| {})?, 0.0, case.link));
        }
    }
    let row = |method: usize, world: &str, outcomes: Vec<Outcome>| {
        Row::new(&format!("{}, {world}", METHODS[method]), &scenarios[method], outcomes)
    };
    let [tq, newreno] = live;
    let live = [row(0, "live", tq), row(1, "live", newreno)];
    let [tq, newreno] = simulated;
    let simulated = [row(0, "simulated", tq), row(1, "simulated", newreno)];
    found.claims.extend(claims(&case.compared, [&live[0], &live[1]], runs));
    let all = [&live[0], &live[1], &simulated[0], &simulated[1]];
    let (waiting, utilisation) =
        (format!("Packets waiting in front of {}", case.link), format!("Utilisation of {}", case.link));
    let marks = case.marks.iter().map(|&(at, name)| (at, name.to_owned())).collect();
    found.figures.push(Figure {
        name: case.figure.to_owned(),
        title: case.title.to_owned(),
        text: format!(
            "Live, and simulated beside it; the first run of each. The cuts alone cost a transmission delay of {:.3}.",
            case.least_delay
        ),
        charts: vec![
            over_time(("Cumulative packet loss", "packets"), &all, |outcome| &outcome.losses, Vec::new()),
            over_time((&waiting, "packets"), &all, |outcome| &outcome.queue, marks),
            over_time((&utilisation, "share"), &all, |outcome| &outcome.utilisation, Vec::new()),
        ],
        tables: vec![table(&case.printed, &live, &simulated)],
    });
    Ok(())
}
