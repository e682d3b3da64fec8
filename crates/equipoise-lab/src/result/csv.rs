use super::{IntervalResult, Report, World};
use crate::csv::quoted;

/// Names of the columns.
const HEADER: &str = "scenario,world,seed,flow,path,start_s,end_s,rate_bps,delay_mean_s,delay_variance_s2,delay_p50_s,delay_p95_s,\
                      delay_p99_s,delay_max_s,packets,packets_lost,stalled\n";

/// The control intervals of all runs, of the flows and of their paths. What was not measured stays empty.
pub(super) fn intervals(reports: &[Report]) -> String {
    let mut text = HEADER.to_owned();
    for report in reports {
        for run in &report.runs {
            let world = match run.world {
                World::Sim => "sim",
                World::Live => "live",
            };
            for flow in &run.flows {
                let run = format!("{},{world},{},{}", quoted(&report.scenario), run.seed, quoted(&flow.name));
                text.extend(flow.intervals.iter().map(|interval| line(&run, "", interval)));
                for path in &flow.paths {
                    let name = quoted(&path.name);
                    text.extend(path.intervals.iter().map(|interval| line(&run, &name, interval)));
                }
            }
        }
    }
    text
}

fn line(run: &str, path: &str, interval: &IntervalResult) -> String {
    let IntervalResult { start_s, end_s, rate_bps, packets, packets_lost, stalled, .. } = interval;
    let measured = [
        interval.delay_mean_s,
        interval.delay_variance_s2,
        interval.delay_p50_s,
        interval.delay_p95_s,
        interval.delay_p99_s,
        interval.delay_max_s,
    ];
    let measured = measured.map(|value| value.map_or_else(String::new, |value| value.to_string())).join(",");
    let stalled = u8::from(*stalled);
    format!("{run},{path},{start_s},{end_s},{rate_bps},{measured},{packets},{packets_lost},{stalled}\n")
}
