//! Tests of `equipoise paper`: it must print a paper's claims, whether the results confirm them or not. A test in
//! `equipoise-papers` compares the claims with the committed results.

use serde_json::Value;

use crate::support::{Folder, run, said};

const CLAIMED: [&str; 5] =
    ["fig5.flat", "fig12.mse_ap_vs_cbr08", "fig12.mse_ap_vs_cbr3", "fig12.b_insensitive", "fig12.jitter"];

#[test]
fn the_claims_of_two_figures_come_with_their_verdicts_and_the_command_succeeds_whatever_they_are() {
    the_claims_come(&["fig5", "fig12"], &CLAIMED);
}

fn the_claims_come(parts: &[&str], ids: &[&str]) {
    let folder = Folder::new();
    let (json, html) = (folder.file("claims.json"), folder.file("report.html"));
    let results = ["--runs", "1", "--json", &json, "--report", &html];
    let output = run(&[&["paper", "waki2013"], parts, &results].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = std::fs::read_to_string(&json).expect("written");
    let results: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(results["paper"], "Waki 2013");
    let claims = results["claims"].as_array().expect("a list");
    for &id in ids {
        let claim = claims.iter().find(|claim| claim["id"] == id).unwrap_or_else(|| panic!("{id} is missing"));
        for key in ["figure", "statement", "unit", "note"] {
            assert!(claim[key].is_string(), "{id}: {key}");
        }
        assert!(claim["runs"].is_u64() && claim.get("paper").is_some() && claim.get("ours").is_some(), "{id}");
        let verdict = claim["verdict"].as_str().expect("words");
        let verdicts = ["reproduced", "undecided", "not reproduced", "not comparable", "ours", "fitted"];
        assert!(verdicts.contains(&verdict), "{id}: {verdict}");
        assert!(said(&output).contains(id), "{id}");
    }
    let page = std::fs::read_to_string(&html).expect("written");
    assert!(page.ends_with("</html>\n") && !page.contains("NaN"), "a page without what is no number");
}

#[test]
fn a_part_that_is_simulated_only_cannot_be_asked_for_live() {
    for (parts, refused) in [
        (&["kodama2009", "fig3"][..], "fig3 can only be simulated; --live supports fig5"),
        (&["kodama2009", "fig5", "fig3"], "fig3 can only be simulated"),
        (&["subramanya2003", "fig6"], "--live supports table1, table4, table6"),
        (&["tobe1999", "fig3"], "--live supports fig10"),
    ] {
        let output = run(&[&["paper"], parts, &["--live"]].concat());
        assert!(output.status.code() == Some(2) && said(&output).contains(refused), "{}", said(&output));
    }
    assert_eq!(run(&["paper", "waki2013", "--live"]).status.code(), Some(2));
}

#[test]
fn pairs_without_a_folder_are_a_fault_of_the_command_line_and_a_wrong_folder_one_of_the_input() {
    let output = run(&["paper", "asvarujanon2014", "pairs"]);
    assert!(output.status.code() == Some(2) && said(&output).contains("needs --pairs"), "{}", said(&output));
    let folder = Folder::new();
    let output = run(&["paper", "asvarujanon2014", "all", "--pairs", &folder.file("")]);
    assert!(output.status.code() == Some(3) && said(&output).contains("NAME_wifi.csv"), "{}", said(&output));
}

#[test]
fn what_is_no_capture_is_refused_with_its_own_exit_code() {
    let folder = Folder::new();
    let file = folder.file("no.pcap");
    std::fs::write(&file, "name = \"demo\"\n").expect("a temporary folder");
    let output = run(&["capture", "rtt", &file]);
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("not a capture") && said(&output).contains("hint:"), "{}", said(&output));
}
