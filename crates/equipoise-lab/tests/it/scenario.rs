//! Tests of scenario files. Every scenario of the project is valid, and every invalid scenario is refused with line,
//! key, value and remedy.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use equipoise::units::{Rate, Span};
use equipoise_lab::DEMO;
use equipoise_lab::live::{self, LiveError, Setup, Stage};
use equipoise_lab::scenario::{FlowKind, OverBudget, Scenario, ScenarioError};
use equipoise_lab::sim::{self, SimError};

const GOOD: &str = r#"name = "test"
duration = "40 s"
warm_up = "10 s"

[[link]]
name = "bottleneck"
rate = "15 Mbit/s"
delay = "5 ms"
queue = "1000 packets"
steps = [{ at = "10 s", rate = "12 Mbit/s" }]

[[flow]]
name = "media"
path = ["bottleneck"]
packet_size = "1000 B"
report_interval = "1 s"
controller = { name = "ap", target = "8.2 ms", b = 300, min_rate = "0.1 Mbit/s", max_rate = "15 Mbit/s" }

[[flow]]
name = "background"
path = ["bottleneck"]
packet_size = "1000 B"
source = { kind = "poisson", rate = "9 Mbit/s", steps = [{ at = "20 s", rate = "10.5 Mbit/s" }] }
"#;

/// Returns the whole chain of an error's messages.
pub(crate) fn refusal(text: &str) -> String {
    let error = Scenario::parse(text).expect_err("wrong on purpose");
    let mut message = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        message.push_str(&format!(" / {cause}"));
        source = cause.source();
    }
    message
}

#[test]
fn a_right_scenario_says_what_was_meant() {
    let scenario = Scenario::parse(GOOD).expect("a right scenario");
    assert_eq!(scenario.duration, Span::from_secs(40));
    assert_eq!(scenario.flows[0].target(), Some(Span::from_micros(8200)));
    assert_eq!(
        scenario.links[0].forward.capacity.rate().expect("a rate").at(Span::from_secs(10)),
        Rate::from_bps(12_000_000)
    );
    assert_eq!(scenario.steps_on(&[0]), [Span::from_secs(10), Span::from_secs(20)]);
    let explained = scenario.explain();
    for words in ["background 9 Mbit/s of 15 Mbit/s, 60 %", "b = 300", "40 control intervals", "unrest = 0.08"] {
        assert!(explained.contains(words), "{words} is missing from {explained}");
    }
}

#[test]
fn every_scenario_of_the_project_parses_and_explains() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut count = 0;
    for (folder, prefix) in [
        (folder.clone(), ""),
        (folder.join("waki2013"), "waki2013-"),
        (folder.join("subramanya2003"), "subramanya2003-"),
        (folder.join("asvarujanon2014"), "asvarujanon2014-"),
        (folder.join("tobe1999"), "tobe1999-"),
    ] {
        let files = fs::read_dir(folder).expect("the folder of scenarios").map(|entry| entry.expect("readable").path());
        for path in files.filter(|path| path.is_file()) {
            let scenario = Scenario::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
            assert_eq!(scenario.name, format!("{prefix}{stem}"));
            assert!(scenario.text.starts_with('#'), "{}: the head says what it shows", path.display());
            assert!(scenario.explain().contains("flows"));
            count += 1;
        }
    }
    assert!(count >= 28, "{count}");
}

