//! The tables of a report. The first columns of a table, such as `seed` and `flow`, identify the row. The other columns
//! are named after keys in the report's JSON; the keys of a nested object get a prefix, such as `delay_`.

use equipoise_lab::result::{
    DelayResult, FlowResult, FramesResult, IntervalResult, LinkResult, PathResult, PhaseResult, QueueingResult, Report,
    Run, TcpResult,
};
use pyo3::prelude::*;

use crate::table::{Columns, Table};

/// A row of a table: the item `it` of a run, the run's seed, the name of the item's flow or link, and the name of the
/// item's path, if any.
struct Of<'a, T> {
    seed: u64,
    flow: &'a str,
    path: Option<&'a str>,
    it: &'a T,
}

impl<T> Columns<Of<'_, T>> {
    fn optional(self, name: &str, of: impl Fn(&T) -> Option<f64>) -> Self {
        self.number(name, |row| of(row.it))
    }

    fn measured(self, name: &str, of: impl Fn(&T) -> f64) -> Self {
        self.number(name, |row| Some(of(row.it)))
    }

    fn counted(self, name: &str, of: impl Fn(&T) -> u64) -> Self {
        self.count(name, |row| Some(of(row.it)))
    }

    fn counts(self, name: &str, of: impl Fn(&T) -> Option<u64>) -> Self {
        self.count(name, |row| of(row.it))
    }

    fn delay(self, name: &str, of: impl Fn(&T) -> Option<DelayResult>) -> Self {
        let of = &of;
        let column = |key: &str| format!("{name}_{key}");
        self.optional(&column("mean_s"), |it| of(it)?.mean_s)
            .optional(&column("variance_s2"), |it| of(it)?.variance_s2)
            .optional(&column("p50_s"), |it| of(it)?.p50_s)
            .optional(&column("p95_s"), |it| of(it)?.p95_s)
            .optional(&column("p99_s"), |it| of(it)?.p99_s)
            .optional(&column("max_s"), |it| of(it)?.max_s)
    }

    fn queueing(self, name: &str, of: impl Fn(&T) -> Option<QueueingResult>) -> Self {
        let of = &of;
        self.optional(&format!("{name}_mean_s"), |it| of(it)?.mean_s)
            .optional(&format!("{name}_p95_s"), |it| of(it)?.p95_s)
            .optional(&format!("{name}_p99_s"), |it| of(it)?.p99_s)
    }
}

impl<'a, T> Columns<Of<'a, T>> {
    /// Starts a table with the columns `seed` and `flow`.
    fn of_flows(rows: impl Iterator<Item = Of<'a, T>>) -> Self {
        Self::of(rows).count("seed", |row| Some(row.seed)).text("flow", |row| Some(row.flow))
    }

    fn of_links(rows: impl Iterator<Item = Of<'a, T>>) -> Self {
        Self::of(rows).count("seed", |row| Some(row.seed)).text("link", |row| Some(row.flow))
    }
}

/// Returns a row for each item that `of` selects from each flow of each run.
fn each_flow<'a, T: 'a>(
    report: &'a Report,
    of: impl Fn(&'a FlowResult) -> &'a [T] + Copy + 'a,
) -> impl Iterator<Item = Of<'a, T>> {
    let flows = report.runs.iter().flat_map(|run| run.flows.iter().map(|flow| (run.seed, flow)));
    flows.flat_map(move |(seed, flow)| of(flow).iter().map(move |it| Of { seed, flow: &flow.name, path: None, it }))
}

