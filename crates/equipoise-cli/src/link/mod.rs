//! `equipoise link`: an emulated path for other programs.

pub(crate) mod args;

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use equipoise::units::{Schedule, Span};
use equipoise_lab::capacity::{steps_capacity, trace_capacity};
use equipoise_lab::link::{BridgeConfig, Ends, Late, LinkDirection, LinkNews, LinkReport, run};
use equipoise_path::link::{
    Capacity, Codel, Discipline, DualPi2, FqCodel, Loss, Pie, PipeConfig, Reordering, TokenBucket,
};

use crate::error::{CliError, RealError};
use crate::outcome::{Outcome, catch_interrupt};
use crate::output::Output;
use crate::summary::times;
use crate::views::Views;
use crate::views::told::{Interval, Measured, Open, Start, Told, Way};
use crate::writer::Screen;
use args::{Aqm, Link, Path, RateLimit};

/// Extra delay of reordered packets. Our choice: media packets, one every 2.4 ms, can overtake a delayed packet, but a
/// whole video frame cannot.
const REORDER_BY: Span = Span::from_millis(5);

/// Runs `equipoise link`.
pub(crate) fn link(options: &Link) -> Result<Outcome, CliError> {
    let ends = ends(options)?;
    let forward = path(&options.path)?;
    let back = path(&options.back.over(&options.path))?;
    let json = options.json.as_deref().map(Output::promise).transpose()?;
    let stop = catch_interrupt()?;
    let stdout_is_taken = matches!(json, Some(Output::Stdout));
    let views = Views::open(&options.viewing, options.report.as_deref(), options.quiet, stdout_is_taken, &stop)?;
    let sample_interval = views.is_watched().then_some(options.interval);
    let config = BridgeConfig { forward, back, seed: options.seed, spin: options.spin, sample_interval };
    let screen = Screen::new(options.quiet || stdout_is_taken, &views);
    let report = run(&ends, &config, options.time, &stop, &mut |news| match news {
        LinkNews::Ready(address) => begin(&ends, address, (&screen, &views)),
        LinkNews::Interval { forward, back } => {
            for (series, path) in (0..).zip([forward, back]) {
                let interval = Interval { series, at_s: path.end_s, measured: Measured::Path(path) };
                views.tell(Told::Interval(Box::new(interval)));
            }
        }
    })
    .map_err(RealError::Link)?;
    screen.say(&summary(&report));
    for series in [0, 1] {
        views.tell(Told::End { series, at_s: report.lasted_s, why: "the path was closed" });
    }
    let viewed = views.finish(report.lasted_s);
    screen.finish();
    json.map_or(Ok(()), |json| json.fulfil(&report.to_json()))?;
    viewed?;
    // Without --time, Ctrl-C is the normal way to end the command.
    let cut_short = options.time.is_some() && stop.load(Ordering::Relaxed);
    Ok(if cut_short { Outcome::Interrupted } else { Outcome::Complete })
}

/// Prints the two ends of the link, and announces both directions to the views.
fn begin(ends: &Ends, address: Option<SocketAddr>, (screen, views): (&Screen, &Views)) {
    let place = match (ends, address) {
        (Ends::Udp { target, .. }, Some(address)) => format!("{address} to {target}"),
        (Ends::Interfaces { first, second }, _) => format!("between {first} and {second}"),
        (Ends::Tun { first, second }, _) => format!("between the TUN devices {first} and {second}"),
        (Ends::Udp { listen, target }, None) => format!("{listen} to {target}"),
    };
    let title = format!("carrying {place}");
    screen.say(&format!("{title}\n"));
    views.tell(Told::Start(Start { version: env!("CARGO_PKG_VERSION"), command: "link", title }));
    for (series, name) in (0..).zip(["forward", "back"]) {
        views.tell(Told::Open(Open { series, at_s: 0.0, name: name.to_owned(), direction: Way::Carried }));
    }
}

/// Returns the two ends of the link that the options request.
fn ends(options: &Link) -> Result<Ends, CliError> {
    let pair = |names: &Option<Vec<String>>| match names.as_deref() {
        Some([first, second]) => Some((first.clone(), second.clone())),
        _ => None,
    };
    match (pair(&options.between), pair(&options.tun), options.listen, options.to) {
        (Some((first, second)), ..) => Ok(Ends::Interfaces { first, second }),
        (None, Some((first, second)), ..) => Ok(Ends::Tun { first, second }),
        (None, None, Some(listen), Some(target)) => Ok(Ends::Udp { listen, target }),
        _ => Err(RealError::NoEnds.into()),
    }
}

