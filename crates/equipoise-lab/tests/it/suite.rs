//! Compares the cases of the suite with the tables of RFC 8867, and tests the results of a suite.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::control::Value as Parameter;
use equipoise::units::{Rate, Size, Span};
use equipoise_lab::report;
use equipoise_lab::result::World;
use equipoise_lab::scenario::{Catalogue, Direction, Flow, FlowKind, Override, Scenario, VideoChoice};
use equipoise_lab::suite::{self, CaseResult, Item, Machine, NotRun, Plan, SuiteError, SuiteResult, rfc8867, traces};
use equipoise_path::link::{Capacity, Jitter, QueueLimit};
use serde_json::Value;

fn item(case: &str, variant: &str) -> Item {
    let items = rfc8867::items(&[format!("{case}/{variant}")], false).expect("a case of the RFC");
    items.into_iter().next().expect("one variant")
}

fn scenario(case: &str, variant: &str) -> Scenario {
    Scenario::parse(&item(case, variant).text).unwrap_or_else(|error| panic!("{case} {variant}: {error}"))
}

/// Returns all variants of all cases, each with its scenario.
fn all() -> Vec<(String, String, Scenario)> {
    let items = rfc8867::items(&[], false).expect("all cases").into_iter();
    items.map(|item| (item.case.clone(), item.variant.clone(), scenario(&item.case, &item.variant))).collect()
}

fn sessions(scenario: &Scenario) -> Vec<&Flow> {
    scenario.flows.iter().filter(|flow| matches!(flow.kind, FlowKind::Session { .. })).collect()
}

/// Returns the capacity that UDP traffic leaves on the shared link in a direction, as times in s and rates in kbit/s.
/// There is one entry for the start, and one for each change of the link's rate or of the planned UDP rate. `None` if
/// the direction has no rate limit.
fn left(scenario: &Scenario, direction: Direction) -> Option<Vec<(i64, u64)>> {
    let link = scenario.links.iter().find(|link| link.name == "bottleneck").expect("a shared link");
    let Capacity::Rate(rate) = &link.direction(direction).capacity else { return None };
    let udp = scenario.flows.iter().filter(|flow| flow.direction == direction).find_map(|flow| match &flow.kind {
        FlowKind::Background { rate, .. } => Some(rate),
        _ => None,
    });
    let times =
        rate.steps().iter().chain(udp.into_iter().flat_map(equipoise::units::Schedule::steps)).map(|(at, _)| *at);
    let times: BTreeSet<Span> = times.chain([Span::ZERO]).collect();
    let at = |at: Span| {
        let taken = udp.map_or(0, |udp| udp.at(at).as_bps());
        (at.as_nanos() / 1_000_000_000, (rate.at(at).as_bps() - taken) / 1000)
    };
    Some(times.into_iter().map(at).collect())
}

/// Returns a capacity table of RFC 8867, in which each row is a start time in seconds and a rate in kbit/s. `rows` are
/// start times and ratios, and `reference` is the reference capacity in kbit/s.
fn table(rows: &[(i64, f64)], reference: f64) -> Vec<(i64, u64)> {
    rows.iter().map(|&(at, ratio)| (at, (ratio * reference).round() as u64)).collect()
}