/// Each item is a part of the file, the text that replaces it, and texts that the error message must contain: line,
/// key, value and remedy.
const WRONG: &[(&str, &str, &[&str])] = &[
    ("rate = \"15 Mbit/s\"", "rate = \"15\"", &["line 7, column 8", "rate", "\"15\"", "has no unit", "15 Mbit/s"]),
    ("rate = \"15 Mbit/s\"", "rate = 15", &["line 7", "rate = 15", "has no unit", "15 Mbit/s"]),
    ("rate = \"15 Mbit/s\"", "rate = \"15 ms\"", &["line 7", "`ms` is not a unit of a rate", "Mbit/s"]),
    ("rate = \"15 Mbit/s\"", "rate = \"15 mbps\"", &["line 7", "megabytes", "write Mbit/s"]),
    ("rate = \"15 Mbit/s\"\n", "rat = \"15 Mbit/s\"\n", &["line 7", "unknown field `rat`", "`rate`"]),
    ("name = \"bottleneck\"\n", "", &["missing field `name`"]),
    ("queue = \"1000 packets\"", "queue = \"many packets\"", &["line 9", "queue", "1000 packets"]),
    ("delay = \"5 ms\"", "delay = \"-5 ms\"", &["line 8", "delay = \"-5 ms\"", "must not be negative"]),
    ("duration = \"40 s\"", "duration = \"0 s\"", &["line 2", "duration = \"0 s\"", "above zero"]),
    ("warm_up = \"10 s\"", "warm_up = \"40 s\"", &["line 3", "warm_up = \"40 s\"", "below the duration, 40 s"]),
    ("at = \"10 s\"", "at = \"50 s\"", &["line 10", "at = \"50 s\"", "before the end of the run at 40 s"]),
    (
        "path = [\"bottleneck\"]",
        "path = [\"bottle\"]",
        &["line 14", "path = \"bottle\"", "no such link; there are: bottleneck"],
    ),
    ("path = [\"bottleneck\"]", "path = [\"bottleneck\", \"bottleneck\"]", &["line 14", "takes each link once"]),
    ("path = [\"bottleneck\"]", "path = []", &["line 13", "at least one link"]),
    ("packet_size = \"1000 B\"", "packet_size = \"9000 B\"", &["line 15", "\"9000 B\"", "between 100 B", "1500 B"]),
    (
        "target = \"8.2 ms\"",
        "target = \"4 ms\"",
        &["line 17", "target = \"4 ms\"", "propagation delay of 5 ms", "above it"],
    ),
    ("target = \"8.2 ms\", ", "", &["line 17", "needs `target`"]),
    (
        "min_rate = \"0.1 Mbit/s\"",
        "min_rate = \"20 Mbit/s\"",
        &["line 17", "min_rate = \"20 Mbit/s\"", "above `max_rate`"],
    ),
    ("b = 300", "b = -1", &["line 17", "b = -1", "between 0.001 and 1000000"]),
    ("b = 300", "beta = 300", &["line 17", "beta = 300", "not a parameter of ap", "target, b,"]),
    (
        "name = \"ap\"",
        "name = \"pa\"",
        &[
            "line 17",
            "no such controller; there are: ap, ap-printed, ap-load, aimd, aimd-printed, lda, ldaf, rap, tfrc, equipoise, gcc, cbr, tq",
        ],
    ),
    (
        "{ name = \"ap\", target = \"8.2 ms\", b = 300, min_rate = \"0.1 Mbit/s\", max_rate = \"15 Mbit/s\" }",
        "{ name = \"tq\" }",
        &[
            "line 13",
            "needs reports on the receiver's playout buffer",
            "provides interval summaries, feedback on single packets, packet pairs",
        ],
    ),
    ("report_interval = \"1 s\"\n", "", &["line 13", "needs a `report_interval`"]),
    ("report_interval = \"1 s\"", "report_interval = \"1 ms\"", &["line 16", "\"1 ms\"", "must be 10 ms or more"]),
    (
        "kind = \"poisson\"",
        "kind = \"pareto\"",
        &["line 23", "\"pareto\"", "no such traffic model; there are: poisson, constant, on-off"],
    ),
    ("kind = \"poisson\"", "kind = \"on-off\"", &["line 23", "on-off needs `on`: mean length of a burst"]),
    ("name = \"background\"", "name = \"media\"", &["line 20", "\"media\"", "another flow of this name"]),
    ("duration = \"40 s\"", "duration = ", &["line 2"]),
];

