//! Every scenario of the project is right, and every wrong one is refused with line, key, value and remedy.

use std::fs;
use std::path::Path;

use equipoise::units::{Rate, Span};
use equipoise_lab::scenario::Scenario;

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

/// The whole chain of an error's messages.
fn refusal(text: &str) -> String {
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
    assert_eq!(scenario.links[0].config.rate.at(Span::from_secs(10)), Rate::from_bps(12_000_000));
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
    for (folder, prefix) in [(folder.clone(), ""), (folder.join("waki2013"), "waki2013-")] {
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
    assert!(count >= 13, "{count}");
}

/// What is written, what stands there instead, and what the message must hold: line, key, value, remedy.
const WRONG: &[(&str, &str, &[&str])] = &[
    ("rate = \"15 Mbit/s\"", "rate = \"15\"", &["line 7", "rate", "\"15\"", "has no unit", "15 Mbit/s"]),
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
        &["line 17", "no such controller; there are: ap, ap-printed, ap-load, aimd, cbr"],
    ),
    ("report_interval = \"1 s\"\n", "", &["line 13", "needs a `report_interval`"]),
    ("report_interval = \"1 s\"", "report_interval = \"1 ms\"", &["line 16", "\"1 ms\"", "must be 10 ms or more"]),
    ("kind = \"poisson\"", "kind = \"pareto\"", &["line 23", "\"pareto\"", "poisson, constant or on-off"]),
    ("kind = \"poisson\"", "kind = \"on-off\"", &["line 23", "needs `on` and `off`"]),
    ("name = \"background\"", "name = \"media\"", &["line 20", "\"media\"", "another flow of this name"]),
    ("duration = \"40 s\"", "duration = ", &["line 2"]),
];

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

#[test]
fn a_flow_is_either_controlled_or_background() {
    let both = GOOD.replacen(
        "[[flow]]\nname = \"background\"",
        "source = { kind = \"poisson\", rate = \"1 Mbit/s\" }\n\n[[flow]]\nname = \"background\"",
        1,
    );
    assert!(refusal(&both).contains("either `controller` and `report_interval`, or `source`"));
    let nothing = GOOD.split("[[flow]]").next().expect("a beginning");
    assert!(refusal(nothing).contains("1 to 256 `[[flow]]` sections"));
}