/// Returns the configuration of one direction of the link.
fn path(options: &Path) -> Result<PipeConfig, CliError> {
    let usual = PipeConfig::default();
    let failed = |file: &std::path::Path| {
        let file = file.to_path_buf();
        |source| RealError::Rates { file, source }
    };
    let offset = options.rate_offset.unwrap_or(Span::ZERO);
    let capacity = match (options.rate, &options.rate_trace, &options.rate_csv) {
        (_, Some(file), _) => trace_capacity(file, offset).map_err(failed(file))?,
        (_, _, Some(file)) => steps_capacity(file, offset).map_err(failed(file))?,
        (Some(RateLimit::Rate(rate)), ..) => match options.rate_burst {
            Some(burst) => Capacity::Shaped(TokenBucket { rate, burst }),
            None => Capacity::Rate(Schedule::constant(rate)),
        },
        (Some(RateLimit::Unlimited), ..) if options.rate_burst.is_some() => return Err(RealError::BurstOfNoRate.into()),
        (Some(RateLimit::Unlimited) | None, ..) => Capacity::Unlimited,
    };
    let policer = options.police.map(|rate| match options.police_burst {
        Some(burst) => TokenBucket { rate, burst },
        None => TokenBucket::of(rate),
    });
    let loss = match (options.loss, options.loss_burst) {
        (_, Some(bursts)) => Loss::Burst(bursts),
        (Some(share), None) => Loss::Random(share),
        (None, None) => Loss::None,
    };
    let by = options.reorder_by.unwrap_or(REORDER_BY);
    Ok(PipeConfig {
        loss: loss.into(),
        policer,
        duplication: options.duplicate.unwrap_or(usual.duplication),
        queue: options.queue.unwrap_or(usual.queue),
        discipline: match options.aqm {
            Some(Aqm::Codel) => Discipline::Codel(Codel::default()),
            Some(Aqm::FqCodel) => Discipline::FqCodel(FqCodel::default()),
            Some(Aqm::Pie) => Discipline::Pie(Pie::default()),
            Some(Aqm::Dualpi2) => Discipline::DualPi2(DualPi2::default()),
            Some(Aqm::Droptail) | None => Discipline::DropTail,
        },
        capacity,
        delay: options.delay.map_or(usual.delay, Schedule::from),
        jitter: options.jitter.unwrap_or(usual.jitter),
        reordering: options.reorder.map(|share| Reordering { share, by }),
    })
}

fn summary(report: &LinkReport) -> String {
    let mut text = direction("forward", &report.forward);
    text.push_str(&direction("back", &report.back));
    let sockets = &report.sockets;
    let losses = [
        (sockets.unsent, "packets that the system could not send"),
        (sockets.overflowed, "packets dropped at a full receive buffer"),
        (sockets.foreign, "datagrams from unknown senders"),
        (sockets.turned_away, "datagrams of clients for which no socket was left"),
        (
            sockets.oversize,
            "frames longer than the interface can send: turn off UDP segmentation offload at the sender",
        ),
    ];
    for (count, what) in losses.iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!("outside the emulated path: {count} {what}\n"));
    }
    if !report.stalls.is_empty() {
        let stood: f64 = report.stalls.iter().map(|stall| stall.end_s - stall.start_s).sum();
        let stalled = times(report.stalls.len() as u64);
        text.push_str(&format!("the machine stalled {stalled}, {:.0} ms in total\n", stood * 1e3));
    }
    text
}

fn direction(name: &str, found: &LinkDirection) -> String {
    let rate = found.mean_rate_bps.unwrap_or(0.0) / 1e6;
    let mut text = format!(
        "{name:8} {} packets in, {} out, {} in flight; {rate:.3} Mbit/s\n",
        found.packets_in, found.packets_out, found.packets_in_flight
    );
    let counts = [
        (found.packets_lost, "lost"),
        (found.packets_policed, "dropped by the policer"),
        (found.packets_dropped_full, "dropped by the full queue"),
        (found.packets_dropped_early, "dropped early to signal congestion"),
        (found.packets_marked, "marked to signal congestion"),
        (found.packets_refused, "refused because memory ran out"),
        (found.packets_duplicated, "duplicated"),
        (found.packets_reordered, "reordered"),
    ];
    let counted: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if !counted.is_empty() {
        text.push_str(&format!("         {}\n", counted.join(", ")));
    }
    if let Some(mean) = found.mean_queue_packets {
        text.push_str(&format!("         queue: mean {mean:.2}, at most {} packets\n", found.longest_queue_packets));
    }
    for (late, which) in [(&found.late, "late by"), (&found.late_without_stalls, "without stalls")] {
        text.push_str(&late.as_ref().map_or_else(String::new, |late| lateness(which, late)));
    }
    text
}

fn lateness(which: &str, late: &Late) -> String {
    let micros = |seconds: f64| seconds * 1e6;
    format!(
        "         {which}: median {:.0} us, 99 % {:.0} us, 99.9 % {:.0} us, at most {:.0} us\n",
        micros(late.p50_s),
        micros(late.p99_s),
        micros(late.p999_s),
        micros(late.max_s)
    )
}