/// If this test fails, time series are kept for more runs than memory allows, or for fewer than possible.
#[test]
fn long_scenarios_keep_the_series_of_fewer_runs() {
    let with = |text: &str| Scenario::parse(text).expect("a right scenario").runs_with_series();
    assert_eq!(with(GOOD), 1000);
    assert_eq!(with(&GOOD.replace("\"40 s\"", "\"40000 s\"")), 12);
    let longest =
        GOOD.replace("\"40 s\"", "\"40000 s\"").replace("report_interval = \"1 s\"", "report_interval = \"20 ms\"");
    assert_eq!(with(&longest), 1);
}

#[test]
fn what_is_wrong_is_named_with_line_key_value_and_remedy() {
    for (right, wrong, expected) in WRONG {
        assert!(GOOD.contains(right), "{right} does not stand in the scenario");
        let message = refusal(&GOOD.replacen(right, wrong, 1));
        for words in *expected {
            assert!(message.contains(words), "`{wrong}` gives `{message}`, without `{words}`");
        }
    }
}

/// If this test fails, an interval of zero is accepted. The simulator's time would never advance with such an interval.
#[test]
fn a_bandwidth_known_every_no_time_is_refused_where_it_stands() {
    let tcp = |interval: &str| {
        let bandwidth = format!("bandwidth = {{ kind = \"known\", interval = \"{interval}\" }}");
        let flow = "[[flow]]\nname = \"tcp\"\npath = [\"bottleneck\"]\npacket_size = \"1500 B\"\nwindow = { name = \"reno\" }\n";
        format!("{GOOD}\n{flow}{bandwidth}\n")
    };
    assert!(Scenario::parse(&tcp("1 ns")).is_ok());
    let message = refusal(&tcp("0 ms"));
    let line = tcp("0 ms").lines().count();
    assert!(message.contains(&format!("line {line}, column 42: interval = \"0 ms\": must be above zero")), "{message}");
}

const CONTENT: &str = r#"name = "test"
duration = "40 s"

[[link]]
name = "access"
rate = "15 Mbit/s"
delay = "5 ms"
queue = "1000 packets"

[[link]]
name = "bottleneck"
rate = "15 Mbit/s"
delay = "5 ms"
queue = "1000 packets"

[[flow]]
name = "media"
path = ["access", "bottleneck"]
packet_size = "1000 B"
report_interval = "1 s"
controller = { name = "tq" }
playout = "bottleneck"
source = { kind = "video", rate = "1 Mbit/s", length = "30 s", peak = 5, cv = 0.5, adapt = "quantise" }

[[flow]]
name = "file"
path = ["access", "bottleneck"]
packet_size = "1000 B"
window = { name = "reno" }
source = { kind = "constant", rate = "1 Mbit/s", length = "30 s" }
"#;

