use super::{IntervalResult, Report, Run};
use crate::csv::Row;

/// Names of the columns of the CSV file.
const HEADER: &str = "scenario,world,seed,flow,path,start_s,end_s,rate_bps,delay_mean_s,delay_variance_s2,delay_p50_s,delay_p95_s,\
                      delay_p99_s,delay_max_s,packets,packets_lost,stalled\n";

/// Returns the control intervals of all runs as CSV, for flows and for their paths. A field that was not measured is
/// empty.
pub(super) fn intervals(reports: &[Report]) -> String {
    let mut text = HEADER.to_owned();
    for report in reports {
        for run in &report.runs {
            for flow in &run.flows {
                let own = flow.intervals.iter().map(|interval| ("", interval));
                let of_paths = flow.paths.iter().flat_map(|path| {
                    let name = path.name.as_str();
                    path.intervals.iter().map(move |interval| (name, interval))
                });
                for (path, interval) in own.chain(of_paths) {
                    line(&mut text, (&report.scenario, run), (&flow.name, path), interval);
                }
            }
        }
    }
    text
}

fn line(text: &mut String, (scenario, run): (&str, &Run), (flow, path): (&str, &str), interval: &IntervalResult) {
    Row::after(text)
        .text(scenario)
        .text(run.world.name())
        .number(run.seed)
        .text(flow)
        .text(path)
        .number(interval.start_s)
        .number(interval.end_s)
        .number(interval.rate_bps)
        .measured(interval.delay_mean_s)
        .measured(interval.delay_variance_s2)
        .measured(interval.delay_p50_s)
        .measured(interval.delay_p95_s)
        .measured(interval.delay_p99_s)
        .measured(interval.delay_max_s)
        .number(interval.packets)
        .number(interval.packets_lost)
        .number(u8::from(interval.stalled))
        .end();
}
