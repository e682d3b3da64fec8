use super::scenarios::*;
use super::*;
use crate::Verdict;
use equipoise_lab::scenario::{Override, Scenario};

const SCENARIOS: [&str; 10] = [FIG10, FIG11, FIG12, FIG15, FIG3, FIG5, FIG6, BEYOND_STEP, BEYOND_NOISE, BEYOND_RIVALS];

#[test]
fn every_scenario_of_the_program_parses() {
    for text in SCENARIOS {
        assert!(Scenario::parse(text).is_ok(), "{:?}", Scenario::parse(text).err());
    }
}

/// Runs a part of the thesis with the small number of runs of a quick look.
fn quick(part: Part) -> Results {
    let options = Options { runs: None, quick: true, seed: 1, threads: Some(2) };
    run(&[part], &options, &|_| {}).expect("scenarios of the program")
}

/// If this test fails, several runs have the same random traffic or start time, so the confidence intervals are too
/// narrow.
#[test]
fn spread_runs_have_seeds_and_places_of_their_own() {
    let options = Options { runs: None, quick: true, seed: 7, threads: Some(2) };
    let lab = Lab::new(&options, 4, &|_| {});
    let places = std::cell::RefCell::new(Vec::new());
    let scenario = |place| {
        places.borrow_mut().push(place);
        parse_with(FIG12, &[Override::set("duration", "1 s"), Override::set("warm_up", "0 s")])
    };
    let seeds = lab.spread(4, scenario, |run| run.seed);
    assert_eq!(seeds.expect("a scenario of the program"), [7, 8, 9, 10]);
    assert_eq!(places.into_inner(), [0.0, 0.25, 0.5, 0.75]);
}

/// After the drop of the available bandwidth to 20 Mbit/s, a window above 390 packets overfills the buffer. In a run
/// without self-induced oscillation, the window is 810 packets at the drop, so the run must lose packets.
#[test]
fn the_drop_to_20_mbit_overfills_the_queue_without_oscillation() {
    let results = quick(Part::Fig10);
    let ids: Vec<_> = results.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids, fig10::CLAIMS.iter().map(|claim| claim.id).collect::<Vec<_>>());
    let table = &results.figures[0].tables[0];
    assert!(table.rows.iter().filter(|row| row[1] == "0").all(|row| row[2].starts_with("1.00")), "{:?}", table.rows);
}

/// If this test fails, two claims have the same identifier, so the committed results or the page can show the wrong
/// claim.
#[test]
fn every_claim_has_a_name_of_its_own() {
    let mut ids: Vec<_> = CLAIMS.iter().copied().flatten().map(|claim| claim.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[track_caller]
fn verdict(results: &Results, id: &str) -> Verdict {
    results.claims.iter().find(|claim| claim.id == id).map(|claim| claim.verdict).expect("a claim of this part")
}

/// Over the long path, Symbiosis must have a higher goodput than Reno. A long round-trip time slows the growth of
/// Reno's window. In the law of Symbiosis, the speed of growth depends on the available bandwidth, and not on the
/// round-trip time.
#[test]
#[ignore = "long simulations"]
fn symbiosis_has_more_than_reno_over_the_long_path() {
    // The number of runs is that of a quick look. It is set explicitly, because a quick look returns no verdicts.
    let options = Options { runs: Some(2), quick: false, seed: 1, threads: Some(2) };
    let results = run(&[Part::Fig5], &options, &|_| {}).expect("scenarios of the program");
    assert_eq!(verdict(&results, "fig5.rtt150_gain_over_reno"), Verdict::Reproduced);
    let figure = results.figures.last().expect("a figure");
    assert_eq!((figure.charts.len(), figure.tables.len()), (2, 1));
    assert!(figure.charts.iter().all(|chart| chart.layers.len() == 3));
}

/// Measures the share of data in the packets of the simulator's TCP, with a connection that fills 20 Mbit/s. If the
/// test fails, `DATA_SHARE` is wrong. The goodput threshold of Fig. 5 (90 % of 50 Mbit/s) is then wrong, too.
#[test]
fn the_share_of_data_in_fig_5_is_that_of_the_simulated_tcp() {
    let mut overrides = vec![
        fig5::delay(30),
        Override::set("link.E0-E1.rate", "20 Mbit/s"),
        Override::set("flow.background.source.rate", "1 bit/s"),
        Override::remove("flow.background.source.steps"),
        Override::set("duration", "20 s"),
    ];
    overrides.extend(fig5::other_law("reno"));
    let options = Options { runs: None, quick: true, seed: 1, threads: Some(1) };
    let lab = Lab::new(&options, 1, &|_| {});
    let full = |run: &equipoise_lab::result::Run| series::goodput_mbps(run, 1, (10.0, 20.0));
    let found = lab.runs(&parse_with(FIG5, &overrides), 1, full).expect("a scenario of the program");
    assert!((found[0] / 20.0 - fig5::DATA_SHARE).abs() < 1e-3, "{found:?}, {}", fig5::DATA_SHARE);
}

/// With two connections, the queue contains (1 - γ) times the bandwidth-delay product of 500 packets (from Eq. 9): 250
/// packets with γ = 0.5, and 25 with γ = 0.95. If the test fails, the queue under noise is not about ten times longer
/// with γ = 0.5 than with γ = 0.95.
#[test]
#[ignore = "long simulations"]
fn the_queue_under_noise_is_that_of_the_equation() {
    let results = quick(Part::Fig6);
    assert_eq!(results.claims.len(), fig6::CLAIMS.len());
    let queue = results.claims.iter().find(|claim| claim.id == "fig7.gamma50_queue").and_then(|claim| claim.ours);
    assert!((queue.expect("an estimate") / 10.0 - 1.0).abs() < 0.4, "{queue:?}");
}

#[test]
#[ignore = "long simulations"]
fn what_is_beyond_the_thesis_has_numbers_and_no_verdict() {
    let results = quick(Part::Beyond);
    assert_eq!(results.claims.len(), 11);
    for claim in &results.claims {
        assert!(claim.ours.is_some_and(f64::is_finite), "{}", claim.id);
        assert_eq!(claim.verdict, Verdict::TooFewRuns);
    }
    // Next to CUBIC, which fills the buffer, Symbiosis must have less than half of the total goodput.
    let share =
        results.claims.iter().find(|claim| claim.id == "beyond.share_against_cubic").and_then(|claim| claim.ours);
    assert!(share.is_some_and(|share| (0.5..50.0).contains(&share)), "{share:?}");
    assert!(results.figures.iter().all(|figure| figure.tables.len() == 1));
    assert!(
        results
            .figures
            .iter()
            .flat_map(|figure| &figure.tables)
            .all(|table| { table.rows.iter().all(|row| row.len() == table.columns.len()) })
    );
}