#[test]
fn content_and_playout_say_what_was_meant_or_are_refused() {
    let scenario = Scenario::parse(CONTENT).expect("a right scenario");
    assert_eq!((scenario.flows[0].network(), scenario.flows[0].playout()), (&[0][..], Some(1)));
    assert_eq!(scenario.flows[1].network(), [0, 1]);
    let explained = scenario.explain();
    for words in
        ["live video: 30 s of 1 Mbit/s: synthetic video", "has to send 30 s", "quantised", "in front of bottleneck"]
    {
        assert!(explained.contains(words), "{words} is missing from {explained}");
    }
    let wrong: &[(&str, &str, &[&str])] = &[
        ("playout = \"bottleneck\"", "playout = \"access\"", &["line 22", "not its first"]),
        ("playout = \"bottleneck\"", "playout = \"nowhere\"", &["line 22", "a link of the path"]),
        ("peak = 5, cv = 0.5", "peak = 5", &["line 23", "either a `trace`, or `peak` and `cv`"]),
        ("cv = 0.5", "cv = 5.0", &["line 23", "cv = 5.0", "they can by"]),
        ("cv = 0.5", "cv = 0.5, on = \"1 s\"", &["line 23", "a video source does not have this; it has `kind`"]),
        ("cv = 0.5", "cv = 0.5, pattern = \"IPX\"", &["line 23", "made of I, P and B"]),
        (
            "\"video\", rate = \"1 Mbit/s\", length = \"30 s\"",
            "\"video\", rate = \"1 Mbit/s\"",
            &["line 23", "needs a `length`"],
        ),
        ("kind = \"constant\"", "kind = \"constant\", peak = 3", &["line 30", "a video source has"]),
        ("kind = \"constant\"", "kind = \"poisson\"", &["line 30", "constant or video"]),
        (
            "window = { name = \"reno\" }",
            "window = { name = \"reno\" }\ntcp = { rate = \"1 Mbit/s\" }",
            &["line 30", "neither `transfer` nor `rate`"],
        ),
        (
            "window = { name = \"reno\" }",
            "playout = \"bottleneck\"\nwindow = { name = \"reno\" }",
            &["line 29", "only a flow with a `controller`"],
        ),
    ];
    for (right, wrong, expected) in wrong {
        assert!(CONTENT.contains(right), "{right} does not stand in the scenario");
        let message = refusal(&CONTENT.replacen(right, wrong, 1));
        for words in *expected {
            assert!(message.contains(words), "`{wrong}` gives `{message}`, without `{words}`");
        }
    }
}

const PATHS: &str = r#"name = "test"
duration = "40 s"

[[link]]
name = "lte"
rate = "2 Mbit/s"
delay = "25 ms"
queue = "1 s"

[[link]]
name = "wimax"
rate = "5 Mbit/s"
delay = "40 ms"
queue = "200 ms"

[[path]]
name = "lte"
links = ["lte"]
down = [{ at = "10 s", until = "20 s" }, { at = "30 s" }]

[[path]]
name = "wimax"
links = ["wimax"]

[[flow]]
name = "call"
paths = ["lte", "wimax"]
packet_size = "500 B"
report_interval = "1 s"
controller = { name = "cbr", rate = "1.5 Mbit/s" }
scheduler = { name = "single", path = 1 }
"#;