fn each_run<'a, T: 'a>(
    report: &'a Report,
    of: impl Fn(&'a Run) -> &'a [T] + Copy + 'a,
    name: impl Fn(&'a T) -> &'a str + Copy + 'a,
) -> impl Iterator<Item = Of<'a, T>> {
    let all = report.runs.iter().flat_map(move |run| of(run).iter().map(move |it| (run.seed, it)));
    all.map(move |(seed, it)| Of { seed, flow: name(it), path: None, it })
}

pub(crate) fn flows(report: &Report) -> PyResult<Table> {
    let rows = each_run(report, |run| &run.flows, |flow: &FlowResult| &flow.name);
    let columns = Columns::of_flows(rows)
        .text("controller", |row| row.it.controller.as_deref())
        .text("split", |row| row.it.split.as_deref())
        .counted("packets_sent", |flow| flow.packets_sent)
        .counted("packets_received", |flow| flow.packets_received)
        .counted("packets_lost", |flow| flow.packets_lost)
        .counts("packets_marked", |flow| flow.packets_marked)
        .optional("mean_rate_bps", |flow| flow.mean_rate_bps)
        .optional("delivered_rate_bps", |flow| flow.delivered_rate_bps)
        .delay("delay", |flow| Some(flow.delay))
        .optional("target_s", |flow| flow.target_s)
        .optional("mse_s2", |flow| flow.mse_s2)
        .optional("cv", |flow| flow.cv)
        .optional("jitter_s", |flow| flow.jitter_s)
        .optional("settled_delay_s", |flow| flow.settled_delay_s)
        .optional("excursions_total_s", |flow| Some(flow.excursions?.total_s))
        .optional("excursions_longest_s", |flow| Some(flow.excursions?.longest_s))
        .optional("limited_share", |flow| flow.limited_share)
        .counted("pacing_resets", |flow| flow.pacing_resets)
        .counted("reports_missing", |flow| flow.reports_missing)
        .counted("circuit_strained", |flow| flow.circuit_strained)
        .optional("response", |flow| flow.response)
        .queueing("queueing", |flow| flow.queueing);
    let columns = frames(frames(columns, "video", |flow| flow.video), "audio", |flow| flow.audio);
    let columns = columns
        .counts("egress_packets_buffered", |flow| Some(flow.playout?.packets_buffered))
        .counts("egress_packets_discarded", |flow| Some(flow.playout?.packets_discarded))
        .optional("egress_finished_s", |flow| flow.playout?.finished_s);
    tcp(columns).table()
}

type Flows<'a> = Columns<Of<'a, FlowResult>>;

fn frames<'a>(flows: Flows<'a>, name: &str, of: fn(&FlowResult) -> Option<FramesResult>) -> Flows<'a> {
    let column = |key: &str| format!("{name}_{key}");
    flows
        .counts(&column("captured"), |flow| Some(of(flow)?.captured))
        .counts(&column("skipped"), |flow| Some(of(flow)?.skipped))
        .counts(&column("lost"), |flow| Some(of(flow)?.lost))
        .counts(&column("late"), |flow| Some(of(flow)?.late))
        .optional(&column("deadline_s"), |flow| Some(of(flow)?.deadline_s))
        .delay(&column("delay"), |flow| Some(of(flow)?.delay))
        .delay(&column("sender_wait"), |flow| Some(of(flow)?.sender_wait))
        .counts(&column("freezes"), |flow| Some(of(flow)?.freezes))
        .optional(&column("frozen_s"), |flow| Some(of(flow)?.frozen_s))
        .optional(&column("longest_freeze_s"), |flow| Some(of(flow)?.longest_freeze_s))
}

