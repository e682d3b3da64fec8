//! Tests of `equipoise suite`, which runs many test cases with many controllers.

use std::fs;

use equipoise_lab::suite::{Aqm, rfc8867};
use serde_json::Value;

use crate::support::{Folder, equipoise, run, said};

#[test]
fn help_lists_every_case_with_its_variants_and_every_queue() {
    let help = said(&run(&["suite", "rfc8867", "--help"]));
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for case in rfc8867::CASES {
        let names: Vec<_> = case.variants.iter().map(|variant| variant.name).collect();
        let line = format!("{} {} {}", case.number, case.title, names.join(", "));
        assert!(words.contains(&line), "{line} is missing from {help}");
    }
    assert!(Aqm::ALL.into_iter().all(|aqm| help.contains(aqm.name())), "{help}");
    assert!(said(&run(&["suite", "traces", "--help"])).contains("Mahimahi"));
}

/// Tests `--quick`: only the first variant of each case, and three seeds. Its runs must have the full length.
#[test]
fn a_quick_run_has_fewer_seeds_and_variants_and_whole_runs() {
    let folder = Folder::new();
    let (json, csv, report) = (folder.file("s.json"), folder.file("s.csv"), folder.file("s.html"));
    let files = ["--json", &json, "--csv", &csv, "--report", &report];
    let done = run(&[&["suite", "rfc8867", "5.1", "6.1", "--quick", "--controllers", "ap,tfrc"][..], &files].concat());
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    let listed = said(&done);
    for words in ["5.1 Variable available capacity, one flow", "6.1/50ms under ap: ap has no parameter `priority`"] {
        assert!(listed.contains(words), "{words} is missing from {listed}");
    }
    let json: Value = serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    let results = json["results"].as_array().expect("a list");
    let rows: Vec<_> = results.iter().map(|found| [&found["variant"], &found["controller"]]).collect();
    assert_eq!(rows, [["50ms-link", "ap"], ["50ms-link", "tfrc"]]);
    assert!(results.iter().all(|found| found["runs"] == 3 && found["duration_s"] == 100.0));
    assert!(fs::read_to_string(csv).expect("written").starts_with("suite,case,variant,world,controller"));
    assert!(fs::read_to_string(report).expect("written").contains("50ms-link"));
}

#[test]
fn a_wrong_name_ends_with_2_and_the_most_similar_one() {
    let cases: [(&[&str], i32, &str); 6] = [
        (&["rfc8867", "5.9"], 2, "a similar one exists: `5.8`"),
        (&["rfc8867", "5.6/300ms-renno"], 2, "a similar one exists: `300ms-reno`"),
        (&["rfc8867", "5.1", "--controllers", "tfcr"], 2, "a similar one exists: `tfrc`"),
        (&["rfc8867", "5.1", "--aqm", "fqcodel"], 2, "fq_codel"),
        (&["rfc8867", "6.1", "--controllers", "ap"], 3, "ap has no parameter `priority`"),
        (&["traces", "/nonexistent"], 3, "cannot read the folder /nonexistent"),
    ];
    for (arguments, code, words) in cases {
        let refused = run(&[&["suite"], arguments].concat());
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {}", said(&refused));
        assert!(said(&refused).contains(words), "{arguments:?}: {}", said(&refused));
    }
}

/// If this test fails, the error that namespaces cannot be created is reported only after the simulations. Without the
/// program `ip`, not even root can create namespaces.
#[test]
fn live_runs_without_namespaces_end_at_once_with_what_is_missing() {
    let mut command = equipoise();
    let refused =
        command.env("PATH", "/nonexistent").args(["suite", "rfc8867", "--live", "--controllers", "ap"]).output();
    let refused = refused.expect("the command starts");
    assert_eq!(refused.status.code(), Some(4), "{}", said(&refused));
    for words in ["network namespaces needs root and iproute2", "hint: network namespaces need root and iproute2"] {
        assert!(said(&refused).contains(words), "{}", said(&refused));
    }
}

#[test]
fn a_folder_of_traces_has_a_row_a_trace_and_an_empty_one_is_refused() {
    let folder = Folder::new();
    let place = folder.file("traces");
    fs::create_dir(&place).expect("a folder");
    let refused = run(&["suite", "traces", &place]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(said(&refused).contains("there is no trace in"), "{}", said(&refused));
    fs::write(format!("{place}/steps.csv"), "0,2\n5,1\n").expect("writable");
    let options = ["--controllers", "ap", "--duration", "10s", "--runs", "2", "--aqm", "pie", "--json", "-"];
    let done = run(&[&["suite", "traces", &place][..], &options].concat());
    let json: Value = serde_json::from_slice(&done.stdout).expect("JSON alone");
    assert_eq!((&json["results"][0]["case"], &json["aqm"]), (&"steps.csv".into(), &"pie".into()));
    fs::write(format!("{place}/wrong.trace"), "soon\n").expect("writable");
    let refused = said(&run(&["suite", "traces", &place]));
    assert!(refused.contains("wrong.trace is no trace") && refused.contains("`soon` is not a time"), "{refused}");
}