#[test]
fn several_paths_say_what_was_meant_or_are_refused() {
    let scenario = Scenario::parse(PATHS).expect("a right scenario");
    let names: Vec<_> = scenario.paths_of(&scenario.flows[0]).map(|path| path.name.as_str()).collect();
    assert_eq!((names, scenario.flows[0].path.as_slice()), (vec!["lte", "wimax"], &[0, 1][..]));
    let FlowKind::Multipath(flow) = &scenario.flows[0].kind else { panic!("several paths") };
    assert_eq!(flow.period, Span::from_secs(5), "the paper's, if none is given");
    let explained = scenario.explain();
    for words in
        ["taken away from 10 s to 20 s", "from 30 s on", "the paths 0 lte, 1 wimax", "by `single`", "8 periods"]
    {
        assert!(explained.contains(words), "{words} is missing from {explained}");
    }
    let wrong: &[(&str, &str, &[&str])] = &[
        ("[\"lte\", \"wimax\"]", "[\"lte\", \"wifi\"]", &["line 27", "\"wifi\"", "there are: lte, wimax"]),
        ("[\"lte\", \"wimax\"]", "[]", &["line 27", "paths = []", "1 to 16 paths"]),
        ("[\"lte\", \"wimax\"]", "[\"lte\", \"lte\"]", &["line 27", "already has this path"]),
        ("links = [\"wimax\"]", "links = [\"lte\"]", &["line 27", "the same links as lte"]),
        ("links = [\"wimax\"]", "links = [\"wifi\"]", &["line 23", "links = \"wifi\"", "no such link"]),
        ("links = [\"wimax\"]", "links = []", &["line 22", "at least one link"]),
        ("name = \"wimax\"\nlinks", "name = \"lte\"\nlinks", &["line 22", "another path of this name"]),
        ("until = \"20 s\"", "until = \"5 s\"", &["line 19", "until = \"5 s\"", "after the step before it, at 10 s"]),
        ("{ at = \"30 s\" }", "{ at = \"15 s\" }", &["line 19", "after the step before it, at 20 s"]),
        ("{ at = \"30 s\" }", "{ at = \"50 s\" }", &["line 19", "before the end of the run"]),
        ("path = 1", "path = 2", &["line 31", "path = 2", "2 paths, which count from 0"]),
        ("\"single\", path = 1", "\"single\"", &["line 31", "needs `path`"]),
        ("\"single\", path = 1", "\"all\"", &["line 31", "there are: ap, single, equal, min-delay"]),
        ("name = \"single\", path = 1", "probe = \"1 kbit/s\"", &["line 26", "a scheduler needs a `name`"]),
        ("scheduler = { name = \"single\", path = 1 }", "", &["line 26", "has a `controller` for its total"]),
        (
            "scheduler = {",
            "period = \"0.5 s\"\nscheduler = {",
            &["line 31", "must be the report interval, 1 s, or more"],
        ),
        ("scheduler = {", "path = [\"lte\"]\nscheduler = {", &["line 26", "either a `path`"]),
        ("paths = [\"lte\", \"wimax\"]", "path = [\"lte\"]", &["line 26", "scheduler", "only a flow with `paths`"]),
        ("paths = [\"lte\", \"wimax\"]", "", &["line 26", "either a `path`"]),
        ("scheduler = {", "playout = \"wimax\"\nscheduler = {", &["line 31", "no playout buffer"]),
        (
            "scheduler = {",
            "source = { kind = \"constant\", rate = \"1 Mbit/s\", length = \"1 s\" }\nscheduler = {",
            &["line 31", "it has no `source`"],
        ),
        (
            "controller = { name = \"cbr\", rate = \"1.5 Mbit/s\" }",
            "controller = { name = \"ap\", target = \"20 ms\" }",
            &["line 30", "target = \"20 ms\"", "propagation delay of 25 ms"],
        ),
        (
            "controller = { name = \"cbr\", rate = \"1.5 Mbit/s\" }",
            "window = { name = \"reno\" }",
            &["line 27", "has a `controller` for its total"],
        ),
    ];
    for (right, wrong, expected) in wrong {
        assert!(PATHS.contains(right), "{right} does not stand in the scenario");
        let message = refusal(&PATHS.replacen(right, wrong, 1));
        for words in *expected {
            assert!(message.contains(words), "`{wrong}` gives `{message}`, without `{words}`");
        }
    }
}

#[test]
fn a_flow_is_either_controlled_or_background() {
    let both = GOOD.replacen(
        "[[flow]]\nname = \"background\"",
        "source = { kind = \"poisson\", rate = \"1 Mbit/s\" }\n\n[[flow]]\nname = \"background\"",
        1,
    );
    assert!(refusal(&both).contains("with a `controller` also encoder or audio"));
    let neither =
        GOOD.replacen("source = { kind = \"poisson\"", "report_interval = \"1 s\"\nsource = { kind = \"poisson\"", 1);
    assert!(refusal(&neither).contains("either `controller` and `report_interval`, or `window`"));
    let nothing = GOOD.split("[[flow]]").next().expect("a beginning");
    assert!(refusal(nothing).contains("1 to 256 `[[flow]]` sections"));
}

