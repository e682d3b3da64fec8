//! Help, catalogue and explanations.

use crate::support::{run, said, scenario};

#[test]
fn help_has_examples_and_lists_the_exit_codes() {
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let help = said(&help);
    for words in ["Examples:", "equipoise demo", "Exit codes:", "130  interrupted", "5    an output file"] {
        assert!(help.contains(words), "{words} is missing from {help}");
    }
    for command in ["demo", "sim", "live", "link", "paper", "capture", "check", "controllers", "completions"] {
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

#[test]
fn version_and_wrong_usage() {
    assert!(said(&run(&["--version"])).contains(env!("CARGO_PKG_VERSION")));
    for wrong in [&["fly"][..], &["sim"], &["sim", "x.toml", "--runs", "0"], &["demo", "--seed", "one"]] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