/// Checks the capacities in the tables of RFC 8867. A variant either changes the rate of the link, or sends UDP traffic
/// over a link of 4 Mbit/s. This UDP traffic leaves the capacity in the table to the media.
#[test]
fn capacities_vary_as_tables_1_to_4_say_by_the_link_and_by_udp() {
    let one = Some(table(&[(0, 1.0), (40, 2.5), (60, 0.6), (80, 1.0)], 1000.0));
    let two = Some(table(&[(0, 2.0), (25, 1.0), (50, 1.75), (75, 0.5), (100, 1.0)], 2000.0));
    let three = Some(table(&[(0, 2.0), (20, 1.0), (40, 0.5), (60, 2.0)], 1000.0));
    let four = Some(table(&[(0, 2.0), (35, 0.8), (70, 2.0)], 1000.0));
    for (case, forward) in [("5.1", &one), ("5.2", &two), ("5.3", &three)] {
        for variant in rfc8867::case(case).expect("a case").variants {
            let scenario = scenario(case, variant.name);
            assert_eq!(left(&scenario, Direction::Forward), *forward, "{case} {}", variant.name);
            let back = if case == "5.3" && !variant.name.ends_with("reference") { four.clone() } else { None };
            assert_eq!(left(&scenario, Direction::Back), back, "{case} {}", variant.name);
            let Capacity::Rate(rate) = &scenario.links[0].forward.capacity else { panic!("a rate") };
            let is_physical = rate.steps().is_empty() && rate.initial() == Rate::from_bps(4_000_000);
            assert_eq!(is_physical, variant.name.contains("udp"), "{case} {}", variant.name);
            let udp = scenario.flows.iter().filter(|flow| matches!(flow.kind, FlowKind::Background { .. }));
            assert!(udp.clone().all(|flow| flow.packet_size == Size::from_bytes(1500)), "RFC 8868, Sec. 5.3");
            assert_eq!(udp.count() > 0, variant.name.contains("udp"), "{case} {}", variant.name);
        }
    }
}

/// Checks the reference capacities in RFC 8867, Sec. 5.4 to 5.8. These capacities are constant.
#[test]
fn other_cases_have_the_reference_capacity_throughout() {
    for (case, kilobits) in [("5.4", 3500), ("5.5", 4000), ("5.6", 2000), ("5.7", 2000), ("5.8", 3500)] {
        for variant in rfc8867::case(case).expect("a case").variants {
            let scenario = scenario(case, variant.name);
            let expected = Some(vec![(0, kilobits)]);
            assert_eq!(left(&scenario, Direction::Forward), expected, "{case} {}", variant.name);
            assert_eq!(left(&scenario, Direction::Back), None, "{case} {}", variant.name);
        }
    }
}

/// Start, end and pauses of a media flow, in seconds since the run's start.
type Timeline = (i64, Option<i64>, Vec<(i64, i64)>);

fn timelines(scenario: &Scenario) -> Vec<Timeline> {
    let secs = |span: Span| span.as_nanos() / 1_000_000_000;
    let timeline = |flow: &&Flow| {
        let ends = flow.pauses.iter().find(|pause| pause.until.is_none()).map(|pause| secs(pause.at));
        let pauses = flow.pauses.iter().filter_map(|pause| Some((secs(pause.at), secs(pause.until?))));
        (secs(flow.start), ends, pauses.collect())
    };
    sessions(scenario).iter().map(timeline).collect()
}

#[test]
fn runs_and_media_last_as_long_as_the_timelines_say() {
    let plain = |start: i64, end: i64| (start, Some(end), Vec::new());
    let cases: [(&str, i64, Vec<Timeline>); 9] = [
        ("5.1", 100, vec![plain(0, 99)]),
        ("5.2", 125, vec![(0, None, Vec::new()), (0, None, Vec::new())]),
        ("5.3", 100, vec![plain(0, 99), plain(0, 99)]),
        ("5.4", 120, vec![plain(0, 119), plain(20, 119), plain(40, 119)]),
        ("5.5", 300, [0, 10, 20, 30, 40].map(|start| plain(start, 299)).to_vec()),
        ("5.6", 120, vec![plain(5, 119)]),
        ("5.7", 300, vec![plain(5, 299), plain(5, 299)]),
        ("5.8", 120, vec![plain(0, 119), (0, Some(119), vec![(40, 60)]), plain(0, 119)]),
        ("6.3", 300, [0, 0, 0].map(|start| plain(start, 299)).to_vec()),
    ];
    for (case, duration, expected) in cases {
        for variant in rfc8867::case(case).expect("a case").variants {
            let scenario = scenario(case, variant.name);
            assert_eq!(scenario.duration, Span::from_secs(duration), "{case} {}", variant.name);
            assert_eq!(timelines(&scenario), expected, "{case} {}", variant.name);
            assert_eq!(scenario.warm_up, Span::ZERO, "the start is a part of the case");
        }
    }
}

