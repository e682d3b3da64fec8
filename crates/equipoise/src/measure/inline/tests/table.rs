use std::println;

use super::path::{Setup, run};
use super::{mbps, setup};
use crate::measure::Moments;
use crate::pace::Traffic;
use crate::units::{Rate, Schedule, Span};

/// Prints bias and spread, in per cent of the capacity, for the first tenth of the run left out; the time in which a step
/// of the others to the rest of the link is found within 15 % of the capacity; and the rate against an unmeasured run.
#[test]
#[ignore = "prints a table and asserts nothing"]
fn print_bias_spread_and_step_times() {
    println!("rate others load own  rtt wire acks | RTTs/result | K bias   sd | A bias   sd | step, RTTs | rate");
    for rate in [10, 100, 1000] {
        for (round_trip, access) in [(20, 10), (30, 10), (120, 10), (120, 1)] {
            for traffic in [Traffic::Constant, Traffic::Poisson] {
                for (load, own) in [(30, 30), (30, 100), (70, 30), (70, 100)] {
                    for delayed_acks in [false, true] {
                        if rate == 1000 && round_trip == 120 || rate == 10 && round_trip < 120 {
                            continue;
                        }
                        let available = mbps(rate * (100 - load) / 100);
                        let base = Setup {
                            capacity: mbps(rate),
                            access,
                            traffic: traffic.clone(),
                            others: Schedule::constant(mbps(rate * load / 100)),
                            delayed_acks,
                            own: Rate::from_bps(available.as_bps() * own / 100),
                            round_trip: Span::from_millis(round_trip),
                            lasts: Span::from_secs(if rate == 1000 { 6 } else { 30 }),
                            ..setup()
                        };
                        print_row(&base, load, own);
                    }
                }
            }
        }
    }
}

fn print_row(base: &Setup, load: u64, own: u64) {
    let capacity = base.capacity.as_bps_f64();
    let lasts = base.lasts.as_secs_f64();
    let round_trip = base.round_trip.as_secs_f64();
    let (measured, plain) = (run(base), run(&Setup { measures: false, ..base.clone() }));
    let settled = || measured.results.iter().filter(|(at, _)| *at > lasts / 10.0);
    let k: Moments = settled().map(|(_, e)| e.capacity.rate.as_bps_f64() / capacity * 100.0 - 100.0).collect();
    let a: Moments =
        settled().map(|(_, e)| e.available.rate.as_bps_f64() / capacity * 100.0 - (100 - load) as f64).collect();
    let rest = Rate::from_bps(base.capacity.as_bps() * (100 - load) / 100);
    let after = Rate::from_bps(base.capacity.as_bps() * load / 100);
    let half = Span::from_nanos(base.lasts.as_nanos() / 2);
    let stepped = run(&Setup {
        others: Schedule::new(base.others.initial(), std::vec![(half, rest)]),
        own: base.own.min(Rate::from_bps(after.as_bps() * own / 100)),
        ..base.clone()
    });
    let found = stepped.results.iter().find(|(at, e)| {
        *at > lasts / 2.0 && (e.available.rate.as_bps_f64() - after.as_bps_f64()).abs() < 0.15 * capacity
    });
    println!(
        "{:4} {:6} {load:4} {own:3} {:4.0} {:4} {:4} | {:11.1} | {:6.2} {:4.2} | {:6.2} {:4.2} | {:10.1} | {:.4}",
        capacity / 1e6,
        if base.traffic == Traffic::Constant { "even" } else { "random" },
        round_trip * 1e3,
        base.access,
        if base.delayed_acks { "half" } else { "each" },
        lasts / round_trip / measured.results.len() as f64,
        k.mean().unwrap_or(f64::NAN),
        k.standard_deviation().unwrap_or(f64::NAN),
        a.mean().unwrap_or(f64::NAN),
        a.standard_deviation().unwrap_or(f64::NAN),
        found.map_or(f64::NAN, |(at, _)| (at - lasts / 2.0) / round_trip),
        measured.sent_late as f64 / plain.sent_late as f64,
    );
}
