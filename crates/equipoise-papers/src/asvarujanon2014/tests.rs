use super::setting::{LTE_WIMAX, METHODS, Outcome, TOTALS, session};
use super::*;
use crate::Verdict;
use equipoise_lab::sim;

fn quick(parts: &[Part], data: Option<&Path>) -> Results {
    let options = Options { runs: Some(2), quick: true, seed: 1, threads: Some(2) };
    run(parts, data, &options, &|_| {}).expect("scenarios of the program")
}

#[test]
fn every_scenario_of_the_program_parses_and_has_its_total_and_split() {
    for total in TOTALS {
        for method in METHODS {
            let (name, scenario) = (method.name, session(total, method));
            let Some(mbps) = total.parse::<f64>().ok() else { panic!("{total}") };
            let equipoise_lab::scenario::FlowKind::Multipath(flow) = &scenario.flows[0].kind else { panic!("{name}") };
            let rate =
                flow.controller.build(scenario.flows[0].packet_size).expect("right").allowance().rate.expect("a rate");
            assert!((rate.as_mbps_f64() - mbps).abs() < 1e-9, "{name}: {rate}");
            assert_eq!(flow.scheduler.entry.name(), method.scheduler, "{name}");
        }
    }
    for (count, paths) in [(1, 3), (2, 4)] {
        let scenario = beyond::with_more(count);
        assert_eq!(scenario.paths_of(&scenario.flows[0]).count(), paths);
    }
}

#[test]
fn every_claim_has_a_name_of_its_own() {
    let mut ids: Vec<_> = CLAIMS.iter().copied().flatten().map(|spec| spec.id).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
#[ignore = "long simulations"]
fn every_claim_of_the_figures_has_a_number() {
    let results = quick(&[Part::Fig4, Part::Fig3], None);
    let ids: Vec<_> = results.claims.iter().map(|claim| claim.id.as_str()).collect();
    let expected: Vec<_> =
        [paths::CLAIMS, figures::CLAIMS_3, figures::CLAIMS_4].concat().into_iter().map(|spec| spec.id).collect();
    assert_eq!(ids, expected);
    for claim in &results.claims {
        assert!(claim.ours.is_some_and(f64::is_finite), "{}", claim.id);
        assert_ne!(claim.verdict, Verdict::NotComparable, "{}", claim.id);
    }
    for table in results.figures.iter().flat_map(|figure| &figure.tables) {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.caption);
        assert_eq!(table.rows.len(), METHODS.len());
    }
}

/// If this test fails, a session over a single path has a higher rate than the capacity of this path.
#[test]
fn no_single_path_carries_more_than_it_has() {
    for (place, most) in [(2, 5.1), (3, 1.9)] {
        let run = sim::simulate(&session("4.8", METHODS[place]), 1, &mut |_| {}).expect("it runs");
        let outcome = Outcome::of(&run);
        // After the run of 100 s, a full queue still delivers packets for 1 s, so the rate may be 1 % too high.
        assert!(outcome.throughput_mbps < most * 1.01, "{}: {}", METHODS[place].name, outcome.throughput_mbps);
        assert!(outcome.delay_ms > 25.0 && outcome.delay_ms < 1100.0, "{}", outcome.delay_ms);
        assert!(outcome.surge_ms >= outcome.delay_ms && outcome.delays.len() == 20);
    }
    assert!(LTE_WIMAX.contains("5.1 Mbit/s") && LTE_WIMAX.contains("1.9 Mbit/s"));
}

#[test]
#[ignore = "long simulations"]
fn beyond_has_its_claims_and_whole_tables() {
    let results = quick(&[Part::Beyond], None);
    let ids: Vec<_> = results.claims.iter().map(|claim| claim.id.as_str()).collect();
    let expected: Vec<_> = beyond::CLAIMS.iter().map(|spec| spec.id).collect();
    assert_eq!(ids, expected);
    assert!(results.claims.iter().all(|claim| claim.ours.is_some_and(f64::is_finite)));
    let tables: Vec<_> = results.figures.iter().flat_map(|figure| &figure.tables).collect();
    assert_eq!(tables.len(), 8);
    assert!(tables.iter().all(|table| table.rows.iter().all(|row| row.len() == table.columns.len())));
}

#[test]
fn pairs_are_read_by_their_names_and_what_is_wrong_is_named_with_its_line() {
    let folder = std::env::temp_dir().join(format!("equipoise-pairs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a temporary file");
    let walk = |bytes: [u32; 2]| -> String {
        (0..60).map(|second| format!("{second},{}\n", bytes[usize::from(second >= 30)])).collect()
    };
    assert!(matches!(pairs::read(None), Err(PairsError::NoFolder)));
    assert!(matches!(pairs::read(Some(&folder)), Err(PairsError::None { .. })));
    write("a_wifi.csv", &walk([1_000_000, 0]));
    write("a_cellular.csv", &walk([200_000, 400_000]));
    write("b_wifi.csv", "1,5\n");
    let results = quick(&[Part::Pairs], Some(&folder));
    assert_eq!(results.claims.len(), 6);
    let tables = &results.figures[0].tables;
    assert!(tables.len() == 3 && tables[0].caption.contains("1 pairs"), "b has no other half");
    write("a_cellular.csv", "1,200\n2,many\n");
    let error = pairs::read(Some(&folder)).expect_err("wrong on purpose").to_string();
    assert!(error.contains("a_cellular.csv, line 2: `2,many`"), "{error}");
    std::fs::remove_dir_all(&folder).expect("its own folder");
}

/// Uses the recordings of Aydin, Fund and Panwar (2023), if they are present.
#[test]
#[ignore = "long simulations"]
fn measured_pairs_give_numbers() {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("EQUIPOISE_TEST_DATA").map_or(default, Into::into).join("links/wifi-cellular-pairs");
    if !folder.is_dir() {
        println!("skipped: test data (EQUIPOISE_TEST_DATA): measured pairs at {}", folder.display());
        return;
    }
    let results = quick(&[Part::Pairs], Some(&folder));
    assert!(results.claims.iter().all(|claim| claim.ours.is_some_and(|ours| ours > 0.0)), "{:?}", results.claims);
}