#[test]
fn propagation_delays_are_those_of_each_case_there_and_back() {
    for (case, variant, scenario) in all() {
        let delays: Vec<[i64; 2]> = sessions(&scenario)
            .into_iter()
            .map(|flow| {
                let delay = |direction| scenario.propagation_delay(&flow.path, direction).as_nanos() / 1_000_000;
                [delay(Direction::Forward), delay(Direction::Back)]
            })
            .collect();
        let expected = match (case.as_str(), variant.as_str()) {
            ("5.5", _) | ("6.2", "5.5-codel" | "5.5-dualpi2") => {
                [10, 25, 50, 100, 150].map(|delay| [delay, delay]).to_vec()
            }
            ("6.3", _) => [100, 40, 40].map(|delay| [delay, delay]).to_vec(),
            (_, variant) if variant.starts_with("100ms") => vec![[100, 50]; delays.len()],
            _ => vec![[50, 50]; delays.len()],
        };
        assert_eq!(delays, expected, "{case} {variant}");
    }
}

#[test]
fn queues_have_their_room_in_time_but_for_those_that_manage_themselves() {
    for (case, variant, scenario) in all() {
        for link in scenario.links.iter().filter(|link| matches!(link.forward.capacity, Capacity::Rate(_))) {
            let millis = if variant.starts_with("1000ms") { 1000 } else { 300 };
            let expected = match (&link.forward.capacity, case.as_str()) {
                // RFC 8868, Sec. 4.3: QueueSize = seconds × throughput / 8.
                (Capacity::Rate(rate), "6.2") => {
                    QueueLimit::Bytes(Size::from_bytes(rate.initial().as_bps() * millis / 8000))
                }
                _ => QueueLimit::Time(Span::from_millis(millis as i64)),
            };
            assert_eq!(link.forward.queue, expected, "{case} {variant}");
        }
    }
}

/// If this test fails, the media of a case are not the video and the audio of RFC 8867, Sec. 4.3.
#[test]
fn all_media_are_the_video_and_the_audio_of_section_4_3() {
    for (case, variant, scenario) in all() {
        for flow in sessions(&scenario) {
            let live = flow.live().expect("live media");
            let Some(VideoChoice::Modelled(model)) = &live.video else { panic!("{case} {variant}: an encoder") };
            let rates = [model.min_rate, model.max_rate].map(Rate::as_bps);
            assert_eq!(rates, [150_000, 1_500_000], "{case} {variant}");
            assert!((model.frame_rate - 30.0).abs() < 1e-9 && model.reaction == Span::from_millis(100));
            let audio = live.audio.expect("audio");
            assert_eq!((audio.rate, audio.interval), (Rate::from_bps(20_000), Span::from_millis(20)));
            let FlowKind::Session { controller, .. } = &flow.kind else { panic!("a session") };
            let rate = |key: &str| controller.parameters.iter().find(|(name, _)| *name == key).map(|(_, value)| value);
            for (key, bps) in [("initial_rate", 210_000), ("min_rate", 210_000), ("max_rate", 1_500_000)] {
                assert!(matches!(rate(key), Some(Parameter::Rate(rate)) if rate.as_bps() == bps), "{case} {key}");
            }
        }
    }
}

#[test]
fn tcp_is_as_sections_5_6_and_5_7_have_it() {
    for variant in rfc8867::case("5.6").expect("a case").variants {
        let scenario = scenario("5.6", variant.name);
        let flow = scenario.flows.iter().find(|flow| flow.name == "tcp").expect("a connection");
        let FlowKind::Tcp(tcp) = &flow.kind else { panic!("TCP") };
        assert_eq!((flow.start, tcp.stop), (Span::ZERO, Some(Span::from_secs(119))));
        assert!(variant.name.contains(tcp.name()), "{}: {}", variant.name, tcp.name());
    }
    for (variant, connections) in [("one-connection", 1), ("30-connections", 30)] {
        let scenario = scenario("5.7", variant);
        let flow = scenario.flows.iter().find(|flow| flow.name == "web").expect("short flows");
        let FlowKind::Tcp(tcp) = &flow.kind else { panic!("TCP") };
        let web = tcp.web.expect("web traffic");
        assert_eq!((web.flows, web.on, web.connections, tcp.name()), (10, 2, connections, "reno"));
        assert_eq!((web.smallest, web.largest), (Size::from_bytes(30_000), Size::from_bytes(50_000)));
        assert_eq!(web.idle, Span::from_secs(10));
    }
}

