//! Tests of overrides. An override changes the value at its path, and an override that does not fit the file is refused
//! with a valid alternative.

use std::collections::BTreeMap;

use equipoise::units::{Rate, Size, Span};
use equipoise_lab::scenario::{FlowKind, Override, OverrideProblem, Scenario, ScenarioError, Value};
use equipoise_path::link::QueueLimit;

const TEXT: &str = r#"# A comment.
name = "test"
duration = "40 s"

[[link]]
name = "bottleneck"
rate = "15 Mbit/s"
delay = "5 ms"
queue = "1000 packets"
steps = [{ at = "10 s", rate = "12 Mbit/s" }, { at = "20 s", rate = "9 Mbit/s" }]

[[path]]
name = "wide"
links = ["bottleneck"]

[[flow]]
name = "media"
path = ["bottleneck"]
packet_size = "1000 B"
report_interval = "1 s"
controller = { name = "ap", target = "8.2 ms", b = 300 }

[[flow]]
name = "cbr-0.5"
path = ["bottleneck"]
packet_size = "1000 B"
source = { kind = "poisson", rate = "9 Mbit/s" }
"#;

fn with(overrides: &[Override]) -> Scenario {
    Scenario::parse_with(TEXT, overrides).expect("right overrides")
}

/// Returns the scenario without its text, in a form that can be compared.
fn content(mut scenario: Scenario) -> String {
    scenario.text.clear();
    format!("{scenario:?}")
}

/// Returns the value of a parameter of the first flow's controller, as the catalogue formats it.
fn parameter(scenario: &Scenario, name: &str) -> String {
    let FlowKind::Session { controller, .. } = &scenario.flows[0].kind else { panic!("a session") };
    controller.parameters.iter().find(|(parameter, _)| *parameter == name).expect("a parameter").1.to_string()
}

#[test]
fn without_overrides_the_text_is_kept_and_with_them_only_their_keys_change() {
    assert_eq!(with(&[]).text, TEXT);
    let same = with(&[Override::set("duration", "40 s")]);
    assert_eq!(content(same.clone()), content(with(&[])));
    let again = Scenario::parse(&same.text).expect("the text of a scenario is one");
    assert_eq!(content(again), content(same));
}

#[test]
fn every_kind_of_path_changes_what_it_names() {
    let scenario = with(&[
        Override::set("duration", "50 s"),
        Override::set("link.bottleneck.queue", "20 packets"),
        Override::set("link.bottleneck.steps.1.rate", "8 Mbit/s"),
        Override::set("path.wide.down", vec![BTreeMap::from([("at", "5 s"), ("until", "6 s")])]),
        Override::set("flow.media.controller.b", 407.63),
        Override::set("flow.media.controller.name", "ap-printed"),
        Override::set("flow.\"cbr-0.5\".start", "3 s"),
        Override::set("flow.'cbr-0.5'.source.rate", "1 Mbit/s"),
        Override::set("flow.*.packet_size", "500 B"),
    ]);
    assert_eq!(scenario.duration, Span::from_secs(50));
    assert_eq!(scenario.links[0].forward.queue, QueueLimit::Packets(20));
    assert_eq!(
        scenario.links[0].forward.capacity.rate().expect("a rate").at(Span::from_secs(10)),
        Rate::from_bps(12_000_000)
    );
    assert_eq!(
        scenario.links[0].forward.capacity.rate().expect("a rate").at(Span::from_secs(20)),
        Rate::from_bps(8_000_000)
    );
    assert_eq!(scenario.paths[0].down[0].until, Some(Span::from_secs(6)));
    assert_eq!(parameter(&scenario, "b"), "407.63");
    assert_eq!(scenario.flows[1].start, Span::from_secs(3));
    assert!(scenario.flows.iter().all(|flow| flow.packet_size == Size::from_bytes(500)));
    let FlowKind::Background { rate, .. } = &scenario.flows[1].kind else { panic!("background traffic") };
    assert_eq!(rate.at(Span::ZERO), Rate::from_bps(1_000_000));
}

#[test]
fn omitted_keys_and_tables_are_inserted_and_present_ones_removed() {
    let law = [
        Override::remove("flow.media.controller"),
        Override::remove("flow.media.report_interval"),
        Override::set("flow.media.window", BTreeMap::from([("name", "reno")])),
        Override::set("flow.media.tcp.min_rto", "200 ms"),
        Override::set("flow.media.tcp.receive_window", 20),
    ];
    let FlowKind::Tcp(tcp) = &with(&law).flows[0].kind else { panic!("a connection") };
    assert_eq!(tcp.law.as_ref().map(|law| law.entry.name()), Some("reno"));
    let shorter = with(&[Override::remove("link.bottleneck.steps.0"), Override::remove("flow.'cbr-0.5'")]);
    assert_eq!(shorter.links[0].forward.capacity.rate().expect("a rate").steps().len(), 1);
    assert_eq!(shorter.flows.len(), 1);
}

#[test]
fn overrides_apply_in_their_order() {
    let twice = [Override::set("flow.media.controller.b", 75), Override::set("flow.*.start", "1 s")];
    let last = [Override::set("flow.media.controller.b", 1200), Override::set("flow.media.start", "2 s")];
    let scenario = with(&[twice, last].concat());
    assert_eq!(parameter(&scenario, "b"), "1200");
    assert_eq!(scenario.flows.iter().map(|flow| flow.start.as_secs_f64()).collect::<Vec<_>>(), [2.0, 1.0]);
}

