//! Tests of the report page: it is self-contained, safe with hostile names, and complete for any set of runs.

use equipoise_lab::result::{Report, World};
use equipoise_lab::scenario::Scenario;
use equipoise_lab::{DEMO_SHORT, report, sim};

fn results() -> Report {
    let scenario = Scenario::parse(DEMO_SHORT).expect("a right scenario");
    let runs = sim::simulate_many(&scenario, (1, 2), Some(1), |run| run, &|_| {}).expect("a scenario that was parsed");
    Report::new(&scenario, 1, runs)
}

/// Returns the results of two runs, of which the second one is marked as live.
fn both_worlds() -> Report {
    let mut results = results();
    results.runs[1].world = World::Live;
    results
}

#[test]
fn nothing_is_fetched_from_anywhere() {
    let page = report::html(&both_worlds());
    for reference in ["src=", "href=", "url(", "import ", "import(", "fetch(", "@import", "<link"] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert_eq!(page.matches("<script").count(), 1, "what the charts do for whoever has scripts");
    // The only addresses in the page are the names of XML vocabularies.
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/").count());
}

#[test]
fn both_worlds_stand_in_one_page_and_equal_results_give_equal_bytes() {
    let results = both_worlds();
    let page = report::html(&results);
    assert!(page == report::html(&results));
    for words in ["Simulated, media", "Live, media", "simulated: mean of each interval", "live: mean of each interval"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("<svg class=\"plot\"").count(), 3, "delay, rate, distribution");
    let places = ["Did it hold?", "What did it cost?", "What happened when?", "Numbers", "How to read this"]
        .map(|title| page.find(&format!("<h2>{title}</h2>")));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "in the order that a reader asks: {places:?}");
}

#[test]
fn hostile_names_stay_text() {
    let mut results = both_worlds();
    let hostile = "<script>alert(1)</script>&\"'";
    results.scenario = hostile.to_owned();
    results.description = hostile.to_owned();
    results.scenario_text = hostile.to_owned();
    results.steps.iter_mut().for_each(|step| step.name = hostile.to_owned());
    for run in &mut results.runs {
        run.clock = hostile.to_owned();
        run.flows.iter_mut().for_each(|flow| flow.name = hostile.to_owned());
        run.links.iter_mut().for_each(|link| link.name = hostile.to_owned());
    }
    let page = report::html(&results);
    assert!(!page.contains("<script>alert"), "a name became markup");
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn empty_results_still_make_a_page() {
    let mut results = results();
    for run in &mut results.runs {
        for flow in &mut run.flows {
            flow.intervals.clear();
            flow.distribution.clear();
            flow.settled_delay_s = None;
        }
    }
    assert!(report::html(&results).contains("nothing was measured"));
    results.runs.clear();
    assert!(report::html(&results).ends_with("</html>\n"));
}

#[test]
fn the_keys_that_others_rely_on_are_there() {
    let json: serde_json::Value = serde_json::from_str(&both_worlds().to_json()).expect("JSON");
    let run = &json["runs"][0];
    assert_eq!((json["scenario"].as_str(), json["seed"].as_u64()), (Some("demo-short"), Some(1)));
    assert_eq!((run["world"].as_str(), run["seed"].as_u64()), (Some("sim"), Some(1)));
    let flow = &run["flows"][0];
    for key in [
        "name",
        "controller",
        "packets_sent",
        "packets_received",
        "packets_lost",
        "mean_rate_bps",
        "target_s",
        "mse_s2",
        "cv",
        "jitter_s",
    ] {
        assert!(!flow[key].is_null(), "{key}");
    }
    for key in ["mean_s", "variance_s2", "p50_s", "p95_s", "p99_s", "max_s"] {
        assert!(flow["delay"][key].is_f64(), "{key}");
    }
    for key in ["start_s", "end_s", "rate_bps", "delay_mean_s", "delay_variance_s2", "packets"] {
        assert!(flow["intervals"][0][key].is_number(), "{key}");
    }
    for key in ["utilisation", "packets_dropped", "packets_forwarded", "mean_queue_packets", "max_queue_packets"] {
        assert!(run["links"][0][key].is_number(), "{key}");
    }
    assert!(run["flows"][1]["controller"].is_null() && run["flows"][1]["target_s"].is_null(), "background has none");
}
