//! Tests of the texts for users: the help, the list of controllers, and the explanations of scenarios.

use crate::support::{Folder, run, said, scenario};

#[test]
fn help_has_examples_and_lists_the_exit_codes() {
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let help = said(&help);
    for words in ["Examples:", "equipoise demo", "Exit codes:", "130  interrupted", "5    an output file"] {
        assert!(help.contains(words), "{words} is missing from {help}");
    }
    for command in [
        "demo",
        "sim",
        "compare",
        "suite",
        "live",
        "link",
        "paper",
        "capture",
        "check",
        "controllers",
        "completions",
        "man",
    ] {
        assert!(help.contains(command), "{command}");
        assert_eq!(run(&[command, "--help"]).status.code(), Some(0), "{command}");
    }
}

#[test]
fn every_controller_is_listed_with_every_parameter() {
    let listed = said(&run(&["controllers"]));
    is_described(&listed, equipoise::control::entries());
    let (_, listed) = listed.split_once("For TCP flows").expect("a section of their own");
    is_described(listed, equipoise::control::window::entries());
    let (_, listed) = listed.split_once("with several paths").expect("a section of their own");
    is_described(listed, equipoise::control::scheduler::entries());
    let (_, listed) = listed.split_once("For background flows").expect("a section of their own");
    is_described(listed, equipoise_path::source::entries());
}

fn is_described<C, X>(listed: &str, entries: &[equipoise::control::Entry<C, X>]) {
    for entry in entries {
        assert!(listed.contains(&format!("\n{}\n", entry.name)) && listed.contains(entry.source), "{}", entry.name);
        assert!(entry.parameters.iter().all(|parameter| listed.contains(parameter.meaning)), "{}", entry.name);
    }
}

#[test]
fn a_scenario_is_explained_without_being_run() {
    let explained = run(&["check", &scenario("demo")]);
    assert_eq!(explained.status.code(), Some(0));
    assert!(said(&explained).contains("from 20 s on: background 10.5 Mbit/s of 15 Mbit/s, 70 %"));
}

#[test]
fn completions_name_the_subcommands() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(said(&run(&["completions", shell])).contains("controllers"), "{shell}");
    }
}

/// If this test fails, the package of a Linux distribution lacks a valid manual page for a command.
#[test]
fn manual_pages_are_written_for_every_command() {
    let folder = Folder::new();
    let pages = folder.file("man1");
    assert_eq!(run(&["man", &pages]).status.code(), Some(0));
    for (page, words) in
        [("equipoise", "Exit codes"), ("equipoise-send", "start\\-rate"), ("equipoise-suite-paths", "seed")]
    {
        let text = std::fs::read_to_string(format!("{pages}/{page}.1")).expect("a page");
        assert!(text.contains(".TH") && text.contains(words), "{page}: {text}");
    }
    let refused = run(&["man", "/dev/null/man1"]);
    assert_eq!(refused.status.code(), Some(5), "a folder that cannot be made");
}

/// If this test fails, a JSON result lacks data that is needed to reproduce the result.
#[test]
fn every_result_in_json_names_its_version_its_seed_and_its_parameters() {
    let folder = Folder::new();
    let capture = folder.file("empty.pcap");
    // The header of a capture file without frames: version 2.4, times in microseconds, link type Ethernet.
    let header = [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    std::fs::write(&capture, header).expect("writable");
    let demo = scenario("demo-short");
    for (arguments, keys) in [
        (&["sim", &demo, "--seed", "7"][..], &["seed", "scenario", "scenario_text", "duration_s", "warm_up_s"][..]),
        (&["compare", &demo, "--controller", "ap,aimd", "--runs", "2"], &["seed", "runs", "variants", "flow"]),
        (&["paper", "waki2013", "fig5", "--quick"], &["seed", "paper", "runs", "quick"]),
        // `capture rtt` uses no random numbers, so its results have no seed.
        (&["capture", "rtt", &capture, "--bin", "2ms"], &["rule", "bin_s"]),
    ] {
        let output = run(&[arguments, &["--json", "-"]].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(json["version"], env!("CARGO_PKG_VERSION"), "{arguments:?}");
        for key in keys {
            assert!(json.get(key).is_some(), "{key} is missing in the results of {arguments:?}");
        }
    }
}

#[test]
fn version_and_wrong_usage() {
    assert!(said(&run(&["--version"])).contains(env!("CARGO_PKG_VERSION")));
    for wrong in [&["fly"][..], &["sim"], &["sim", "x.toml", "--runs", "0"], &["demo", "--seed", "one"]] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
