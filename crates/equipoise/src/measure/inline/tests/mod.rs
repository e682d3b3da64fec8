mod path;

use std::{print, println};

use path::{Setup, run};

use crate::measure::Moments;
use crate::pace::Traffic;
use crate::units::{Rate, Schedule, Size, Span};

fn mbps(mbps: u64) -> Rate {
    Rate::from_bps(mbps * 1_000_000)
}

fn setup() -> Setup {
    Setup {
        capacity: mbps(100),
        access: 10,
        round_trip: Span::from_millis(30),
        traffic: Traffic::Constant,
        others: Schedule::constant(mbps(30)),
        others_packet: Size::from_bytes(1500),
        delayed_acks: false,
        own: mbps(35),
        measures: true,
        lasts: Span::from_secs(20),
        seed: 1,
    }
}

#[test]
fn constant_traffic_leaves_what_the_measurement_finds() {
    let found = run(&setup());
    assert!(found.results.len() > 100, "one result in four round trips, of 20 s and 30 ms each");
    for (_, estimate) in found.results.iter().skip(2) {
        assert!((estimate.capacity.rate.as_mbps_f64() - 100.0).abs() < 2.0, "{estimate:?}");
        assert!((estimate.available.rate.as_mbps_f64() - 70.0).abs() < 4.0, "{estimate:?}");
    }
}

#[test]
#[ignore = "a table"]
fn table() {
    println!(
        "rate cross load own rtt acc delack | n RTTs/result | K bias sd | A bias sd (% of K) | first | step | sent"
    );
    for rate in [10, 100, 1000] {
        for (rtt, access) in [(30, 10), (30, 1), (120, 10)] {
            for traffic in [Traffic::Constant, Traffic::Poisson] {
                for load in [30, 70] {
                    for own in [30, 100] {
                        for delayed_acks in [false, true] {
                            if rate == 1000 && rtt == 120 || rate == 10 && rtt == 30 {
                                continue;
                            }
                            let capacity = mbps(rate);
                            let others = Schedule::constant(mbps(rate * load / 100));
                            let available = mbps(rate * (100 - load) / 100);
                            let own_rate = Rate::from_bps(available.as_bps() * own / 100);
                            let lasts = Span::from_millis(if rate == 1000 { 6000 } else { 30000 });
                            let base = Setup {
                                capacity,
                                access,
                                others,
                                traffic: traffic.clone(),
                                delayed_acks,
                                own: own_rate,
                                round_trip: Span::from_millis(rtt),
                                lasts,
                                ..setup()
                            };
                            let found = run(&base);
                            let plain = run(&Setup { measures: false, ..base.clone() });
                            let half = lasts.as_secs_f64() / 2.0;
                            let late = || found.results.iter().filter(|(at, _)| *at > lasts.as_secs_f64() / 10.0);
                            let k: Moments = late()
                                .map(|(_, e)| e.capacity.rate.as_bps_f64() / capacity.as_bps_f64() * 100.0 - 100.0)
                                .collect();
                            let a: Moments = late()
                                .map(|(_, e)| {
                                    (e.available.rate.as_bps_f64() - available.as_bps_f64()) / capacity.as_bps_f64()
                                        * 100.0
                                })
                                .collect();
                            // a step
                            let steps = Schedule::new(
                                mbps(rate * load / 100),
                                std::vec![(Span::from_nanos(lasts.as_nanos() / 2), mbps(rate * (100 - load) / 100))],
                            );
                            let low_rate = own_rate.min(Rate::from_bps(mbps(rate * load / 100).as_bps() * own / 100));
                            let stepped = run(&Setup { others: steps, own: low_rate, ..base.clone() });
                            let after = mbps(rate * load / 100).as_bps_f64();
                            let first_good = stepped
                                .results
                                .iter()
                                .find(|(at, e)| {
                                    *at > half
                                        && (e.available.rate.as_bps_f64() - after).abs() < 0.15 * capacity.as_bps_f64()
                                })
                                .map(|(at, _)| (at - half) / (rtt as f64 / 1e3));
                            print!(
                                "{rate:5} {} {load} {own:3} {rtt:3} {access:2} {} |",
                                if traffic == Traffic::Constant { "const" } else { "poiss" },
                                if delayed_acks { "del" } else { "1:1" }
                            );
                            println!(
                                " {:4} {:5.1} | {:6.2} {:5.2} | {:6.2} {:5.2} | {:5.1} | {:5.1} RTT | {:.4} hold {:.1}%",
                                found.results.len(),
                                lasts.as_secs_f64() / (rtt as f64 / 1e3) / found.results.len() as f64,
                                k.mean().unwrap_or(f64::NAN),
                                k.standard_deviation().unwrap_or(f64::NAN),
                                a.mean().unwrap_or(f64::NAN),
                                a.standard_deviation().unwrap_or(f64::NAN),
                                found.results.first().map_or(f64::NAN, |(at, _)| *at / (rtt as f64 / 1e3)),
                                first_good.unwrap_or(f64::NAN),
                                found.sent_late as f64 / plain.sent_late as f64,
                                found.longest_hold / (rtt as f64 / 1e3) * 100.0
                            );
                        }
                    }
                }
            }
        }
    }
}