fn tcp(flows: Flows<'_>) -> Flows<'_> {
    fn of(flow: &FlowResult) -> Option<&TcpResult> {
        flow.tcp.as_ref()
    }
    flows
        .optional("tcp_goodput_bps", |flow| of(flow)?.goodput_bps)
        .counts("tcp_delivered_bytes", |flow| Some(of(flow)?.delivered_bytes))
        .counts("tcp_retransmissions", |flow| Some(of(flow)?.retransmissions))
        .counts("tcp_resent_in_recovery", |flow| of(flow)?.resent_in_recovery)
        .counts("tcp_resent_after_timeout", |flow| of(flow)?.resent_after_timeout)
        .counts("tcp_recoveries", |flow| of(flow)?.recoveries)
        .counts("tcp_timeouts", |flow| of(flow)?.timeouts)
        .optional("tcp_min_round_trip_s", |flow| of(flow)?.min_round_trip_s)
        .optional("tcp_finished_s", |flow| of(flow)?.finished_s)
        .counts("tcp_web_fetches_begun", |flow| Some(of(flow)?.web?.fetches_begun))
        .counts("tcp_web_fetches", |flow| Some(of(flow)?.web?.fetches))
        .delay("tcp_web_time", |flow| Some(of(flow)?.web?.time))
        .optional("tcp_web_on_share", |flow| of(flow)?.web?.on_share)
}

pub(crate) fn links(report: &Report) -> PyResult<Table> {
    Columns::of_links(each_run(report, |run| &run.links, |link: &LinkResult| &link.name))
        .optional("utilisation", |link| link.utilisation)
        .counted("packets_dropped", |link| link.packets_dropped)
        .counted("packets_forwarded", |link| link.packets_forwarded)
        .counted("packets_lost", |link| link.packets_lost)
        .counted("packets_marked", |link| link.packets_marked)
        .counted("packets_duplicated", |link| link.packets_duplicated)
        .counted("packets_reordered", |link| link.packets_reordered)
        .optional("mean_queue_packets", |link| link.mean_queue_packets)
        .counted("max_queue_packets", |link| link.max_queue_packets)
        .table()
}

/// The control intervals of all flows and, for flows with several paths, the report intervals of each path.
pub(crate) fn intervals(report: &Report) -> PyResult<Table> {
    let whole = each_flow(report, |flow| &flow.intervals);
    let by_path = each_flow(report, |flow| &flow.paths).flat_map(|Of { seed, flow, it, .. }: Of<'_, PathResult>| {
        it.intervals.iter().map(move |interval| Of { seed, flow, path: Some(&it.name), it: interval })
    });
    Columns::of_flows(whole.chain(by_path))
        .text("path", |row| row.path)
        .measured("start_s", |it: &IntervalResult| it.start_s)
        .measured("end_s", |it| it.end_s)
        .measured("rate_bps", |it| it.rate_bps)
        .optional("delay_mean_s", |it| it.delay_mean_s)
        .optional("delay_variance_s2", |it| it.delay_variance_s2)
        .optional("delay_p50_s", |it| it.delay_p50_s)
        .optional("delay_p95_s", |it| it.delay_p95_s)
        .optional("delay_p99_s", |it| it.delay_p99_s)
        .optional("delay_max_s", |it| it.delay_max_s)
        .counted("packets", |it| it.packets)
        .counted("packets_lost", |it| it.packets_lost)
        .flag("stalled", |row| Some(row.it.stalled))
        .table()
}

pub(crate) fn paths(report: &Report) -> PyResult<Table> {
    Columns::of_flows(each_flow(report, |flow| &flow.paths))
        .text("path", |row| Some(row.it.name.as_str()))
        .counted("packets_sent", |path| path.packets_sent)
        .counted("packets_received", |path| path.packets_received)
        .counted("packets_lost", |path| path.packets_lost)
        .optional("mean_rate_bps", |path| path.mean_rate_bps)
        .delay("delay", |path| Some(path.delay))
        .counted("reports_missing", |path| path.reports_missing)
        .optional("response", |path| path.response)
        .table()
}

pub(crate) fn link_samples(report: &Report) -> PyResult<Table> {
    let links = each_run(report, |run| &run.links, |link: &LinkResult| &link.name);
    let samples =
        links.flat_map(|Of { seed, flow, it, .. }| it.samples.iter().map(move |it| Of { seed, flow, path: None, it }));
    Columns::of_links(samples)
        .measured("at_s", |it| it.at_s)
        .optional("queue_packets", |it| it.queue_packets)
        .optional("utilisation", |it| it.utilisation)
        .counted("packets_dropped", |it| it.packets_dropped)
        .table()
}

pub(crate) fn tcp_samples(report: &Report) -> PyResult<Table> {
    let samples = each_flow(report, |flow| flow.tcp.as_ref().map_or(&[][..], |tcp| &tcp.samples));
    Columns::of_flows(samples)
        .measured("at_s", |it| it.at_s)
        .measured("window_segments", |it| it.window_segments)
        .optional("slow_start_threshold_segments", |it| it.slow_start_threshold_segments)
        .counted("in_flight_segments", |it| it.in_flight_segments)
        .optional("smoothed_round_trip_s", |it| it.smoothed_round_trip_s)
        .optional("min_round_trip_s", |it| it.min_round_trip_s)
        .optional("goodput_bps", |it| it.goodput_bps)
        .counted("retransmissions", |it| it.retransmissions)
        .counts("timeouts", |it| it.timeouts)
        .optional("gamma", |it| it.gamma)
        .optional("capacity_bps", |it| it.capacity_bps)
        .optional("available_bps", |it| it.available_bps)
        .table()
}