/// Returns the whole chain of error messages for one override that is refused.
fn refusal(change: Override) -> String {
    let error = Scenario::parse_with(TEXT, &[change]).expect_err("wrong on purpose");
    let mut message = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        message.push_str(&format!(" / {cause}"));
        source = cause.source();
    }
    message
}

#[test]
fn an_override_that_does_not_fit_is_refused_with_its_path_and_what_would_be_right() {
    let set = |path: &str| Override::set(path, "1 s");
    let cases: [(Override, &[&str]); 12] = [
        (set("flow.madia.start"), &["override flow.madia.start", "no flow `madia`; there are: media, cbr-0.5"]),
        (set("flow.0.start"), &["no flow `0`; there are: media, cbr-0.5"]),
        (set("link.wire.delay"), &["no link `wire`; there are: bottleneck"]),
        (Override::remove("path.narrow"), &["no path `narrow`; there are: wide"]),
        (set("link.bottleneck.steps.2.at"), &["`steps` has no entry 2; it has 2, which count from 0"]),
        (set("flow.cbr-0.5.start"), &["no flow `cbr-0`"]),
        (set("flow.\"cbr-0.5\".source.steps.0.at"), &["`steps` has no entry 0; it has 0"]),
        (set("flow.\"cbr-0.5\".source.steps.*.at"), &["`steps` has no entry *; it has 0"]),
        (set("duration.length"), &["`duration` is a plain value (string)", "no key `length`"]),
        (Override::remove("flow.media.start"), &["no `start` to remove", "controller, name, packet_size"]),
        (set("flow..start"), &["override flow..start", "a chain of keys between dots"]),
        (set("flow.\"media.start"), &["a chain of keys between dots"]),
    ];
    for (change, expected) in cases {
        let path = change.path().to_owned();
        let message = refusal(change);
        for words in expected {
            assert!(message.contains(words), "`{path}` is refused with `{message}`, without `{words}`");
        }
    }
}

/// If this test fails, an override with a typing error in its key is ignored, and the scenario runs with the old
/// setting.
#[test]
fn an_unknown_key_is_refused_by_the_check_of_the_file() {
    let cases: [(&str, &[&str]); 6] = [
        ("durration", &["unknown field `durration`", "`duration`"]),
        ("flow.media.packetsize", &["unknown field `packetsize`", "`packet_size`"]),
        ("flow.media.contoller.b", &["unknown field `contoller`", "`controller`"]),
        ("flow.media.controller.beta", &["not a parameter of ap", "target, b,"]),
        ("link.bottleneck.steps.0.until", &["unknown field `until`", "`rate`"]),
        ("flow.media.*", &["unknown field `*`"]),
    ];
    for (path, expected) in cases {
        let message = refusal(Override::set(path, "1 s"));
        for words in expected {
            assert!(message.contains(words), "`{path}` is refused with `{message}`, without `{words}`");
        }
    }
}

/// A value of the file contradicts the value of an override. The error must identify the value of the file by its keys,
/// as in `flow.media.start`, because the user does not see the lines of the changed file.
#[test]
fn a_value_of_the_file_that_does_not_fit_an_override_is_named_by_its_path() {
    let message = refusal(Override::set("flow.media.controller.max_rate", "0.01 Mbit/s"));
    assert!(message.contains("above `max_rate`") && !message.contains("line "), "{message}");
    let later = refusal(Override::set("duration", "15 s"));
    assert_eq!(
        later,
        "with what is set, link.bottleneck.steps.1.at = \"20 s\": must be before the end of the run at 15 s"
    );
    let wrong = TEXT.replace("delay = \"5 ms\"", "delay = \"5\"");
    let error = Scenario::parse_with(&wrong, &[Override::set("duration", "50 s")]).expect_err("a wrong file");
    assert!(error.to_string().starts_with("line 8, column 9: delay = \"5\""), "a file's own line: {error}");
}

#[test]
fn similar_keys_are_named() {
    for (path, similar) in [
        ("durration", "duration"),
        ("flow.media.packetsize", "packet_size"),
        ("flow.media.controller.taget", "target"),
        ("link.bottleneck.steps.0.rat", "rate"),
    ] {
        let message = refusal(Override::set(path, "1 s"));
        assert!(message.contains(&format!("; a similar one exists: `{similar}`")), "{path}: {message}");
        assert!(message.starts_with(&format!("override {path}: ")) && !message.contains("line "), "{path}: {message}");
    }
    let error = Scenario::parse(&TEXT.replace("queue = ", "queu = ")).expect_err("a wrong file");
    let ScenarioError::Syntax(error) = error else { panic!("{error}") };
    assert!(error.message.ends_with("; a similar one exists: `queue`"), "{error}");
}

#[test]
fn a_wrong_value_is_refused_with_its_remedy_and_no_section_is_no_place_for_a_key() {
    assert!(refusal(Override::set("duration", 40)).contains("has no unit"));
    assert!(refusal(Override::set("link.bottleneck.rate", Value::from("15 ms"))).contains("not a unit of a rate"));
    let without_paths = TEXT.replace("[[path]]\nname = \"wide\"\nlinks = [\"bottleneck\"]\n", "");
    let error = Scenario::parse_with(&without_paths, &[Override::set("path.wide.down", "1 s")]).expect_err("no paths");
    let ScenarioError::Override { path, problem } = error else { panic!("{error}") };
    assert_eq!(path, "path.wide.down");
    assert!(matches!(*problem, OverrideProblem::UnknownName { known, .. } if known == "none"));
}