#[test]
fn jitter_is_where_a_variant_is_named_after_it_and_nowhere_else() {
    for (case, variant, scenario) in all() {
        let expected =
            if variant.ends_with("-jitter") { Jitter::HalfNormal(Span::from_millis(5)) } else { Jitter::None };
        let narrow = scenario.links.iter().filter(|link| matches!(link.forward.capacity, Capacity::Rate(_)));
        for link in narrow {
            assert_eq!((link.forward.jitter, link.back.jitter), (expected, expected), "{case} {variant}");
        }
    }
}

/// RFC 8867, Sec. 6.2: "running all the basic test cases with … ECN … enabled".
#[test]
fn the_cases_with_ecn_are_the_basic_ones_with_another_queue() {
    let parsed = |text: &str| -> toml::Table { toml::from_str(text).expect("TOML") };
    let variants = rfc8867::case("6.2").expect("a case").variants;
    assert_eq!(variants.len(), 16);
    for variant in variants {
        let (of, aqm) = variant.name.split_once('-').expect("a case and a queue");
        let first = rfc8867::case(of).expect("a basic case").variants[0];
        let (mut with, mut without) = (parsed(variant.text), parsed(first.text));
        let sections = |table: &mut toml::Table, key: &str, change: &mut dyn FnMut(&mut toml::Table)| {
            let list = table.get_mut(key).and_then(toml::Value::as_array_mut).expect("sections");
            for section in list {
                change(section.as_table_mut().expect("a table"));
            }
        };
        let ecn = if aqm == "codel" { "ect0" } else { "ect1" };
        sections(&mut with, "flow", &mut |flow| {
            let is_session = flow.contains_key("controller");
            let found = flow.remove("ecn");
            let found = found.as_ref().and_then(toml::Value::as_str);
            assert_eq!(found, is_session.then_some(ecn), "{}", variant.name);
        });
        let mut managed = 0;
        sections(&mut with, "link", &mut |link| {
            let found = link.remove("aqm");
            link.remove("queue");
            managed += usize::from(found.is_some_and(|found| found["name"].as_str() == Some(aqm)));
        });
        assert_eq!(managed, 1, "{}", variant.name);
        sections(&mut without, "link", &mut |link| drop(link.remove("queue")));
        for table in [&mut with, &mut without] {
            table.remove("name");
            table.remove("description");
        }
        assert_eq!(with, without, "{}", variant.name);
    }
}

/// RFC 8867, Sec. 6.1: the flows of Sec. 5.4 have the priorities 2, 1 and 1.
#[test]
fn priorities_are_given_to_the_flows_of_section_5_4() {
    let table: toml::Table = toml::from_str(&item("6.1", "50ms").text).expect("TOML");
    let priorities = |flow: &toml::Value| flow["controller"]["priority"].as_integer();
    let flows = table["flow"].as_array().expect("flows");
    assert_eq!(flows.iter().map(priorities).collect::<Vec<_>>(), [Some(2), Some(1), Some(1)]);
    assert_eq!(timelines(&scenario("6.1", "50ms")), timelines(&scenario("5.4", "50ms")));
}

fn plan(threads: usize) -> Plan {
    Plan { seed: 1, runs: 2, aqm: None, execution: Some(threads).into() }
}

/// Returns case 5.6, shortened to 12 s.
fn short() -> Item {
    let set = Override::set;
    let overrides = vec![
        set("duration", "12 s"),
        set("flow.tcp.stop", "11 s"),
        set("flow.S1.start", "2 s"),
        set("flow.S1.pause.0.at", "11 s"),
    ];
    Item { overrides, ..item("5.6", "300ms-reno") }
}

