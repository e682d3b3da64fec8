mod path;

use path::{Run, Setup, run};

use equipoise::measure::{BandwidthEstimate, Moments};
use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_path::source::Traffic;

fn mbps(mbps: u64) -> Rate {
    Rate::from_bps(mbps * 1_000_000)
}

/// Returns a setup with a capacity of 100 Mbit/s and a round-trip time of 120 ms. Cross traffic takes 30 Mbit/s, and
/// the connection takes 35 Mbit/s.
fn setup() -> Setup {
    Setup {
        capacity: mbps(100),
        access: 10,
        round_trip: Span::from_millis(120),
        traffic: Traffic::Constant,
        others: Schedule::constant(mbps(30)),
        others_packet: Size::from_bytes(1500),
        delayed_acks: false,
        own: mbps(35),
        measures: true,
        lasts: Span::from_secs(30),
        seed: 1,
    }
}

/// Returns the mean and the standard deviation of the rates that `of` selects, as shares of the capacity. The first
/// tenth of the run is left out.
fn moments(setup: &Setup, run: &Run, of: impl Fn(&BandwidthEstimate) -> Rate) -> (f64, f64) {
    let from = setup.lasts.as_secs_f64() / 10.0;
    let settled = run.results.iter().filter(|(at, _)| *at > from);
    let moments: Moments = settled.map(|(_, e)| of(e).as_bps_f64() / setup.capacity.as_bps_f64()).collect();
    (moments.mean().expect("enough of them"), moments.standard_deviation().expect("enough of them"))
}

#[test]
fn even_traffic_is_found_at_every_rate_with_acknowledgements_of_each_or_every_second_segment() {
    for (rate, round_trip, secs) in [(10, 120, 30), (100, 30, 15), (100, 120, 30), (1000, 20, 4)] {
        for load in [30, 70] {
            for delayed_acks in [false, true] {
                let setup = Setup {
                    capacity: mbps(rate),
                    others: Schedule::constant(mbps(rate * load / 100)),
                    own: mbps(rate * (100 - load) / 100),
                    round_trip: Span::from_millis(round_trip),
                    lasts: Span::from_secs(secs),
                    delayed_acks,
                    ..setup()
                };
                let run = run(&setup);
                let (k, k_spread) = moments(&setup, &run, |estimate| estimate.capacity.rate);
                let (a, a_spread) = moments(&setup, &run, |estimate| estimate.available.rate);
                let case = std::format!("{rate} Mbit/s, {round_trip} ms, {load} %, {delayed_acks}: {k} {a} {a_spread}");
                assert!((k - 1.0).abs() < 0.01 && k_spread < 0.01, "{case}");
                assert!((a + load as f64 / 100.0 - 1.0).abs() < 0.03 && a_spread < 0.03, "{case}");
            }
        }
    }
}

#[test]
fn random_traffic_is_found_on_the_mean() {
    for (load, own, delayed_acks) in [(30, 20, false), (30, 70, true), (70, 10, true), (70, 30, false)] {
        let setup = Setup {
            traffic: Traffic::Poisson,
            others: Schedule::constant(mbps(load)),
            own: mbps(own),
            lasts: Span::from_secs(60),
            delayed_acks,
            ..setup()
        };
        let run = run(&setup);
        let (k, _) = moments(&setup, &run, |estimate| estimate.capacity.rate);
        let (a, a_spread) = moments(&setup, &run, |estimate| estimate.available.rate);
        assert!((k - 1.0).abs() < 0.01, "{load} %, own {own}: {k}");
        assert!((a + load as f64 / 100.0 - 1.0).abs() < 0.05, "{load} %, own {own}: {a}");
        assert!(a_spread < 0.08, "{load} %, own {own}: {a_spread}");
    }
}

#[test]
fn an_idle_path_offers_its_capacity() {
    let setup = Setup { others: Schedule::constant(Rate::ZERO), own: mbps(50), ..setup() };
    let (a, spread) = moments(&setup, &run(&setup), |estimate| estimate.available.rate);
    assert!((a - 1.0).abs() < 0.03 && spread < 0.02, "{a} {spread}");
}

#[test]
fn a_sender_whose_wire_is_no_faster_than_the_bottleneck_finds_the_same() {
    let setup = Setup { access: 1, ..setup() };
    let run = run(&setup);
    let (k, _) = moments(&setup, &run, |estimate| estimate.capacity.rate);
    let (a, _) = moments(&setup, &run, |estimate| estimate.available.rate);
    assert!((k - 1.0).abs() < 0.01 && (a - 0.7).abs() < 0.03, "{k} {a}");
}

#[test]
fn a_step_of_the_others_is_found_in_a_few_measurements() {
    let steps = std::vec![(Span::from_secs(10), mbps(70)), (Span::from_secs(20), mbps(30))];
    for traffic in [Traffic::Constant, Traffic::Poisson] {
        let others = Schedule::new(mbps(30), steps.clone());
        let run = run(&Setup { others, traffic, own: mbps(25), ..setup() });
        for (at, available) in [(10.0, 30.0), (20.0, 70.0)] {
            let near = |(when, estimate): &&(f64, BandwidthEstimate)| {
                *when > at && (estimate.available.rate.as_mbps_f64() - available).abs() < 15.0
            };
            let (found, _) = run.results.iter().find(near).expect("enough of them");
            assert!(found - at < 30.0 * 0.12, "thirty round trips at most, took {} s", found - at);
        }
    }
}

#[test]
fn a_result_comes_every_four_round_trips_and_costs_a_hundredth_of_the_rate() {
    let setup = Setup { traffic: Traffic::Poisson, own: mbps(70), ..setup() };
    let (measured, plain) = (run(&setup), run(&Setup { measures: false, ..setup.clone() }));
    let round_trips = setup.lasts.as_secs_f64() / setup.round_trip.as_secs_f64();
    let slow_start = 10.0;
    assert!(measured.results.len() as f64 > (round_trips - slow_start) / 4.0, "{}", measured.results.len());
    let ratio = measured.sent_late as f64 / plain.sent_late as f64;
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    assert!(measured.longest_hold < setup.round_trip.as_secs_f64(), "{}", measured.longest_hold);
}

#[test]
fn a_window_too_small_for_a_stream_is_left_alone() {
    let setup = Setup { capacity: mbps(10), others: Schedule::constant(mbps(3)), own: mbps(1), ..setup() };
    let setup = Setup { round_trip: Span::from_millis(30), ..setup };
    let (measured, plain) = (run(&setup), run(&Setup { measures: false, ..setup.clone() }));
    assert_eq!((measured.sent, measured.results.len()), (plain.sent, 0));
}