pub(crate) fn received(report: &Report) -> PyResult<Table> {
    Columns::of_flows(each_flow(report, |flow| &flow.received))
        .measured("at_s", |it| it.at_s)
        .measured("rate_bps", |it| it.rate_bps)
        .table()
}

pub(crate) fn beliefs(report: &Report) -> PyResult<Table> {
    Columns::of_flows(each_flow(report, |flow| &flow.beliefs))
        .measured("at_s", |it| it.at_s)
        .text("mode", |row| Some(row.it.mode.as_str()))
        .text("reason", |row| row.it.reason.as_deref())
        .counted("rate_bps", |it| it.rate_bps)
        .optional("capacity_bps", |it| it.capacity_bps.map(f64::from))
        .optional("available_bps", |it| it.available_bps.map(f64::from))
        .measured("base_s", |it| it.base_s.into())
        .measured("noise_s", |it| it.noise_s.into())
        .measured("queue_s", |it| it.queue_s.into())
        .measured("target_s", |it| it.target_s.into())
        .table()
}

pub(crate) fn distribution(report: &Report) -> PyResult<Table> {
    Columns::of_flows(each_flow(report, |flow| &flow.distribution))
        .measured("delay_s", |it| it.delay_s)
        .measured("share", |it| it.share)
        .table()
}

/// A row for each phase of each run. A phase is the time between two planned changes. The values of a phase are for all
/// media flows together.
pub(crate) fn phases(report: &Report) -> PyResult<Table> {
    fn of(run: &Run) -> &[PhaseResult] {
        run.media.as_ref().map_or(&[], |media| &media.phases)
    }
    Columns::of(each_run(report, of, |_| ""))
        .count("seed", |row| Some(row.seed))
        .measured("start_s", |it| it.start_s)
        .measured("end_s", |it| it.end_s)
        .optional("capacity_bps", |it| it.capacity_bps)
        .optional("utilisation", |it| it.utilisation)
        .queueing("queueing", |it| it.queueing)
        .optional("convergence_s", |it| it.convergence_s)
        .optional("jain", |it| it.jain)
        .optional("tcp_ratio", |it| it.tcp_ratio)
        .table()
}

/// The planned changes of capacities and loads. The initial values are the first rows.
pub(crate) fn steps(report: &Report) -> PyResult<Table> {
    let kind = |kind| match kind {
        equipoise_lab::result::StepKind::Capacity => Some("capacity"),
        equipoise_lab::result::StepKind::Load => Some("load"),
        _ => None,
    };
    Columns::of(&report.steps)
        .number("at_s", |step| Some(step.at_s))
        .text("name", |step| Some(step.name.as_str()))
        .text("kind", |step| kind(step.kind))
        .count("rate_bps", |step| Some(step.rate_bps))
        .table()
}

/// The mean over all runs, for each flow and metric.
pub(crate) fn means(report: &Report) -> PyResult<Table> {
    let flows = report.summary.iter().flat_map(|world| &world.flows);
    let all = flows.flat_map(|flow| flow.metrics.iter().map(move |(metric, mean)| (&flow.name, metric, mean)));
    Columns::of(all)
        .text("flow", |(flow, ..)| Some(flow.as_str()))
        .text("metric", |(_, metric, _)| Some(metric.as_str()))
        .number("mean", |(.., mean)| Some(mean.mean))
        .number("lo", |(.., mean)| mean.ci95.map(|[lo, _]| lo))
        .number("hi", |(.., mean)| mean.ci95.map(|[_, hi]| hi))
        .count("runs", |(.., mean)| Some(mean.runs))
        .table()
}