fn ran(items: &[Item], controllers: &[&str], plan: &Plan) -> Result<SuiteResult, SuiteError> {
    let controllers: Vec<_> = controllers.iter().map(|name| (*name).to_owned()).collect();
    suite::run("rfc8867", items, (&Catalogue::default(), &controllers), plan, &|_| {})
}

/// Other programs read the results by these names. If the test fails, they cannot read the results any more.
#[test]
fn the_json_has_its_fixed_names_with_a_mean_and_its_interval_each() {
    let result = ran(&[short()], &["ap", "tfrc"], &plan(1)).expect("it runs");
    let json: Value = serde_json::from_str(&result.to_json()).expect("JSON");
    assert_eq!(json["suite"], "rfc8867");
    let results = json["results"].as_array().expect("a list");
    assert_eq!(results.iter().map(|found| &found["controller"]).collect::<Vec<_>>(), ["ap", "tfrc"]);
    let estimate = |value: &Value, name: &str| {
        let ends = ["lo", "mean", "hi"].map(|key| value[key].as_f64().unwrap_or_else(|| panic!("{name}: {value}")));
        assert!(ends.is_sorted(), "{name}: {value}");
    };
    for found in results {
        for (key, expected) in [
            ("case", "5.6".into()),
            ("variant", "300ms-reno".into()),
            ("world", "sim".into()),
            ("implementation", "ours".into()),
            ("version", equipoise_lab::VERSION.into()),
            ("seed", Value::from(1)),
            ("runs", Value::from(2)),
        ] {
            assert_eq!(found[key], expected, "{key}");
        }
        assert!(found["parameters"]["max_rate"] == "1.5 Mbit/s", "{}", found["parameters"]);
        for key in [
            "utilisation",
            "queueing_mean_s",
            "queueing_p95_s",
            "queueing_calm_mean_s",
            "queueing_calm_p95_s",
            "loss",
            "tcp_ratio",
            "feedback_share",
        ] {
            estimate(&found[key], key);
        }
        let flows = found["flows"].as_array().expect("flows");
        let names: Vec<_> = flows.iter().map(|flow| (flow["name"].as_str(), flow["kind"].as_str())).collect();
        let of = |name, kind| (Some(name), Some(kind));
        assert_eq!(names, [of("S1", "media"), of("S1 (audio)", "audio"), of("tcp", "tcp")]);
        for flow in flows {
            for key in ["mean_rate_bps", "loss", "queueing_mean_s", "queueing_p95_s"] {
                estimate(&flow[key], key);
            }
            let is_tcp = flow["kind"] == "tcp";
            for key in ["queueing_p99_s", "frame_delay_p95_s", "freezes"] {
                assert!(flow.get(key).is_some(), "{key} is there, be it null");
                assert!(key.starts_with("queueing") || flow[key].is_null() == is_tcp, "{key}: {flow}");
            }
        }
        let phases = found["phases"].as_array().expect("phases");
        let bounds: Vec<_> = phases.iter().map(|phase| (phase["start_s"].as_f64(), phase["end_s"].as_f64())).collect();
        assert_eq!(bounds, [(0.0, 2.0), (2.0, 11.0), (11.0, 12.0)].map(|(from, to)| (Some(from), Some(to))));
        assert_eq!(phases[1]["capacity_bps"], 2e6);
        for key in ["utilisation", "queueing_mean_s", "queueing_p95_s"] {
            estimate(&phases[1][key], key);
        }
        for key in ["convergence_s", "jain"] {
            assert!(phases[1].get(key).is_some(), "{key}");
        }
        assert!(phases[1]["jain"].is_null(), "one flow has no share to compare");
    }
    let read: SuiteResult = serde_json::from_value(json).expect("its own form");
    assert_eq!((read.results.len(), read.to_markdown()), (2, result.to_markdown()));
}