/// If this test fails, an error message quotes a whole line of a hostile file. Such a line can be megabytes long, helps
/// no one, and may disturb a terminal.
#[test]
fn errors_quote_a_line_at_most_and_cut_it_to_a_readable_length() {
    let long = "x".repeat(1_000_000);
    let head =
        "duration = \"1 s\"\n[[link]]\nname = \"l\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"9 packets\"\n";
    let flow = "[[flow]]\nname = \"f\"\npath = [\"l\"]\npacket_size = \"999 B\"\n";
    for text in [
        format!("name = \"{long}\"\n{head}{flow}"),
        format!("name = {long}"),
        format!("{long} = 1"),
        format!("name = \"n\"\nduration = \"{long}\"\n"),
        format!("name = \"n\"\n{}{flow}", head.replace("1 Mbit/s", &long)),
        format!("name = \"n\"\n{head}{flow}report_interval = \"1 s\"\ncontroller = {{ name = \"{long}\" }}\n"),
        format!(
            "name = \"n\"\n{head}{flow}report_interval = \"1 s\"\ncontroller = {{ name = \"ap\", target = \"{long}\" }}\n"
        ),
        format!(
            "name = \"n\"\n{head}{flow}report_interval = \"1 s\"\ncontroller = {{ name = \"ap\", {long} = \"1\" }}\n"
        ),
        format!("name = \"n\"\n{head}{flow}source = {{ kind = \"{long}\", rate = \"1 Mbit/s\" }}\n"),
        format!("name = \"n\"\n{head}{flow}window = {{ name = \"reno\" }}\ntcp = {{ recovery = \"{long}\" }}\n"),
    ] {
        let error = Scenario::parse(&text).expect_err("it is wrong");
        let mut words = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            words.push_str(&format!("\n{cause}"));
            source = cause.source();
        }
        assert!(words.len() < 1500, "{} bytes: {}", words.len(), words.chars().take(3000).collect::<String>());
    }
}

#[test]
fn a_text_that_is_longer_than_any_scenario_is_refused_before_it_is_parsed() {
    let flow = "[[flow]]\nname = \"f\"\npath = [\"l\"]\npacket_size = \"999 B\"\n";
    let error = Scenario::parse(&flow.repeat(200_000)).expect_err("it is too long");
    assert!(matches!(error, ScenarioError::TooLong { .. }) && error.to_string().contains("2000 kB"), "{error}");
}

#[test]
fn a_scenario_that_would_take_hours_or_all_memory_is_refused_with_its_number_and_the_key_to_change() {
    assert_eq!(Scenario::parse(DEMO).expect("a right scenario").check_budget(), Ok(()));
    let refused = |text: &str| Scenario::parse(text).expect("a right scenario").check_budget().expect_err("too much");
    // At 9000 Gbit/s, the source sends 22.5 · 10⁹ packets of 1 kB before the step of its rate.
    let error = refused(&DEMO.replace("rate = \"9 Mbit/s\"", "rate = \"9000 Gbit/s\""));
    assert!(
        matches!(&error, OverBudget::Packets { key: "source.rate", packets, .. } if *packets > 20_000_000_000),
        "{error}"
    );
    assert!(error.to_string().contains("`source.rate` of flow"), "{error}");
    let long = DEMO.replace("duration = \"40 s\"", "duration = \"9000000000 s\"");
    assert!(matches!(refused(&long), OverBudget::Packets { .. }));
    // Two flows have one interval per second for two months.
    let slow = DEMO
        .replace("0.1 Mbit/s", "1 Mbit/s")
        .replace("Mbit/s", "kbit/s")
        .replace("duration = \"40 s\"", "duration = \"5000000 s\"");
    let error = refused(&slow);
    assert!(matches!(&error, OverBudget::Intervals { .. }) && error.to_string().contains("report_interval"), "{error}");
    let slow = Scenario::parse(&slow).expect("right");
    assert!(matches!(sim::check(&slow), Err(SimError::OverBudget(_))));
    let run = live::run(&slow, &Setup::new(1, Stage::Loopback), &AtomicBool::new(false), &mut |_| {});
    assert!(matches!(run, Err(LiveError::OverBudget(_))), "{run:?}");
}
