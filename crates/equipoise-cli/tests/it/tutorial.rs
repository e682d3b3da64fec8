//! Tests the tutorial of the book: runs its exact commands, and compares their output with the page.

use std::fs;
use std::process::Command;

use crate::machine::Machine;
use crate::page::{self, Terminal};
use crate::places::Places;
use crate::support::{Folder, said};

const PAGE: &str = "tutorial";
/// In the tutorial, the sender, the receiver and the network run on one host. The test uses a namespace as this host,
/// because the tutorial's ports are fixed.
const ONE_HOST: [&str; 1] = ["ip -n NEAR link set lo up"];

/// Returns the number between the texts `before` and `after`, in the last line that contains both texts.
fn number(said: &str, before: &str, after: &str) -> f64 {
    let find = |line: &str| line.split_once(before)?.1.split_once(after)?.0.trim().parse().ok();
    said.lines().rev().find_map(find).unwrap_or_else(|| panic!("no `{before}… {after}` in {said}"))
}

/// If this test fails, a reader of the tutorial sees an error, or values that differ from those on the page. Simulated
/// values are the same on every machine, so update the page if a change of a control law changes them.
#[test]
#[ignore = "long simulations"]
fn what_the_tutorial_simulates_prints_what_stands_there() {
    let _machine = Machine::shared();
    let folder = Folder::new();
    let commands = ["sh,scenario", "sh,simulate", "sh,compare"].map(|kind| page::blocks(PAGE, kind)).concat();
    let output = page::shell(Command::new("bash"), &folder, &commands).output().expect("bash is there");
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for line in page::blocks(PAGE, "text,simulate").lines().filter(|line| *line != "...") {
        assert!(said.contains(line), "not printed: {line}\n{said}");
    }
    for report in ["call.html", "compare.html"] {
        assert!(fs::metadata(folder.file(report)).is_ok_and(|file| file.len() > 1000), "{report}");
    }
}

/// If this test fails, a reader of the tutorial sees that no packets arrive, or that the queueing delay is not
/// controlled.
#[test]
#[ignore = "real time: 45 s"]
fn the_tutorials_call_is_held_on_real_sockets_and_between_two_ends() {
    let machine = Machine::shared();
    let Some(places) = Places::new(&machine, &ONE_HOST) else { return };
    let folder = Folder::new();
    let run = |name: &str, commands: String| Terminal::open(&places.near, &folder, name, &commands);
    assert!(run("scenario", page::blocks(PAGE, "sh,scenario")).wait());
    let all = ["live", "hosts"].map(|name| (name, run(name, page::blocks(PAGE, &format!("sh,{name}")))));
    let [live, hosts] = all.map(|(name, mut terminal)| {
        let went_well = terminal.wait();
        let said = fs::read_to_string(folder.file(name)).expect("what was printed");
        assert!(went_well, "{name}: {said}");
        said
    });
    let settled = number(&live, "live call: settled at ", " ms against");
    assert!((22.0..45.0).contains(&settled), "{live}");
    assert!(fs::metadata(folder.file("live.html")).is_ok_and(|file| file.len() > 1000));
    let (rate, waited) =
        (number(&hosts, " packets, ", " Mbit/s sent"), number(&hosts, "queueing delay ", " ms on average"));
    assert!(rate > 1.5 && waited < 30.0, "{hosts}");
}