/// If this test fails, a mean of the suite differs from the mean over single runs of the scenario, the rate of audio is
/// wrong, or the time series of a flow do not add up to the rate that the flow received.
#[test]
fn the_means_are_those_of_the_runs_themselves() {
    let item = short();
    let result = ran(std::slice::from_ref(&item), &["ap"], &plan(2)).expect("it runs");
    let scenario = Scenario::parse_with(&item.text, &item.overrides).expect("a right scenario");
    let runs = [1, 2].map(|seed| equipoise_lab::sim::simulate(&scenario, seed, &mut |_| {}).expect("it runs"));
    let mean = |of: &dyn Fn(&equipoise_lab::result::Run) -> f64| f64::midpoint(of(&runs[0]), of(&runs[1]));
    let found = &result.results[0];
    let utilisation = mean(&|run| run.media.as_ref().and_then(|media| media.utilisation).expect("measured"));
    // The suite keeps six significant digits.
    assert!((found.metric("utilisation").expect("measured").mean / utilisation - 1.0).abs() < 1e-5);
    let rate = mean(&|run| run.flows[0].mean_rate_bps.expect("measured"));
    assert!((found.flows[0].metric("mean_rate_bps").expect("measured").mean / rate - 1.0).abs() < 1e-5);
    // From 2 s to 11 s, the audio source sends 50 packets/s. Each packet has 50 bytes of payload, plus headers. The
    // mean rate of the audio is computed over the 10 s from the session's start to the end of the run.
    let audio = found.flows[1].metric("mean_rate_bps").expect("measured").mean * 10.0;
    assert!((450.0 * 8.0 * 78.0..450.0 * 8.0 * 110.0).contains(&audio), "{audio}");
    let over_time: f64 = found.series[0].seconds.iter().filter_map(|second| second.rate_bps).sum();
    let received = mean(&|run| run.flows[0].delivered_rate_bps.expect("measured") * 10.0);
    assert!((over_time / received - 1.0).abs() < 0.02, "{over_time} {received}");
}

#[test]
fn the_bytes_are_the_same_for_any_number_of_threads() {
    let items = [short(), Item { variant: "again".to_owned(), ..short() }];
    let all = |threads| {
        let result = ran(&items, &["ap", "rap"], &plan(threads)).expect("it runs");
        [result.to_json(), result.to_csv(), report::suite_html(&result)]
    };
    assert!(all(1) == all(2));
}

#[test]
fn what_a_law_cannot_run_is_said_and_no_error_unless_nothing_runs() {
    let items = [short(), item("6.1", "50ms")];
    let result = ran(&items, &["ap"], &plan(1)).expect("one of both runs");
    assert_eq!(result.results.len(), 1);
    assert_eq!(result.not_run.len(), 1);
    assert_eq!(result.not_run[0].reason, "ap has no parameter `priority`");
    let page = report::suite_html(&result);
    let markdown = result.to_markdown();
    assert!(
        markdown.starts_with("| case | ap |\n|---|---|\n| 5.6 300ms-reno | ")
            && markdown.ends_with("| 6.1 50ms | – |\n")
    );
    assert!(page.contains("Not run") && page.contains("ap has no parameter `priority`"));
    assert!(matches!(ran(&items[1..], &["ap"], &plan(1)), Err(SuiteError::NothingRuns { .. })));
    let unknown = ran(&items, &["ap", "tfcr"], &plan(1)).expect_err("no controller").to_string();
    assert!(unknown.contains("`tfcr`; a similar one exists: `tfrc`"), "{unknown}");
    assert!(matches!(ran(&items, &[], &plan(1)), Err(SuiteError::NoController)));
}

