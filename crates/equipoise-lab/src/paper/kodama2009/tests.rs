use super::*;
use crate::scenario::Scenario;

const SCENARIOS: [&str; 5] = [FIG3, FIG10, FIG11, FIG12, FIG15];

#[test]
fn every_scenario_of_the_program_parses_and_has_what_is_replaced() {
    for text in SCENARIOS {
        assert!(Scenario::parse(text).is_ok(), "{:?}", Scenario::parse(text).err());
    }
    for text in &SCENARIOS[1..] {
        assert!(text.contains("oscillation = 0 }") && text.contains("\"newreno\"") && text.contains("\"200 ms\""));
    }
    assert!(FIG10.contains("start = \"0 ms\"") && FIG15.contains("start = \"0 ms\""));
    assert!(FIG11.contains("start = \"200 s\"") && FIG11.matches("oscillation = 0 }").count() == 10);
    assert!(FIG15.contains("\"80 Mbit/s\"") && FIG15.contains("\"1000 packets\""));
}

fn quick(parts: &[Part], threads: usize) -> Results {
    let options = Options { runs: Some(2), quick: true, seed: 1, threads: Some(threads) };
    run(parts, &options, &|_| {}).expect("scenarios of the program")
}

#[test]
fn the_results_do_not_depend_on_the_number_of_threads() {
    assert_eq!(quick(&[Part::Fig12], 1), quick(&[Part::Fig12], 2));
}

/// The buffer holds 120 ms: 810 packets of a connection with 20 Mbit/s need twice as much.
#[test]
fn the_drop_to_20_mbit_overfills_the_queue_without_oscillation() {
    let results = quick(&[Part::Fig10], 2);
    let ids: Vec<_> = results.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(
        ids,
        ["fig10.timeout_without_oscillation", "fig14.no_timeout_with_oscillation", "fig14.faster_recovery"]
    );
    let table = &results.figures[0].tables[0];
    assert!(table.rows.iter().filter(|row| row[1] == "0").all(|row| row[2].starts_with("1.00")), "{:?}", table.rows);
}