/// If this test fails, a live result is listed under a wrong variant or controller, or cannot be distinguished from a
/// simulated result.
#[test]
fn live_results_stand_beside_the_simulated_ones_of_the_same_variant_and_controller() {
    let items = [short(), Item { variant: "again".to_owned(), ..short() }];
    let mut result = ran(&items, &["ap", "tfrc"], &plan(1)).expect("it runs");
    let alone = [report::suite_html(&result), result.to_json()];
    let machine = Machine { stalled_s: 0.125, packets_lost: 3, late_p99_s: Some(0.098_76), late_max_s: None };
    let live = CaseResult { world: World::Live, runs: 1, machine: Some(machine), ..result.results[0].clone() };
    result.results.insert(1, live);
    result.live_runs = Some(1);
    result.not_run.push(NotRun {
        case: "5.6".to_owned(),
        title: String::new(),
        variant: "300ms-reno".to_owned(),
        controller: "tfrc".to_owned(),
        worlds: vec![World::Live],
        reason: "the kernel has no reno".to_owned(),
    });
    let labels: Vec<_> = result.rows().iter().map(|row| (row.label(), row.results.len())).collect();
    assert_eq!(labels, [("300ms-reno", 2), ("300ms-reno, live", 1), ("again", 2)].map(|(a, b)| (a.to_owned(), b)));
    assert_eq!(result.results.iter().take(3).map(CaseResult::label).collect::<Vec<_>>(), ["ap", "ap, live", "tfrc"]);
    assert!(result.to_markdown().contains("| 5.6 300ms-reno, live | "), "{}", result.to_markdown());
    assert_eq!(result.seeds(), "simulated with 2 runs on the seeds 1 to 2 each, live with 1 run on the seed 1 each");
    assert_eq!(result.not_run[0].name(), "5.6/300ms-reno under tfrc, live");
    let csv = result.to_csv();
    assert!(csv.contains("rfc8867,5.6,300ms-reno,live,ap,ours,run,,,,,utilisation,"), "{csv}");
    let page = report::suite_html(&result);
    for words in
        ["5.6</a> 300ms-reno, live", "ap, live", "The machine in live runs", ">98.76</td>", "the kernel has no reno"]
    {
        assert!(page.contains(words) && !alone[0].contains(words), "{words}");
    }
    let json: Value = serde_json::from_str(&result.to_json()).expect("JSON");
    assert_eq!((&json["live_runs"], &json["not_run"][0]["worlds"][0]), (&Value::from(1), &Value::from("live")));
    assert_eq!(json["results"][1]["machine"]["packets_lost"], 3);
    assert!(["live", "machine", "worlds"].iter().all(|key| !alone[1].contains(&format!("\"{key}"))), "{}", alone[1]);
    let read: SuiteResult = serde_json::from_value(json).expect("its own form");
    assert_eq!(read.not_run, result.not_run);
}

/// Runs 12 s of case 5.6 of RFC 8867 in network namespaces, with a TCP connection of the kernel. If the test fails,
/// live results have different metrics than simulated results, or wrong values.
#[test]
#[ignore = "real time: 14 s"]
fn a_case_runs_live_beside_its_simulation_with_the_waits_of_the_emulated_queue() {
    let items = [short(), item("6.1", "50ms")];
    let controllers = ["ap".to_owned()];
    let law = (&Catalogue::default(), &controllers[..]);
    let plan = Plan { runs: 1, ..plan(1) };
    if let Err(error) = suite::live::check() {
        assert!(matches!(error, SuiteError::Live(_)), "{error}");
        println!("skipped: network namespaces: ip netns add needs root");
        return;
    }
    let mut result = suite::run("rfc8867", &items, law, &plan, &|_| {}).expect("it runs");
    let mut steps = Vec::new();
    let stop = AtomicBool::new(false);
    suite::live::run_beside(&mut result, &items, law, &plan, &stop, &mut |step| steps.push((step.number, step.share)))
        .expect("it runs");
    assert_eq!(result.results.iter().map(|found| found.world).collect::<Vec<_>>(), [World::Sim, World::Live]);
    assert_eq!(result.not_run.len(), 1, "6.1 is refused for both worlds at once");
    assert_eq!(result.not_run[0].worlds, [World::Sim, World::Live]);
    assert!(steps.iter().all(|&(number, share)| number == 0 && (0.0..=1.0).contains(&share)));
    let [simulated, live] = &result.results[..] else { panic!("two results") };
    for (key, found) in &simulated.metrics {
        assert!(found.is_none() || live.metric(key).is_some(), "{key} is missing live");
    }
    // By the end, TCP has filled the queue of 300 ms and has lost packets.
    let p95 = live.metric("queueing_p95_s").expect("measured").mean;
    assert!((0.05..0.32).contains(&p95), "{p95}");
    let used = live.metric("utilisation").expect("measured").mean;
    assert!((0.05..1.1).contains(&used), "{used}");
    let names = |found: &CaseResult| found.flows.iter().map(|flow| (flow.name.clone(), flow.kind)).collect::<Vec<_>>();
    assert_eq!(names(simulated), names(live));
    for (one, other) in simulated.flows.iter().zip(&live.flows) {
        for key in ["mean_rate_bps", "queueing_mean_s", "frame_delay_p95_s", "goodput_bps"] {
            assert_eq!(one.metric(key).is_some(), other.metric(key).is_some(), "{key} of {}", one.name);
        }
    }
    let share = live.metric("feedback_share").expect("measured").mean;
    assert!((0.0..0.5).contains(&share) && share > 0.0, "{share}");
    assert!(live.machine.is_some_and(|machine| machine.late_p99_s.is_some()));
    stop.store(true, Ordering::Relaxed);
    suite::live::run_beside(&mut result, &items[..1], law, &plan, &stop, &mut |_| {}).expect("it ends");
    assert_eq!(result.not_run[1].reason, "the suite was interrupted");
    assert_eq!(result.not_run[1].worlds, [World::Live]);
}

#[test]
fn the_page_has_every_case_and_fetches_nothing() {
    let result = ran(&[short()], &["ap", "tfrc"], &plan(2)).expect("it runs");
    let page = report::suite_html(&result);
    for words in
        ["5.6 Beside a long TCP flow", "Expected: ", "300ms-reno", "Wait in queues", "Delay of frames", "tcp (goodput)"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("<svg class=\"plot\"").count(), 4 + 2, "four charts, and the flows of each controller");
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/").count());
    assert!(!page.contains("src=") && page.matches("<script").count() == 1);
}

#[test]
fn csv_has_a_line_a_metric_with_the_same_columns() {
    let result = ran(&[short()], &["ap"], &plan(1)).expect("it runs");
    let csv = result.to_csv();
    let columns = csv.lines().next().expect("a head").split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns), "no cell here has a comma");
    assert!(csv.lines().any(|line| line.contains(",phase,,,2,11,capacity_bps,2000000,,,2")), "{csv}");
    assert!(csv.lines().any(|line| line.contains(",flow,tcp,tcp,,,goodput_bps,")), "{csv}");
}

/// Two traces: one of 12 Mbit/s (an opportunity of 1500 bytes every millisecond), and one with steps of 2 and 1 Mbit/s.
#[test]
fn a_folder_of_traces_is_a_suite_with_a_row_a_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("wide.down"), "1\n").expect("writable");
    std::fs::write(folder.path().join("steps.csv"), "0,2\n5,1\n").expect("writable");
    let settings = traces::Settings { duration: Span::from_secs(10), max_rate: Rate::from_bps(3_000_000) };
    let items = traces::items(folder.path(), &settings).expect("two traces");
    let controllers = ["ap".to_owned()];
    let aqm = Some(suite::Aqm::Codel);
    for plan in [plan(1), Plan { aqm, ..plan(1) }] {
        let result = suite::run("traces", &items, (&Catalogue::default(), &controllers), &plan, &|_| {});
        let result = result.expect("they run");
        let cases: Vec<_> = result.results.iter().map(|found| found.case.as_str()).collect();
        assert_eq!(cases, ["steps.csv", "wide.down"]);
        let wide = &result.results[1];
        assert_eq!(wide.capacity.len(), 10);
        assert!(wide.capacity.iter().all(|bps| (bps - 12e6).abs() < 0.02e6), "{:?}", wide.capacity);
        assert_eq!(wide.parameters["max_rate"], "3 Mbit/s");
        assert!(report::suite_html(&result).contains("Media over recorded links"));
    }
}
